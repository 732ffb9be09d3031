// What the clients in Node share: a check is an async function that does one thing and throws if that goes wrong.
const [name, address, text] = process.argv.slice(2);
const seconds = Number(text), scheme = process.env.SCHEME || "http";
const host = scheme === "https" ? address.replace("127.0.0.1", "localhost") : address;

// `limits` has the seconds of checks that take longer than others.
async function main(checks, limits = {}) {
  const result = { ok: 0, failed: 0, why: "", note: "" }, end = Date.now() + seconds * 1000;
  const context = { address: host, url: `${scheme}://${host}`, socketUrl: `${scheme.replace("http", "ws")}://${host}`, seconds, ca: process.env.CA };
  do {
    try {
      const note = await Promise.race([checks[name](context), late(limits[name] || seconds + 12)]);
      result.ok += 1;
      if (note) { result.note = note; break; }
      result.note = `${result.ok} times`;
    } catch (error) {
      console.error(error);
      result.failed += 1;
      result.why = `${error.name || "Error"}: ${error.code || ""} ${error.message || error}`.replace(/\s+/g, " ").slice(0, 300);
      break;
    }
  } while (Date.now() < end);
  console.log(JSON.stringify(result));
  process.exit(0);
}

const late = (s) => new Promise((_, reject) => setTimeout(() => reject(new Error(`not done after ${s} s`)), s * 1000).unref());
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function same(got, wanted, what = "answer") {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what} is ${`${a}`.slice(0, 120)}, not ${`${b}`.slice(0, 120)}`);
}

// The next event of an emitter, or an error if that comes first or none comes within ten seconds.
function once(emitter, event, ms = 10000) {
  return new Promise((done, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${event} within ${ms} ms`)), ms);
    emitter.once(event, (...values) => { clearTimeout(timer); done(values); });
    emitter.once("error", (error) => { clearTimeout(timer); reject(error); });
  });
}

module.exports = { main, same, once, sleep };
