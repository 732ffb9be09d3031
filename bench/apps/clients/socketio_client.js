// The checks of socket.io's client in Node.
const { io } = require("socket.io-client");
const { main, same, once, sleep } = require("./common.js");

async function open(url, transports, more = {}) {
  const socket = io(url, { transports, forceNew: true, reconnection: false, ...more });
  await new Promise((done, reject) => { socket.once("connect", done); socket.once("connect_error", reject); setTimeout(() => reject(new Error("not connected within 8 s")), 8000).unref(); });
  return socket;
}

async function echoes(socket) {
  for (const value of ["a", { b: [1, 2] }, "x".repeat(50000), Buffer.from([0, 255])]) same(await socket.timeout(5000).emitWithAck("echo", value), value);
}

main({
  async polling({ url }) { const s = await open(url, ["polling"]); await echoes(s); s.close(); },
  async websocket({ url }) { const s = await open(url, ["websocket"]); await echoes(s); s.close(); },
  // Begins with long polls, and goes on over a WebSocket.
  async upgrade({ url }) {
    const s = await open(url, ["polling", "websocket"]);
    for (let turn = 0; s.io.engine.transport.name !== "websocket"; turn++) {
      if (turn > 200) throw new Error("still polls after 4 s");
      await sleep(20);
    }
    await echoes(s);
    s.close();
  },
  async rooms({ url }) {
    const sockets = await Promise.all(Array.from({ length: 10 }, (_, i) => open(url, [i % 2 ? "websocket" : "polling"])));
    const room = `room ${Math.random()}`;
    await Promise.all(sockets.map((s) => s.timeout(5000).emitWithAck("join", room)));
    const heard = Promise.all(sockets.map((s) => once(s, "said")));
    sockets[0].emit("say", room, "hello");
    same((await heard).flat(), Array(10).fill("hello"), "what was heard");
    sockets.forEach((s) => s.close());
  },
  // The server ends it; the client comes again by itself.
  async again({ url }) {
    const s = await open(url, ["polling", "websocket"], { reconnection: true, reconnectionDelay: 10 });
    const over = once(s, "disconnect");
    s.emit("bye");
    await over;
    s.connect();
    await once(s, "connect");
    await echoes(s);
    s.close();
  },
});
