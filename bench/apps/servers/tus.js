// A tus server (@tus/server) that keeps uploads in a folder.
const { Server } = require("@tus/server");
const { FileStore } = require("@tus/file-store");
const server = new Server({ path: "/files", relativeLocation: true, datastore: new FileStore({ directory: process.argv[3] }) });
const listener = require("http").createServer(server.handle.bind(server));
listener.requestTimeout = 0;
listener.listen(process.argv[2], "127.0.0.1");
