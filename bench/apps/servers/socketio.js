// A socket.io server. Several of them know nothing of each other, so that a client must come back to the one that it began with.
const server = require("http").createServer();
const { Server } = require("socket.io");
const io = new Server(server, { pingInterval: 1000, pingTimeout: 3000 });
io.on("connection", (socket) => {
  socket.on("echo", (value, answer) => answer(value));
  socket.on("join", (room, answer) => { socket.join(room); answer(); });
  socket.on("say", (room, text) => io.to(room).emit("said", text));
  socket.on("bye", () => socket.disconnect(true));
});
server.listen(process.argv[2], "127.0.0.1");
