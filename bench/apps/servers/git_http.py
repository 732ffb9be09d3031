"""git's smart HTTP: `git http-backend` behind a server of HTTP/1.1, which passes bodies on as they come."""
import http.server
import os
import subprocess
import sys
import threading

BACKEND = [os.path.join(subprocess.check_output(["git", "--exec-path"], text=True).strip(), "git-http-backend")]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        variables = {**os.environ, "GIT_PROJECT_ROOT": sys.argv[2], "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
                     "REQUEST_METHOD": self.command, "REMOTE_USER": "user", "REMOTE_ADDR": "127.0.0.1",
                     "CONTENT_TYPE": self.headers.get("Content-Type", ""), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                     "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        if "Content-Length" in self.headers:
            variables["CONTENT_LENGTH"] = self.headers["Content-Length"]
        child = subprocess.Popen(BACKEND, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        feeder = threading.Thread(target=self.feed, args=[child.stdin])
        feeder.start()
        status, headers = "200 OK", []
        while line := child.stdout.readline().strip().decode():
            name, _, value = line.partition(": ")
            if name == "Status":
                status = value
            else:
                headers.append((name, value))
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while part := child.stdout.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")
        feeder.join()
        child.wait()

    do_POST = do_GET

    def feed(self, pipe):
        """The request's body, by its length or in chunks."""
        try:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pipe.write(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
            else:
                left = int(self.headers.get("Content-Length", 0))
                while left and (part := self.rfile.read(min(left, 65536))):
                    pipe.write(part)
                    left -= len(part)
            pipe.close()
        except BrokenPipeError:
            pass

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
