"use strict";
const live = document.getElementById("live");
const source = new EventSource("events" + location.search);
const colours = { bad: "%23c02a2a", warn: "%23b8790f", good: "%231f7a43" };
source.onmessage = (event) => {
  const parts = JSON.parse(event.data);
  const shape = document.getElementById("shape");
  if ("shape" in parts && parts.shape !== shape.textContent) return location.reload();
  for (const [name, html] of Object.entries(parts)) {
    const element = document.getElementById(name);
    if (element) element.innerHTML = html;
  }
  if ("title" in parts) document.title = document.getElementById("title").textContent;
  if ("tone" in parts) {
    const icon = document.getElementById("icon");
    icon.href = icon.href.replace(/%23[0-9a-f]{6}/, colours[parts.tone] || colours.good);
  }
  live.textContent = "live";
  live.className = "";
};
source.onerror = () => {
  live.textContent = "not connected since " + new Date().toLocaleTimeString() + ": what is shown is old";
  live.className = "bad";
};
