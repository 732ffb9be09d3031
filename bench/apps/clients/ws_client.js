// The checks of a WebSocket client in Node (ws).
const WebSocket = require("ws");
const fs = require("fs");
const { main, same, once } = require("./common.js");
const options = () => (process.env.SCHEME === "https" ? { ca: fs.readFileSync(process.env.CA) } : {});

main({
  async echo({ socketUrl }) {
    const socket = new WebSocket(`${socketUrl}/`, options());
    await once(socket, "open");
    for (const body of ["text, ä", "x".repeat(70000)]) {
      socket.send(body);
      same(`${(await once(socket, "message"))[0]}`, body);
    }
    socket.ping("p");
    same(`${(await once(socket, "pong"))[0]}`, "p", "pong");
    socket.close(1000, "done");
    same((await once(socket, "close"))[0], 1000, "close code");
  },
  // Fifty sockets at once, each of which hears its own messages only.
  async many({ socketUrl }) {
    await Promise.all(Array.from({ length: 50 }, async (_, i) => {
      const socket = new WebSocket(`${socketUrl}/`, options());
      await once(socket, "open");
      for (let turn = 0; turn < 5; turn++) {
        socket.send(`${i} ${turn}`);
        same(`${(await once(socket, "message"))[0]}`, `${i} ${turn}`);
      }
      socket.close();
    }));
  },
  // The server pings, the client answers by itself.
  async pings({ socketUrl }) {
    const socket = new WebSocket(`${socketUrl}/pings`, options());
    same(`${(await once(socket, "message"))[0]}`, "pong are you there");
    socket.close();
  },
});
