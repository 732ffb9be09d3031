// Server-sent events in Node: /ticks each 100 ms, /five closes after five and goes on at Last-Event-ID, /quiet says nothing for 65 s.
const clients = new Set();
require("http").createServer((request, response) => {
  const [path] = request.url.split("?");
  if (path === "/clients") return response.end(`${clients.size}`);
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  clients.add(response);
  response.on("close", () => clients.delete(response));
  let number = Number(request.headers["last-event-id"] ?? -1) + 1, sent = 0;
  const send = () => { response.write(`id: ${number}\ndata: ${JSON.stringify({ number, at: Date.now() })}\n\n`); number++; sent++; };
  if (path === "/quiet") {
    response.write(": open\n\n");
    const timer = setTimeout(send, 65000);
    return response.on("close", () => clearTimeout(timer));
  }
  response.write("retry: 50\n\n");
  const timer = setInterval(() => { send(); if (path === "/five" && sent === 5) { clearInterval(timer); response.end(); } }, 100);
  response.on("close", () => clearInterval(timer));
}).listen(process.argv[2], "127.0.0.1");
