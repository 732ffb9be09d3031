"""An ASGI application for hypercorn: echoes over HTTP and over WebSocket, and refuses uploads that are too long at once."""
import asyncio

LIMIT = 1 << 20


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    elif scope["type"] == "websocket":
        await websocket(scope, receive, send)
    elif scope["type"] == "http":
        await http(scope, receive, send)


async def websocket(scope, receive, send):
    await receive()
    offered = scope.get("subprotocols", [])
    await send({"type": "websocket.accept", "subprotocol": "chat" if "chat" in offered else None})
    if scope["path"] == "/bye":
        return await send({"type": "websocket.close", "code": 4001, "reason": "until tomorrow"})
    if scope["path"] == "/ticks":
        for number in range(10000):
            await send({"type": "websocket.send", "text": str(number)})
            await asyncio.sleep(0.05)
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("bytes") is not None:
            await send({"type": "websocket.send", "bytes": message["bytes"]})
        else:
            await send({"type": "websocket.send", "text": message["text"]})


async def answer(send, status, body, headers=()):
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body)), *headers]})
    await send({"type": "http.response.body", "body": body})


async def http(scope, receive, send):
    headers = dict(scope["headers"])
    if scope["path"] == "/limited" and int(headers.get(b"content-length", LIMIT + 1)) > LIMIT:
        return await answer(send, 413, b"too long")
    if scope["path"] == "/version":
        return await answer(send, 200, scope["http_version"].encode())
    if scope["path"].startswith("/bytes/"):
        return await answer(send, 200, b"x" * int(scope["path"][7:]))
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        for number in range(20):
            await send({"type": "http.response.body", "body": b"%d\n" % number, "more_body": True})
            await asyncio.sleep(0.02)
        return await send({"type": "http.response.body", "body": b""})
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    await answer(send, 200, b"%d" % length)
