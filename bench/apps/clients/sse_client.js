// The checks of EventSource in Node (eventsource).
const { EventSource } = require("eventsource");
const { main, same, sleep } = require("./common.js");

// Collects events until there are enough.
function collect(url, wanted, ms = 10000) {
  return new Promise((done, reject) => {
    const source = new EventSource(url), events = [];
    const timer = setTimeout(() => { source.close(); reject(new Error(`${events.length} events of ${wanted} within ${ms} ms`)); }, ms);
    source.onmessage = (event) => {
      const value = JSON.parse(event.data);
      events.push({ number: value.number, lag: Date.now() - value.at });
      if (events.length === wanted) { clearTimeout(timer); source.close(); done(events); }
    };
  });
}

main({
  // Each event arrives when it is sent, not when a buffer is full.
  async ticks({ url }) {
    const events = await collect(`${url}/ticks`, 8);
    const late = events.filter((event) => event.lag > 500);
    if (late.length) throw new Error(`${late.length} of 8 events came more than 500 ms late`);
  },
  // The server closes after five events; the client comes again and says which was the last.
  async again({ url }) {
    same((await collect(`${url}/five`, 12)).map((event) => event.number), [...Array(12).keys()], "events");
  },
  // Twenty clients come and leave; the server learns it.
  async leave({ url }) {
    await Promise.all(Array.from({ length: 20 }, () => collect(`${url}/ticks`, 2)));
    for (let turn = 0; ; turn++) {
      const left = await (await fetch(`${url}/clients`)).text();
      if (left === "0") return;
      if (turn > 100) throw new Error(`the server still has ${left} clients after 2 s`);
      await sleep(20);
    }
  },
  async quiet({ url }) {
    const begun = Date.now();
    let errors = 0;
    await new Promise((done, reject) => {
      const source = new EventSource(`${url}/quiet`);
      source.onmessage = () => { source.close(); done(); };
      source.onerror = () => { errors++; source.close(); reject(new Error(`the stream ended after ${Math.round((Date.now() - begun) / 1000)} s`)); };
    });
    return "after 65 s";
  },
}, { quiet: 80 });
