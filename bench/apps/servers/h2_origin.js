// An origin in Node that speaks HTTP/2 alone, in clear or with "tls". /fate/NAME says what became of the request of that name.
const crypto = require("crypto");
const fs = require("fs");
const http2 = require("http2");
const { Readable } = require("stream");
const [port, kind] = process.argv.slice(2);
const fates = new Map();

// Random bytes, made as they are asked for.
function* bytes(length, fate, hash) {
  for (let left = length; left > 0; left -= 65536) {
    const piece = crypto.randomBytes(Math.min(left, 65536));
    hash.update(piece);
    fate.sent += piece.length;
    yield piece;
  }
}

// The paths are /WHAT/ARGUMENT/NAME.
const paths = {
  // As many bytes as the argument says; a trailer has their digest.
  body(stream, fate, length) {
    const hash = crypto.createHash("sha256");
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-sha256": hash.digest("hex") }));
    Readable.from(bytes(Number(length), fate, hash), { objectMode: false }).pipe(stream);
  },
  // What comes goes back, and so do its trailers.
  echo(stream, fate) {
    let there = {};
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("trailers", (fields) => { there = fields; });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-back": there["x-there"] || "none", "x-back-bin": there["x-there-bin"] || "none" }));
    stream.on("data", (data) => { fate.received += data.length; });
    stream.pipe(stream);
  },
  // The length and the digest of what came.
  hash(stream, fate) {
    const hash = crypto.createHash("sha256");
    stream.on("data", (data) => { hash.update(data); fate.received += data.length; });
    stream.on("end", () => {
      stream.respond({ ":status": 200 });
      stream.end(JSON.stringify({ length: fate.received, sha256: hash.digest("hex") }));
    });
  },
  // Takes what comes, and never answers.
  held(stream, fate) {
    stream.on("data", (data) => { fate.received += data.length; });
  },
  // Takes nothing for as many milliseconds, then as `hash`.
  stalled(stream, fate, ms) {
    setTimeout(() => paths.hash(stream, fate), Number(ms));
  },
  fate(stream, fate, name) {
    stream.respond({ ":status": 200 });
    stream.end(JSON.stringify(fates.get(name) || null));
  },
};

// `code` is null as long as the stream is open, and 0 if it ended whole.
function handle(stream, headers) {
  const [, what, argument, name] = headers[":path"].split("/");
  const fate = { received: 0, sent: 0, code: null };
  if (name) fates.set(name, fate);
  stream.on("error", () => {});
  stream.on("close", () => { fate.code = stream.rstCode; });
  if (paths[what]) return paths[what](stream, fate, argument);
  stream.respond({ ":status": 404 });
  stream.end();
}

const options = { maxSessionMemory: 200 };
const server = kind === "tls"
  ? http2.createSecureServer({ ...options, key: fs.readFileSync(process.env.KEY), cert: fs.readFileSync(process.env.CERT) })
  : http2.createServer(options);
server.on("stream", handle);
server.on("sessionError", () => {});
server.listen(port, "127.0.0.1");
