"use strict";
const live = document.getElementById("live");
const source = new EventSource("events" + location.search);
source.onmessage = (event) => {
  const parts = JSON.parse(event.data);
  const shape = document.getElementById("shape");
  if ("shape" in parts && parts.shape !== shape.textContent) return location.reload();
  for (const [name, html] of Object.entries(parts)) {
    const element = document.getElementById(name);
    if (element) element.innerHTML = html;
  }
  live.textContent = "live";
};
source.onerror = () => {
  live.textContent = "not connected since " + new Date().toLocaleTimeString() + ": what is shown is old";
};
