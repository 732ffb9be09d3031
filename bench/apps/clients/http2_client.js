// The checks of Node's own clients: http2, and fetch.
const http2 = require("http2");
const fs = require("fs");
const { Readable } = require("stream");
const { main, same } = require("./common.js");

function connect(url, ca) {
  const session = http2.connect(url, { ca: fs.readFileSync(ca) });
  session.on("error", () => {});
  return session;
}

function ask(session, headers, body) {
  return new Promise((done, reject) => {
    const stream = session.request(headers);
    const parts = [];
    let status;
    const timer = setTimeout(() => reject(new Error("no answer within 10 s")), 10000);
    stream.on("response", (answer) => { status = answer[":status"]; });
    stream.on("data", (data) => parts.push(data));
    stream.on("error", (error) => { clearTimeout(timer); if (status === undefined) reject(error); });
    stream.on("close", () => { clearTimeout(timer); status === undefined ? reject(new Error(`closed without an answer, code ${stream.rstCode}`)) : done({ status, body: Buffer.concat(parts).toString() }); });
    body === undefined ? stream.end() : body.pipe(stream);
  });
}

main({
  // Fifty requests at once on a connection.
  async many({ url, ca }) {
    const session = connect(url, ca);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(session, { ":path": `/bytes/${i * 100}` })));
    same(answers.map((a) => a.body.length), Array.from({ length: 50 }, (_, i) => i * 100), "lengths");
    session.close();
  },
  // An upload of 20 MB that the origin refuses at once: the client gets the 413, and goes on.
  async early({ url, ca }) {
    const session = connect(url, ca);
    // Piece by piece: one buffer of 20 MiB is more than Node's client allows a session (maxSessionMemory).
    const pieces = Readable.from(Array.from({ length: 320 }, () => Buffer.alloc(65536, "x")));
    const answer = await ask(session, { ":path": "/limited", ":method": "POST" }, pieces);
    same([answer.status, /too l/i.test(answer.body)], [413, true], "answer");
    same((await ask(session, { ":path": "/bytes/3" })).body, "xxx", "the next answer");
    session.close();
  },
  async fetches({ url }) {
    same((await (await fetch(`${url}/gzip`)).text()).length, 100000, "length of what was compressed");
    same((await fetch(`${url}/nothing`)).status, 204, "status");
    same((await fetch(`${url}/bytes/10`, { method: "HEAD" })).headers.get("content-length") ?? "10", "10", "length");
    const answer = await fetch(`${url}/upload`, { method: "POST", body: new Blob(["x".repeat(500000)]).stream(), duplex: "half" });
    same((await answer.json()).length, 500000, "length");
    await Promise.all(Array.from({ length: 30 }, async (_, i) => same((await (await fetch(`${url}/bytes/${i}`)).text()).length, i, "length")));
  },
});
