"""Reads recorded connections, each a file, with h11, and prints the requests in them: see serve/parsers.rs."""

import sys

import h11


def fnv(body):
    h = 2166136261
    for b in body:
        h = ((h ^ b) * 16777619) & 0xFFFFFFFF
    return h


def requests(raw):
    conn, at, body = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20), None, b""
    conn.receive_data(raw)
    conn.receive_data(b"")
    while True:
        try:
            event = conn.next_event()
        except h11.RemoteProtocolError as e:
            # The connection ended inside of a request.
            cut = "incomplete" in str(e) or "closed connection without sending complete" in str(e)
            yield "cut" if cut else f"malformed {e}"
            return
        if isinstance(event, h11.Request):
            at, body = event, b""
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            # Each byte of a field is a character, as the other parsers print it: a field may have bytes above 0x7f.
            nonce = ",".join(v.decode("latin-1") for n, v in at.headers if n == b"x-nonce")
            yield f"{at.method.decode()} {at.target.decode('latin-1')} {nonce} {len(body)} {fnv(body)}"
            conn.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            conn.send(h11.EndOfMessage())
            if conn.our_state is h11.MUST_CLOSE:
                yield "end"
                return
            conn.start_next_cycle()
        else:
            yield "end"
            return


sys.stdout.reconfigure(encoding="utf-8")
for name in sys.argv[1:]:
    with open(name, "rb") as f:
        raw = f.read()
    for line in requests(raw):
        print(line)
