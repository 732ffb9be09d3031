// A WebSocket server (ws), in clear or, with "tls", on HTTPS that offers HTTP/2 by ALPN.
const { WebSocketServer } = require("ws");
const fs = require("fs");
const [port, kind] = process.argv.slice(2);
const answer = (request, response) => { response.end(`hello ${request.httpVersion}`); };
const server = kind === "tls"
  ? require("http2").createSecureServer({ allowHTTP1: true, key: fs.readFileSync(process.env.KEY), cert: fs.readFileSync(process.env.CERT) }, answer)
  : require("http").createServer(answer);
const sockets = new WebSocketServer({ server, perMessageDeflate: true, maxPayload: 64 << 20, handleProtocols: (offered) => offered.has("chat") ? "chat" : false });
sockets.on("connection", (socket, request) => {
  if (request.url === "/bye") return socket.close(4001, "until tomorrow");
  if (request.url === "/ticks") {
    let number = 0;
    const timer = setInterval(() => socket.send(`${number++}`), 50);
    socket.on("close", () => clearInterval(timer));
    return;
  }
  if (request.url === "/pings") { socket.on("pong", (data) => socket.send(`pong ${data}`)); socket.ping("are you there"); return; }
  socket.on("message", (data, binary) => socket.send(data, { binary }));
});
server.listen(port, "127.0.0.1");
