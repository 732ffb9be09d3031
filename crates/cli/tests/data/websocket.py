"""A WebSocket server and its client: `websocket.py serve` prints its port, `websocket.py ask URI CA` sends messages of all sizes
both ways and says `ok`."""

import asyncio
import ssl
import sys

import websockets


async def echo(socket, *_):
    async for message in socket:
        await socket.send(message)


async def serve():
    async with websockets.serve(echo, "127.0.0.1", 0, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


async def ask(uri, ca):
    trusts = ssl.create_default_context(cafile=ca)
    where = dict(host="127.0.0.1", server_hostname="a.test", ssl=trusts)
    async with websockets.connect(uri, max_size=None, **where) as socket:
        for message in ("hello", b"", b"x" * 126, b"y" * 2_000_000):
            await socket.send(message)
            assert await socket.recv() == message
        await asyncio.wait_for(await socket.ping(), 20)
    print("ok", flush=True)


asyncio.run({"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:]))
