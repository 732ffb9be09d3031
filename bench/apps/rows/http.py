"""HTTP itself: clients in Python, Node, Java and curl; answers that come before the request has; weir behind nginx."""
import json
import re
import time

from harness import CLIENTS, Application, Outcome, Row, by_hand, free_port
from proxies import Route

BIG = "client_max_body_size 0;"


def httpx(name, limit=20):
    return lambda bench, target, seconds: bench.python_client("http_client.py", name, target, seconds, limit_s=seconds + limit)


def node(name):
    return lambda bench, target, seconds: bench.node_client("http2_client.js", name, target, seconds)


def java(bench, target, seconds):
    return bench.client(["java", "-Xmx256m", CLIENTS / "HttpClients.java"], "all", target, seconds, limit_s=seconds + 40)


def repeated(step):
    def run(bench, target, seconds):
        end, done = time.monotonic() + seconds, 0
        while True:
            try:
                step(bench, target)
                done += 1
            except AssertionError as error:
                return Outcome(done, 1, str(error))
            if time.monotonic() >= end:
                return Outcome(done, note=f"{done} times")
    return run


def curl(bench, target, *words):
    url = target.url.replace("127.0.0.1", "localhost")
    command = ["curl", "-sS", "-m", "15", "--cacert", bench.ca, "-w", "\n%{http_code} %{http_version}", *(w.replace("{url}", url) for w in words)]
    done = bench.run(command, 20)
    assert done is not None, "curl hangs"
    assert done.returncode == 0, f"curl ends with {done.returncode}: {done.stderr.strip()[-200:]} {done.stdout.strip()[-60:]}"
    body, _, status = done.stdout.rpartition("\n")
    return body, status


def upload_file(bench):
    file = bench.folder / "upload"
    if not file.exists():
        file.write_bytes(b"x" * (20 << 20))
    return file


@repeated
def curl_early(bench, target):
    """curl sends 20 MiB over HTTP/2 and is refused at once."""
    body, status = curl(bench, target, "--http2", "-H", "Expect:", "-T", str(upload_file(bench)), "{url}/limited")
    assert status.startswith("413"), f"status and version are {status}, not 413"
    assert "too l" in body.lower(), f"body is {body[:100]!r}"


@repeated
def curl_early_1(bench, target):
    """The same over HTTP/1.1, with curl's `Expect: 100-continue`."""
    body, status = curl(bench, target, "--http1.1", "-T", str(upload_file(bench)), "{url}/limited")
    assert status.startswith("413"), f"status and version are {status}, not 413"


@repeated
def curl_two(bench, target):
    _, status = curl(bench, target, "--http2", "-o", "/dev/null", "{url}/bytes/5000000")
    assert status.split()[0] == "200", f"status is {status}"


@repeated
def curl_expect(bench, target):
    """An upload with `Expect: 100-continue`, taken."""
    body, status = curl(bench, target, "--http1.1", "-T", str(upload_file(bench)), "{url}/upload")
    assert f'"length":{20 << 20}' in body, f"answer is {body[:100]!r} {status}"


@repeated
def curl_hints(bench, target):
    body, status = curl(bench, target, "--http1.1", "-i", "{url}/hints")
    assert re.search(r"HTTP/1.1 103.*?link: </a.css>", body, re.S | re.I), f"no early hints in {body[:200]!r}"


@repeated
def ranges(bench, target):
    """A file of nginx's: parts, conditions, HEAD, a body that is compressed."""
    body, status = curl(bench, target, "-r", "10-19", "{url}/file.txt")
    assert (len(body), status[:3]) == (10, "206"), f"a part is {len(body)} bytes, {status}"
    head, _ = curl(bench, target, "-I", "{url}/file.txt")
    etag = re.search(r"etag: (\S+)", head, re.I)[1]
    _, status = curl(bench, target, "-H", f"If-None-Match: {etag}", "{url}/file.txt")
    assert status[:3] == "304", f"status is {status}, not 304"
    _, status = curl(bench, target, "-H", 'If-Match: "x"', "{url}/file.txt")
    assert status[:3] == "412", f"status is {status}, not 412"
    body, _ = curl(bench, target, "--compressed", "{url}/file.txt")
    assert len(body) == 100_000, f"length is {len(body)}"


# Origins

def node_clear(bench):
    return Route([bench.node_server("http_echo.js")], nginx=BIG)


def node_behind_tls(bench):
    """TLS and HTTP/2 to the client, HTTP/1.1 in clear to the origin; a client without a proxy speaks HTTP/1.1."""
    return Route([bench.node_server("http_echo.js")], front_tls=True, nginx=BIG)


def node_two(bench):
    return Route([bench.node_server("http_echo.js", "h2")], origin="auto", origin_tls=True, front_tls=True, nginx=BIG)


def hypercorn(bench):
    from rows.websocket import hypercorn
    route = hypercorn(bench)
    route.nginx = BIG
    return route


def nginx_origin(bench):
    """nginx as an origin with TLS that offers HTTP/2; it refuses bodies of more than a MiB at /limited."""
    port = free_port()
    folder = bench.folder / f"origin-{port}"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "file.txt").write_text("0123456789" * 10_000)
    temporary = "\n".join(f"{k}_temp_path {folder}/{k};" for k in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    (folder / "nginx.conf").write_text(f"""daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off; {temporary}
  gzip on; gzip_types text/plain; gzip_min_length 100; default_type text/plain;
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate {bench.cert}; ssl_certificate_key {bench.key};
    root {folder};
    location /limited {{ client_max_body_size 1m; proxy_pass http://127.0.0.1:1; }}
    location /bytes/3 {{ return 200 "xxx"; }}
  }}
}}
""")
    child = bench.spawn(["nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log", "-p", folder])
    bench.await_port(port, child)
    return Route([f"127.0.0.1:{port}"], origin="auto", origin_tls=True, front_tls=True, nginx=BIG)


# Behind nginx, on a Unix socket

def behind(bench):
    return Route([bench.node_server("http_echo.js")], behind_nginx=True, weir_http='trusted = ["unix:"]')


@repeated
def forwarded(bench, target):
    """What nginx says of the client reaches the origin."""
    body, status = curl(bench, target, "-H", "X-Forwarded-For: 203.0.113.9", "{url}/headers")
    headers = json.loads(body)
    got = headers.get("x-forwarded-for", "nothing").replace(" ", "").split(",")
    assert got[0] == "198.51.100.7", f"the origin sees X-Forwarded-For: {', '.join(got)}; nginx said 198.51.100.7"
    assert headers["host"].startswith("localhost"), f"Host is {headers['host']}"


def keep(bench, target, seconds):
    return bench.python_client("http_client.py", "gets", target, seconds)


EARLY = [Row("an upload is refused early: curl, HTTP/2", curl_early), Row("an upload is refused early: httpx, HTTP/2", httpx("early")),
         Row("an upload is refused early: Node, HTTP/2", node("early"))]
APPLICATIONS = [
    Application("HTTP, Node in clear", "Node's http server", ["node", "python:httpx", "curl"], "", node_clear, [
        Row("bodies of many lengths (httpx)", httpx("gets")), Row("uploads (httpx)", httpx("uploads")), Row("bit by bit (httpx)", httpx("lines")),
        Row("fetch (Node)", node("fetches")), Row("Expect: 100-continue (curl)", curl_expect),
        Row("an upload is refused early: curl, HTTP/1.1", curl_early_1, ci=False), Row("early hints (curl)", curl_hints),
        Row("a long poll of 55 s (httpx)", httpx("late", 90), ci=False, waits_s=55),
    ]),
    Application("HTTP, Node in clear, Java's client", "java.net.http, which asks for h2c", ["node", "java"], "", node_clear,
                [Row("GET, POST, 20 at once", java, least_s=2, ci=False)]),
    Application("HTTP/2 with TLS, Node in clear", "TLS ends at the proxy", ["node", "python:httpx", "curl"], "listen(..., tls = tls.server(...))", node_behind_tls, [
        Row("a download (curl)", curl_two, ci=False), Row("uploads (httpx)", httpx("uploads")), EARLY[0], EARLY[1],
        # Without TLS there is no HTTP/2 to the origin for Node's client.
        Row("an upload is refused early: Node, HTTP/2", lambda b, t, s: None if t.way == "direct" else node("early")(b, t, s)),
    ]),
    Application("HTTP/2 with TLS, Node with h2", "Node's http2 server", ["node", "python:httpx", "curl"], "tls = tls.client(...)", node_two, [
        Row("50 at once (Node)", node("many")), Row("uploads (httpx)", httpx("uploads"), ci=False), *by_hand(EARLY)]),
    Application("HTTP/2 with TLS, hypercorn", "hypercorn, which offers HTTP/2 by ALPN", ["python:hypercorn", "python:httpx", "node", "curl"],
                "tls = tls.client(...)", hypercorn, [Row("bodies of many lengths (httpx)", httpx("gets")), *by_hand(EARLY)]),
    Application("HTTP/2 with TLS, nginx", "nginx as the origin", ["nginx", "python:httpx", "node", "curl"], "tls = tls.client(...)", nginx_origin,
                [Row("parts, conditions, gzip (curl)", ranges), *EARLY[:2], *by_hand(EARLY[2:])]),
    Application("behind nginx on a Unix socket", "nginx, then the proxy on a Unix socket", ["nginx", "node", "curl", "python:httpx"],
                'listen("unix:/path", ...), http(trusted = ["unix:"])', behind, [
                    Row("X-Forwarded-For of nginx's", forwarded), Row("bodies of many lengths", keep)]),
]
