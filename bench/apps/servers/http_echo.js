// An origin in Node: HTTP/1.1, or with "h2" HTTPS with HTTP/2 and HTTP/1.1.
const fs = require("fs");
const crypto = require("crypto");
const zlib = require("zlib");
const [port, kind] = process.argv.slice(2);
const LIMIT = 1 << 20;

function handle(request, response) {
  const [path] = request.url.split("?");
  if (path === "/limited") {
    // Refuses at once what is too long, without reading it.
    if (!(Number(request.headers["content-length"]) <= LIMIT)) {
      response.writeHead(413, { "content-type": "text/plain", "x-early": "yes" });
      return response.end("too long");
    }
  }
  if (path === "/headers") return response.end(JSON.stringify({ ...request.headers, peer: request.socket.remoteAddress }));
  if (path === "/nothing") { response.writeHead(204); return response.end(); }
  if (path === "/version") return response.end(request.httpVersion);
  if (path === "/gzip") { response.writeHead(200, { "content-encoding": "gzip" }); return response.end(zlib.gzipSync("x".repeat(100000))); }
  if (path === "/hints" && response.writeEarlyHints) { response.writeEarlyHints({ link: "</a.css>; rel=preload; as=style" }); return setTimeout(() => response.end("done"), 50); }
  if (path.startsWith("/bytes/")) return response.end(Buffer.alloc(Number(path.slice(7)), "x"));
  if (path.startsWith("/late/")) return setTimeout(() => response.end("late"), Number(path.slice(6)) * 1000);
  if (path === "/lines") {
    let number = 0;
    const timer = setInterval(() => { response.write(`${number++}\n`); if (number === 20) { clearInterval(timer); response.end(); } }, 20);
    return;
  }
  if (path === "/echo") { response.writeHead(200, { "content-type": "application/octet-stream" }); return request.pipe(response); }
  const hash = crypto.createHash("sha256");
  let length = 0;
  request.on("data", (data) => { hash.update(data); length += data.length; });
  request.on("end", () => response.end(JSON.stringify({ method: request.method, length, sha256: hash.digest("hex") })));
}

const server = kind === "h2"
  ? require("http2").createSecureServer({ allowHTTP1: true, key: fs.readFileSync(process.env.KEY), cert: fs.readFileSync(process.env.CERT) }, handle)
  : require("http").createServer(handle);
server.requestTimeout = 0;
server.listen(port, "127.0.0.1");
