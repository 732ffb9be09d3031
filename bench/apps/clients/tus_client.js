// The checks of a tus client (tus-js-client): uploads that are resumed where they were interrupted.
const tus = require("tus-js-client");
const { main, same, sleep } = require("./common.js");
const BODY = Buffer.alloc(8 << 20, "abcdefgh");

function upload(url, more, watch = () => {}) {
  return new Promise((done, reject) => {
    const u = new tus.Upload(BODY, {
      endpoint: `${url}/files`, retryDelays: null, metadata: { filename: "a" }, ...more,
      onError: reject, onSuccess: () => done(u.url), onProgress: (sent) => watch(u, sent, done),
    });
    u.start();
  });
}

async function offset(url) {
  const answer = await fetch(url, { method: "HEAD", headers: { "tus-resumable": "1.0.0" } });
  return Number(answer.headers.get("upload-offset"));
}

main({
  async whole({ url }) { same(await offset(await upload(url, {})), BODY.length, "offset"); },
  async chunks({ url }) { same(await offset(await upload(url, { chunkSize: 1 << 20 })), BODY.length, "offset"); },
  // Leaves in the middle; what came until then is kept, and the rest is sent from there.
  async resume({ url }) {
    let left = false;
    const where = await upload(url, { chunkSize: 6 << 20 }, async (u, sent, done) => {
      if (left || sent < 3 << 20) return;
      left = true;
      await u.abort(false);
      done(u.url);
    });
    await sleep(200);
    const kept = await offset(where);
    if (!(kept >= 0 && kept <= BODY.length)) throw new Error(`offset is ${kept}`);
    await upload(url, { uploadUrl: where });
    same(await offset(where), BODY.length, "offset");
  },
});
