"""The members: small HTTP/1.1 servers on addresses of their own, in one process: origins.py PORT COUNT NETWORK

Prints `ready`, and for each line that comes a JSON list: how many connections each member has accepted so far."""

import asyncio
import json
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def host(n, network):
    """The address of a member; a network is the first two bytes."""
    return f"{network}.{n >> 7}.{(n & 127) + 1}"


async def main(port, count, network):
    opened = [0] * count

    async def serve(n, reader, writer):
        opened[n] += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(ANSWER)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    servers = [
        await asyncio.start_server(lambda reader, writer, n=n: serve(n, reader, writer), host(n, network), port, backlog=256)
        for n in range(count)
    ]
    print("ready", flush=True)
    while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        print(json.dumps(opened), flush=True)
    for server in servers:
        server.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
