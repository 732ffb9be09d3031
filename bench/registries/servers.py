"""What stand-ins for registries share: an HTTP server that can be stopped as a process is, with all of its connections."""

import http.server
import json
import socket
import threading


class Server(http.server.ThreadingHTTPServer):
    """Serves a handler on a port of loopback, until it is stopped."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port, handler):
        self.connections = set()
        super().__init__(("127.0.0.1", port), handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def process_request(self, request, client_address):
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """A client that has gone away is no error."""

    def stop(self):
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with JSON on connections that are kept."""

    protocol_version = "HTTP/1.1"
    # Each write of a stream is an event, which nothing may hold back.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def give(self, status, value, **fields):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in fields.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)
