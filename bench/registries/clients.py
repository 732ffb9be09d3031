"""Open-loop clients: requests at fixed instants on connections that are kept, in one process: clients.py PORT RATE CONNECTIONS

Prints `ready`, and for each line that comes what has ended since the line before: {"requests", "failed", "errors", "slowest_ms"}.
What a request takes counts from its intended instant. A connection that an answer closes (a process that drains) is replaced by another."""

import asyncio
import collections
import json
import sys
import time

QUESTION = b"GET / HTTP/1.1\r\nHost: registries\r\n\r\n"
PATIENCE_S = 10


class Tally:
    """What has ended since the last report."""

    def __init__(self):
        self.requests, self.slowest_s, self.errors = 0, 0.0, collections.Counter()

    def report(self):
        failed, slowest_ms = sum(self.errors.values()), 1e3 * self.slowest_s
        return {"requests": self.requests, "failed": failed, "errors": self.errors, "slowest_ms": slowest_ms}


class Clients:
    """The connections, those that are idle in turn, and the instants of requests that wait for one."""

    def __init__(self, port):
        self.port, self.tally = port, Tally()
        self.idle, self.late = collections.deque(), collections.deque()

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, connection):
        reader, writer = connection
        writer.write(QUESTION)
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        await reader.readexactly(int(fields.get(b"content-length", 0)))
        status = head.split(b" ", 2)[1].decode()
        if status != "200":
            raise OSError(f"status {status}")
        return fields.get(b"connection") != b"close"

    async def work(self, connection, due):
        """Sends the request that was due at this instant, and those that wait."""
        while due is not None:
            try:
                if connection is None:
                    connection = await self.connect()
                is_kept = await asyncio.wait_for(self.ask(connection), PATIENCE_S)
                if not is_kept:
                    connection[1].close()
                    connection = None
            except (OSError, ValueError, IndexError, asyncio.TimeoutError, asyncio.IncompleteReadError) as e:
                self.tally.errors[str(e) or type(e).__name__] += 1
                if connection:
                    connection[1].close()
                connection = None
            self.tally.requests += 1
            self.tally.slowest_s = max(self.tally.slowest_s, time.monotonic() - due)
            due = self.late.popleft() if self.late else None
        self.idle.append(connection)

    async def send(self, rate):
        begun, n, running = time.monotonic(), 0, set()
        while True:
            due = begun + n / rate
            await asyncio.sleep(max(0, due - time.monotonic()))
            n += 1
            if self.idle:
                task = asyncio.create_task(self.work(self.idle.popleft(), due))
                running.add(task)
                task.add_done_callback(running.discard)
            else:
                self.late.append(due)


async def main(port, rate, connections):
    clients = Clients(port)
    for _ in range(connections):
        clients.idle.append(await clients.connect())
    sending = asyncio.create_task(clients.send(rate))
    print("ready", flush=True)
    while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        if sending.done():
            sys.exit(f"the clients have ended: {sending.exception()!r}")
        print(json.dumps(clients.tally.report()), flush=True)
        clients.tally = Tally()
    sending.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
