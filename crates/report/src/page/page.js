"use strict";
// The page is whole without this: it adds what a pointer finds, and the choice of what is drawn.
document.documentElement.classList.add("js");

const COLOURS = 12;
const taken = () => new Set([...document.querySelectorAll(".choose input:checked")].map((box) => box.dataset.c));

function show(number, colour) {
  for (const line of document.querySelectorAll(`.chosen .s[data-s="${number}"]`)) {
    line.classList.toggle("on", colour !== undefined);
    if (colour !== undefined) {
      line.style.setProperty("--c", `var(--c${colour})`);
      line.parentNode.append(line);
    }
  }
  for (const row of document.querySelectorAll(`.row[data-s="${number}"]`)) row.classList.toggle("off", colour === undefined);
}

for (const box of document.querySelectorAll(".choose input[type=checkbox]")) {
  box.addEventListener("change", () => {
    const key = box.closest(".key");
    if (box.checked) {
      const used = taken();
      let colour = 0;
      while (used.has(String(colour)) && colour < COLOURS - 1) colour++;
      box.dataset.c = colour;
      key.style.setProperty("--c", `var(--c${colour})`);
    } else {
      key.style.removeProperty("--c");
    }
    key.classList.toggle("off", !box.checked);
    show(box.dataset.s, box.checked ? box.dataset.c : undefined);
    if (!box.checked) delete box.dataset.c;
  });
}

for (const find of document.querySelectorAll(".find")) {
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    for (const key of find.parentNode.querySelectorAll(".key")) key.hidden = !key.textContent.toLowerCase().includes(wanted);
  });
}

// At most so many lines of a chart are said at once, those nearest to the pointer.
const SAID = 12;

for (const chart of document.querySelectorAll(".chart")) {
  const [plot, script] = [chart.querySelector(".plot"), chart.querySelector("script")];
  if (!plot || !script) continue;
  const data = JSON.parse(script.textContent);
  const cursor = document.createElementNS(plot.namespaceURI, "line");
  const tip = document.createElement("div");
  cursor.setAttribute("class", "cursor");
  tip.className = "tip";
  tip.hidden = true;
  chart.append(tip);

  const leave = () => {
    cursor.remove();
    tip.hidden = true;
  };
  const move = (event) => {
    const room = plot.getBoundingClientRect();
    const [x, y] = [(event.clientX - room.left) / room.width, (event.clientY - room.top) / room.height];
    const on = new Map([...plot.querySelectorAll(".s.on")].map((line) => [line.dataset.s, line]));
    const lines = data.lines.filter((line) => on.has(String(line.s)));
    const some = (at) => lines.some((line) => line.values[at]);
    let near = -1;
    data.at.forEach((at, i) => {
      if (some(i) && (near < 0 || Math.abs(at - x) < Math.abs(data.at[near] - x))) near = i;
    });
    if (x < -0.05 || x > 1.05 || y < -0.05 || y > 1.1 || near < 0) return leave();
    for (const side of ["x1", "x2"]) cursor.setAttribute(side, `${data.at[near] * 100}%`);
    cursor.setAttribute("y1", "0");
    cursor.setAttribute("y2", "100%");
    plot.append(cursor);
    const said = lines.filter((line) => line.values[near]);
    said.sort((a, b) => Math.abs(a.values[near][0] - y) - Math.abs(b.values[near][0] - y));
    const nearest = said.slice(0, SAID).sort((a, b) => a.values[near][0] - b.values[near][0]);
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: data.labels[near] }));
    for (const line of nearest) {
      const entry = document.createElement("div");
      const swatch = document.createElement("span");
      swatch.style.cssText = "display:inline-block;width:.6rem;height:.6rem;border-radius:2px;margin-right:.35rem";
      swatch.style.background = getComputedStyle(on.get(String(line.s))).getPropertyValue("--c");
      entry.append(swatch, `${line.values[near][1]}  ${line.name}`);
      tip.append(entry);
    }
    tip.hidden = false;
    const box = chart.getBoundingClientRect();
    const left = event.clientX - box.left + 14;
    const fits = left + tip.offsetWidth <= box.width;
    tip.style.left = `${fits ? left : Math.max(0, left - 28 - tip.offsetWidth)}px`;
    tip.style.top = `${Math.max(0, room.top - box.top)}px`;
  };
  chart.addEventListener("pointermove", move);
  chart.addEventListener("pointerleave", leave);
}

// What is folded is printed too, unless it is a book.
const LONGEST = 24;
addEventListener("beforeprint", () => {
  if (document.querySelectorAll("details").length > LONGEST) return;
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    addEventListener("afterprint", () => (folded.open = false), { once: true });
  }
});
