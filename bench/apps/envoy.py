"""Envoy as weir's peer, on either side: HTTP/2 to its clients and to what is behind it, and nothing else."""
import http.client
import json

from harness import free_port, installed

EXTENSIONS = "type.googleapis.com/envoy.extensions"
HTTP = f"{EXTENSIONS}.filters.http"
TLS = f"{EXTENSIONS}.transport_sockets.tls.v3"
# By default a stream has 16 MiB and its connection 24. Then one stream that stalls stops the others on its connection, also where Envoy
# is alone between client and origin.
WINDOWS = {"initial_stream_window_size": 1 << 20}
# Envoy sends with its preface all that waits, before it knows how many streams it may open. Above the 100 of weir, nginx and HAProxy they
# are refused, and without a retry policy a client gets 503.
STREAMS = {"max_concurrent_streams": 100}
GOAWAYS = ["http.peer.downstream_cx_drain_close", "http.peer.downstream_cx_max_requests_reached", "cluster.peer.upstream_cx_close_notify"]


class Envoy:
    """A running Envoy, which balances over `to`."""

    def __init__(self, bench, to, tls=False, to_tls=False, max_requests=None):
        self.bench, self.to, self.tls, self.to_tls, self.max_requests = bench, to, tls, to_tls, max_requests
        self.port, self.admin = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.file = bench.folder / f"envoy-{self.port}.json"
        self.file.write_text(json.dumps(self.config()))
        self.ended = 0
        self.start()

    def start(self):
        self.child = self.bench.spawn([installed("envoy"), "-c", self.file, "--concurrency", "1", "--disable-hot-restart", "-l", "error",
                                       "--drain-time-s", "1"])
        self.bench.await_port(self.port, self.child)

    def close(self):
        self.bench.stop([self.child])

    # A drain, in the steps of a deploy

    def fail_checks(self):
        """Answers health checks with 503, and ends each connection by GOAWAY; new ones are accepted."""
        self.command("POST", "/healthcheck/fail")

    def drain(self):
        """Ends each connection by GOAWAY; after the second of `--drain-time-s` no new one is accepted."""
        self.command("POST", "/drain_listeners?graceful")

    def drain_connections(self):
        """Ends each connection by GOAWAY, for good; new ones are accepted."""
        self.command("POST", "/drain_listeners?graceful&skip_exit")

    def restart(self):
        """Ends by SIGTERM, and comes back at the same port."""
        self.ended = self.goaways()
        self.close()
        self.start()

    def goaways(self):
        """How many of its connections ended by GOAWAY, its own to clients or that of what is behind it."""
        text = self.command("GET", f"/stats?filter=^({'|'.join(GOAWAYS)})$")
        return self.ended + sum(int(line.rpartition(":")[2]) for line in text.splitlines())

    def command(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=5)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise RuntimeError(f"Envoy's {path}: {answer.status} {text[:200]}")
        return text

    # Its configuration

    def config(self):
        limits = {"max_requests_per_connection": self.max_requests} if self.max_requests else {}
        manager = {
            "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "peer",
            "codec_type": "HTTP2",
            "http2_protocol_options": WINDOWS,
            "common_http_protocol_options": limits,
            "drain_timeout": "0.5s",  # from the first GOAWAY to the second
            "route_config": {"virtual_hosts": [{"name": "peer", "domains": ["*"], "routes": [
                {"match": {"prefix": "/"}, "route": {"cluster": "peer", "timeout": "0s"}}]}]},
            "http_filters": [
                {"name": "health", "typed_config": {
                    "@type": f"{HTTP}.health_check.v3.HealthCheck", "pass_through_mode": False,
                    "headers": [{"name": ":path", "string_match": {"exact": "/healthz"}}]}},
                {"name": "router", "typed_config": {"@type": f"{HTTP}.router.v3.Router"}},
            ],
        }
        chain = {"filters": [{"name": "http", "typed_config": manager}], **self.server_tls()}
        cluster = {
            "name": "peer",
            "type": "STATIC",
            "connect_timeout": "5s",
            "load_assignment": {"cluster_name": "peer", "endpoints": [{"lb_endpoints": [
                {"endpoint": {"address": socket_address(to.rpartition(":")[2])}} for to in self.to]}]},
            "typed_extension_protocol_options": {f"{EXTENSIONS.partition('/')[2]}.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {**WINDOWS, **STREAMS}}}},
            **self.client_tls(),
        }
        return {"admin": {"address": socket_address(self.admin)}, "static_resources": {
            "listeners": [{"name": "peer", "address": socket_address(self.port), "filter_chains": [chain]}], "clusters": [cluster]}}

    def server_tls(self):
        """Both versions are offered, so that the peer chooses HTTP/2; one that chose HTTP/1.1 would not be understood."""
        if not self.tls:
            return {}
        certificate = {"certificate_chain": {"filename": str(self.bench.cert)}, "private_key": {"filename": str(self.bench.key)}}
        return {"transport_socket": {"name": "tls", "typed_config": {
            "@type": f"{TLS}.DownstreamTlsContext",
            "common_tls_context": {"alpn_protocols": ["h2", "http/1.1"], "tls_certificates": [certificate]}}}}

    def client_tls(self):
        if not self.to_tls:
            return {}
        localhost = {"san_type": "DNS", "matcher": {"exact": "localhost"}}
        return {"transport_socket": {"name": "tls", "typed_config": {
            "@type": f"{TLS}.UpstreamTlsContext", "sni": "localhost",
            "common_tls_context": {"alpn_protocols": ["h2", "http/1.1"], "validation_context": {
                "trusted_ca": {"filename": str(self.bench.ca)}, "match_typed_subject_alt_names": [localhost]}}}}}


def socket_address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": int(port)}}
