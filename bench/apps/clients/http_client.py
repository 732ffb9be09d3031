"""The checks of an HTTP client in Python (httpx), over HTTP/2 where there is TLS."""
import hashlib
import os
import time

import httpx
from common import CA, SCHEME, main, same

import ssl

HOST = {"https": lambda a: a.replace("127.0.0.1", "localhost"), "http": lambda a: a}[SCHEME]


def client(**more):
    verify = ssl.create_default_context(cafile=CA) if SCHEME == "https" else True
    return httpx.Client(http2=SCHEME == "https", verify=verify, timeout=15, trust_env=False, **more)


def url(address, path):
    return f"{SCHEME}://{HOST(address)}{path}"


def gets(address, seconds):
    """Bodies of many lengths on one connection."""
    with client() as c:
        while True:
            for length in [0, 1, 1000, 65535, 65536, 1_000_000]:
                same(len(c.get(url(address, f"/bytes/{length}")).content), length, "length")
            yield


def uploads(address, seconds):
    """A body of known length, and one in pieces."""
    body = os.urandom(3_000_000)
    with client() as c:
        while True:
            answer = c.post(url(address, "/upload"), content=body)
            same(answer.json().get("sha256"), hashlib.sha256(body).hexdigest(), "digest")
            answer = c.post(url(address, "/upload"), content=(body[i:i + 70_000] for i in range(0, len(body), 70_000)))
            same(answer.json().get("length"), len(body), "length")
            yield


def early(address, seconds):
    """An upload of 20 MB that the origin refuses at once: the client gets the 413."""
    piece = b"x" * 100_000
    with client() as c:
        while True:
            answer = c.post(url(address, "/limited"), content=(piece for _ in range(200)))
            same((answer.status_code, "too l" in answer.text.lower()), (413, True), "answer")
            same(c.get(url(address, "/bytes/3")).content, b"xxx", "the next answer")
            yield


def lines(address, seconds):
    """A body that comes bit by bit arrives so."""
    with client() as c:
        while True:
            begun, first = time.monotonic(), None
            with c.stream("GET", url(address, "/lines")) as answer:
                for _ in answer.iter_raw():
                    first = first or time.monotonic() - begun
            assert time.monotonic() - begun > 0.35 and first < 0.3, f"the first part came after {first:.2f} s"
            yield


def late(address, seconds):
    """A long poll: answered after 55 s."""
    with client() as c:
        same(c.get(url(address, "/late/55"), timeout=70).text, "late")
        yield
    return "after 55 s"


main(globals())
