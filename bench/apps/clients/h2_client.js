// The checks of a client of HTTP/2 before servers/h2_origin.js: bodies, trailers, cancellation, readers that stall, a steady load.
const crypto = require("crypto");
const fs = require("fs");
const http2 = require("http2");
const { main, same, sleep } = require("./common.js");

const MIB = 1 << 20, CANCEL = http2.constants.NGHTTP2_CANCEL;
const sha256 = (data) => crypto.createHash("sha256").update(data).digest("hex");
const times = (n, act) => Promise.all(Array.from({ length: n }, (_, i) => act(i)));
let names = 0;
const fresh = () => `${process.pid}-${names++}`;

function connect({ url, ca }) {
  const session = http2.connect(url, { ca: fs.readFileSync(ca), maxSessionMemory: 200 });
  session.on("error", (error) => { session.why = error; });
  session.on("goaway", (code, last) => { session.why = new Error(`GOAWAY, code ${code}, last stream ${last}`); });
  return session;
}

// Sends a request. `stream.head` and `stream.answer` are promises of the head and of all that came back. A request with `open` has no
// end yet, and of an answer with `stall` nothing is read before `stream.take`.
function request(session, path, { body, trailers, headers = {}, open = false, stall = false, ms = 10000 } = {}) {
  const post = body !== undefined || open;
  const stream = session.request({ ":path": path, ":method": post ? "POST" : "GET", ...headers }, { waitForTrailers: !!trailers, endStream: !post });
  if (trailers) stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  const got = { length: 0, trailers: {} }, hash = crypto.createHash("sha256"), begin = [];
  stream.on("trailers", (fields) => { got.trailers = fields; });
  stream.take = () => stream.on("data", (data) => {
    hash.update(data);
    got.length += data.length;
    if (got.length < 65536) begin.push(data);
  });
  stream.head = new Promise((done, reject) => {
    stream.on("response", (fields) => { got.status = fields[":status"]; done(fields); });
    stream.on("close", () => reject(new Error(`${path}: closed without a head`)));
  });
  stream.answer = new Promise((done, reject) => {
    const fail = (why) => { clearTimeout(timer); reject(new Error(`${path}: ${why} (status ${got.status}, ${got.length} bytes)`)); };
    const timer = setTimeout(() => { fail(`not whole after ${ms} ms`); stream.close(CANCEL); }, ms);
    stream.on("error", (error) => fail(error.message));
    stream.on("close", () => {
      const text = Buffer.concat(begin).toString();
      if (stream.rstCode) return fail(`reset with code ${stream.rstCode}`);
      if (got.status !== 200) return fail(got.status ? text : `no answer, ${session.why}`);
      clearTimeout(timer);
      done({ ...got, sha256: hash.digest("hex"), text });
    });
  });
  for (const promise of [stream.head, stream.answer]) promise.catch(() => {});
  if (!stall) stream.take();
  if (body !== undefined) stream.end(body);
  return stream;
}

async function download(session, length = MIB) {
  const got = await request(session, `/body/${length}`).answer;
  same([got.length, got.sha256], [length, got.trailers["x-sha256"]], "length and digest of a download");
}

async function upload(session, length = MIB, headers = {}) {
  const body = crypto.randomBytes(length);
  const got = JSON.parse((await request(session, "/hash", { body, headers }).answer).text);
  same(got, { length, sha256: sha256(body) }, "length and digest of an upload");
}

async function echo(session, length = MIB) {
  const body = crypto.randomBytes(length), value = fresh();
  const got = await request(session, "/echo", { body, trailers: { "x-there": value, "x-there-bin": "AP8" } }).answer;
  same([got.length, got.sha256], [length, sha256(body)], "length and digest of an echo");
  same([got.trailers["x-back"], got.trailers["x-back-bin"]], [value, "AP8"], "trailers there and back");
}

// What the origin says of a request, once `enough` holds.
async function fate(session, name, enough, what) {
  for (const end = Date.now() + 3000; ;) {
    const known = JSON.parse((await request(session, `/fate/${name}`).answer).text);
    if (known && enough(known)) return known;
    if (Date.now() > end) throw new Error(`after 3 s the origin does not see ${what}: ${JSON.stringify(known)}`);
    await sleep(10);
  }
}

const ended = (session, name) => fate(session, name, (known) => known.code !== null, "a stream cancelled");

// A cancellation again and again, while a download on the same connection comes whole, and others after it.
function cancels(act) {
  return async (context) => {
    const session = connect(context);
    const beside = download(session, 8 * MIB);
    beside.catch(() => {});
    for (let i = 0; i < 5; i++) {
      await act(session, fresh(), i % 2);
      await times(3, () => download(session, 10000));
    }
    await beside;
    await times(2, () => upload(session));
    session.close();
  };
}

main({
  async downloads(context) {
    const session = connect(context);
    await times(10, () => download(session));
    session.close();
  },
  // Half of them say how long they are.
  async uploads(context) {
    const session = connect(context);
    await times(10, (i) => upload(session, MIB, i % 2 ? { "content-length": MIB } : {}));
    session.close();
  },
  async echoes(context) {
    const session = connect(context);
    await times(6, () => echo(session));
    session.close();
  },
  // Trailers behind bodies of no byte, of one, and of a mebibyte.
  async trailers(context) {
    const session = connect(context);
    for (const length of [0, 1, MIB]) await times(5, () => echo(session, length));
    await download(session, 0);
    session.close();
  },
  // As soon as the request has left, and while the origin does not answer it.
  cancel_head: cancels(async (session, name) => {
    const early = request(session, "/held");
    setImmediate(() => early.close(CANCEL));
    const late = request(session, `/held/0/${name}`);
    await fate(session, name, () => true, "a request");
    late.close(CANCEL);
    await ended(session, name);
  }),
  // At the head of a body of a gibibyte, and amid it.
  cancel_body: cancels(async (session, name, amid) => {
    const stream = request(session, `/body/${1 << 30}/${name}`);
    await stream.head;
    for (let come = 0; amid && come < MIB;) come += await new Promise((done) => stream.once("data", (data) => done(data.length)));
    stream.close(CANCEL);
    await ended(session, name);
  }),
  // Amid an upload: before the head, and behind it with both directions open.
  cancel_upload: cancels(async (session, name, behind) => {
    const stream = request(session, `/${behind ? "echo" : "held"}/0/${name}`, { open: true });
    stream.write(crypto.randomBytes(MIB));
    if (behind) await stream.head;
    await fate(session, name, (known) => known.received >= (behind ? MIB : 100000), "an upload");
    stream.close(CANCEL);
    await ended(session, name);
  }),
  // A client takes nothing of 32 MiB; others on the connection and beside it are served, and the origin waits. Then all of it comes.
  async reader(context) {
    const session = connect(context), other = connect(context), name = fresh();
    const slow = request(session, `/body/${32 * MIB}/${name}`, { stall: true, ms: 30000 });
    await slow.head;
    for (let i = 0; i < 10; i++) await Promise.all([download(session), upload(session), download(other)]);
    const { sent } = await fate(session, name, () => true, "the slow one");
    if (sent >= 16 * MIB) throw new Error(`${sent} bytes of a body that its client does not take have left the origin`);
    slow.take();
    const got = await slow.answer;
    same([got.length, got.sha256], [32 * MIB, got.trailers["x-sha256"]], "length and digest of the slow one");
    session.close();
    other.close();
  },
  // The origin takes nothing of an upload for half a second; others on the connection are served. Then all of it goes.
  async taker(context) {
    const session = connect(context), body = crypto.randomBytes(8 * MIB);
    const slow = request(session, "/stalled/500", { body });
    let quick = 0;
    for (const end = Date.now() + 400; Date.now() < end; quick++) await Promise.all([download(session), upload(session)]);
    if (quick < 3) throw new Error(`only ${quick} others were served beside an upload that stalls`);
    same(JSON.parse((await slow.answer).text), { length: body.length, sha256: sha256(body) }, "length and digest of the slow one");
    session.close();
  },
  // Six connections cancel 250 requests each, a few milliseconds after they began; downloads on six others go on.
  async resets(context) {
    const quiet = await times(6, async () => {
      const session = connect(context), stream = request(session, `/body/${1 << 30}`, { ms: 60000 });
      stream.on("data", () => { stream.pause(); setTimeout(() => stream.resume(), 5); });
      await stream.head;
      return { session, stream };
    });
    const sessions = await times(6, () => connect(context));
    for (let i = 0; i < 1500; i++) {
      const stream = request(sessions[i % 6], "/held");
      await sleep(3);
      stream.close(CANCEL);
    }
    await sleep(200);
    const broken = quiet.filter(({ stream }) => stream.closed);
    const why = broken.length && await broken[0].stream.answer.catch((error) => error.message);
    if (broken.length) throw new Error(`${broken.length} of 6 downloads of others are broken: ${why}`);
    for (const session of [...sessions, ...quiet.map((one) => one.session)]) session.destroy();
  },
  // Four connections with four requests each at any time, a millisecond between two.
  async steady(context) {
    const end = Date.now() + context.seconds * 1000;
    const lengths = [10000, 100000, MIB];
    const kinds = lengths.flatMap((length) => [(session) => download(session, length), (session) => upload(session, length)]);
    let whole = 0, failed = 0, why;
    await times(4, async () => {
      const session = connect(context);
      await times(4, async (i) => {
        for (let turn = i; Date.now() < end; turn++) {
          try { await kinds[turn % kinds.length](session); whole += 1; } catch (error) { failed += 1; why = why || error; }
          await sleep(1);
        }
      });
      session.close();
    });
    if (failed) throw new Error(`${failed} of ${whole + failed} failed: ${why.message}`);
    return `${whole} requests`;
  },
});
