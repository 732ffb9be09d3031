"""tus: resumable uploads."""
from harness import Application, Row
from proxies import Route


def check(name):
    return lambda bench, target, seconds: bench.node_client("tus_client.js", name, target, seconds)


def start(bench):
    folder = bench.folder / "tus"
    folder.mkdir(exist_ok=True)
    return Route([bench.node_server("tus.js", folder)], nginx="client_max_body_size 0; proxy_request_buffering off;")


APPLICATIONS = [
    Application("tus uploads", "@tus/server and tus-js-client", ["node", "npm:@tus/server", "npm:@tus/file-store", "npm:tus-js-client"], "", start, [
        Row("8 MiB in one request", check("whole"), ci=False), Row("8 MiB in chunks", check("chunks")), Row("interrupted and resumed", check("resume")),
    ]),
]
