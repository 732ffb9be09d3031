"""The checks of a WebSocket client in Python (websockets).

Its asyncio client, step by step: its threaded one reads and writes a TLS socket of Python 3.11 in two threads, and loses bytes.
"""
import asyncio
import os
import ssl
import time

from common import CA, SCHEME, main, same
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

LOOP = asyncio.new_event_loop()
asyncio.set_event_loop(LOOP)


class open_socket:
    def __init__(self, address, path="/", **more):
        scheme = "ws"
        if SCHEME == "https":
            # As browsers do: only HTTP/1.1 is offered for a WebSocket.
            scheme, more["ssl"] = "wss", ssl.create_default_context(cafile=CA)
            address = address.replace("127.0.0.1", "localhost")

        async def opened():
            return await connect(f"{scheme}://{address}{path}", max_size=64 << 20, **more)

        self.socket = LOOP.run_until_complete(opened())
        self.subprotocol = self.socket.subprotocol

    def __enter__(self):
        return self

    def __exit__(self, *_):
        LOOP.run_until_complete(self.socket.close())

    def send(self, body):
        LOOP.run_until_complete(self.socket.send(body))

    def recv(self, timeout):
        return LOOP.run_until_complete(asyncio.wait_for(self.socket.recv(), timeout))


def echo(address, seconds):
    with open_socket(address) as socket:
        while True:
            for body in ["text, ä", b"\0\xff", "x" * 70000]:
                socket.send(body)
                same(socket.recv(timeout=10), body)
            yield


def connects(address, seconds):
    """A new socket each time, with a subprotocol."""
    while True:
        with open_socket(address, subprotocols=["chat"]) as socket:
            same(socket.subprotocol, "chat", "subprotocol")
            socket.send("a")
            same(socket.recv(timeout=10), "a")
        yield


def large(address, seconds):
    """Four MiB there and back that do not compress, without compression."""
    body = os.urandom(4 << 20)
    with open_socket(address, compression=None) as socket:
        while True:
            socket.send(body)
            assert socket.recv(timeout=20) == body, "another body"
            yield


def bye(address, seconds):
    """The server closes with a code and a reason."""
    while True:
        with open_socket(address, "/bye") as socket:
            try:
                socket.recv(timeout=10)
                raise AssertionError("not closed")
            except ConnectionClosed as closed:
                same((closed.rcvd.code, closed.rcvd.reason), (4001, "until tomorrow"), "code")
        yield


def ticks(address, seconds):
    """Only the server sends."""
    with open_socket(address, "/ticks") as socket:
        number = 0
        while True:
            same(socket.recv(timeout=5), str(number), "tick")
            number += 1
            yield


def quiet(address, seconds):
    """Silent for 65 s, then an echo."""
    with open_socket(address, ping_interval=None) as socket:
        time.sleep(65)
        socket.send("still here")
        same(socket.recv(timeout=10), "still here")
        yield
    return "after 65 s"


main(globals())
