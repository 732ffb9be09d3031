// Reads recorded connections, each a file, with Node's llhttp, and prints the requests in them: see serve/parsers.rs.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { Duplex } from "node:stream";

const fnv = (body) => {
  let h = 2166136261;
  for (const b of body) h = Math.imul(h ^ b, 16777619);
  return h >>> 0;
};

const read = (raw) =>
  new Promise((done) => {
    const lines = [];
    let open = 0;
    const server = createServer({ maxHeaderSize: 1 << 20, keepAliveTimeout: 0 }, (request, response) => {
      const body = [];
      open += 1;
      request.on("data", (piece) => body.push(piece));
      request.on("end", () => {
        open -= 1;
        const all = Buffer.concat(body);
        const nonce = request.rawHeaders.filter((_, i, of) => i % 2 === 1 && of[i - 1].toLowerCase() === "x-nonce");
        lines.push(`${request.method} ${request.url} ${nonce.join(",")} ${all.length} ${fnv(all)}`);
        response.end();
      });
      request.on("error", () => {});
    });
    let ending = "end";
    server.on("clientError", (error) => {
      ending = /EOF/.test(error.code) ? "cut" : `malformed ${error.code}`;
    });
    const stream = new Duplex({ read() {}, write: (_piece, _encoding, next) => next(), final: (next) => next() });
    server.emit("connection", stream);
    stream.push(raw);
    // Until nothing has happened for a while; then the end, which shows whether a request was left open.
    let quiet = 0;
    let known = -1;
    const look = () => {
      quiet = lines.length === known ? quiet + 1 : 0;
      known = lines.length;
      if (quiet < 50) return void setImmediate(look);
      if (open > 0) ending = "cut";
      stream.push(null);
      let left = 20;
      const last = () => (left-- > 0 ? setImmediate(last) : done([...lines, ending]));
      last();
    };
    look();
  });

for (const name of process.argv.slice(2)) {
  for (const line of await read(readFileSync(name))) console.log(line);
}
