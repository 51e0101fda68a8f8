"use strict";
// The pictures of a cell, drawn when it is first opened from the tables that stand in it: the executables by size on
// both sides, and the way from base to head by cause.

const SHOWN = 400; // rectangles; smaller ones could not be seen
const HIGHEST = 340; // pixels of the larger side's treemap; the other has as much less as its code is smaller
const LOWEST = 40; // and is still to be seen

/** The dispatches of a cell: name, address, and the size of the code on both sides (null where a side has none). */
function dispatchesOf(cell) {
  const table = cell.querySelector("table.dispatches[data-code]");
  return [...(table?.tBodies[0].rows ?? [])].map((row) => {
    const [base, head] = sidesOf(row.cells[Number(table.dataset.code)]);
    const { side } = row.dataset;
    return {
      name: row.cells[0].textContent,
      kind: row.cells[1].textContent,
      address: row.id || row.dataset.to,
      base: side === "head" ? null : base,
      head: side === "base" ? null : head,
    };
  });
}

/** Grown, shrunk or the same: the name of a colour. */
function fillOf({ base, head }) {
  if (base === head) return "--fill-same";
  return (head ?? 0) > (base ?? 0) ? "--fill-up" : "--fill-down";
}

/** Short enough for a rectangle: `▲ dispatch_9`, its kind and its size. */
function labelOf(dispatch, size) {
  const mark = { "--fill-up": "▲ ", "--fill-down": "▼ " }[fillOf(dispatch)] ?? "";
  return [mark + (dispatch.name.match(/dispatch_\d+/)?.[0] ?? dispatch.name), dispatch.kind, bytes(size)];
}

function sizesOf({ base, head }) {
  if (base === head) return bytes(head);
  const words = (size) => (size === null ? "–" : bytes(size));
  return `${words(base)} → ${words(head)}`;
}

/** A treemap of one side: areas are sizes, colours say what became of them; a click goes to the row. */
function treemapOf(dispatches, side) {
  const tree = dispatches.filter((one) => one[side] > 0);
  tree.sort((one, other) => other[side] - one[side]);
  return () => ({
    type: "treemap",
    data: {
      datasets: [{
        tree: tree.slice(0, SHOWN),
        key: side,
        spacing: 0.5,
        borderWidth: 0,
        backgroundColor: (context) => colour(context.raw ? fillOf(dispatchFor(context)) : "--fill-same"),
        labels: {
          display: true,
          overflow: "hidden",
          color: colour("--on-fill"),
          font: { size: 10 },
          formatter: (context) => labelOf(dispatchFor(context), context.raw.v),
        },
      }],
    },
    options: {
      onClick: (event, [hit]) => {
        if (hit) location.hash = dispatchFor(hit.element.$context).address;
      },
      plugins: {
        legend: { display: false },
        tooltip: { callbacks: { title: ([item]) => dispatchFor(item).name, label: (item) => sizesOf(dispatchFor(item)) } },
      },
    },
  });
}

/** The dispatch behind a rectangle: the plugin keeps it below the value that it adds up. */
function dispatchFor(item) {
  const data = item.raw._data;
  return data.children?.[0] ?? data;
}

/** The way from base to head: one bar for each cause, each beginning where the one above ends. */
function waterfallOf(falls) {
  let sum = 0;
  const bars = falls.map(({ change, isSum }) => {
    const begin = isSum ? 0 : sum;
    sum = isSum ? sum : sum + change;
    return [begin, begin + change];
  });
  return () => ({
    type: "bar",
    data: {
      labels: falls.map(({ name }) => name),
      datasets: [{
        data: bars,
        backgroundColor: falls.map(({ change }) => colour(change > 0 ? "--fill-up" : "--fill-down")),
      }],
    },
    options: {
      indexAxis: "y",
      scales: { x: { title: { display: true, text: "bytes, from base" }, ticks: { maxRotation: 0, maxTicksLimit: 6 } } },
      plugins: {
        legend: { display: false },
        tooltip: { callbacks: { label: (item) => `${falls[item.dataIndex].words}` } },
      },
    },
  });
}

function fallsOf(cell) {
  const rows = [...(cell.querySelector("table.falls")?.tBodies[0].rows ?? [])];
  return rows.map((row, at) => ({
    name: row.cells[0].textContent,
    words: row.cells[1].textContent,
    change: sidesOf(row.cells[1])[1],
    isSum: at === rows.length - 1,
  }));
}

/** Adds a figure and draws its chart, which needs its place in the page first. */
function addPicture(place, label, caption, height, configured) {
  const { figure, canvas } = pictureOf(label, caption, height);
  place.append(figure);
  drawChart(canvas, configured);
}

/** Puts all pictures of a cell into it, once. */
function drawPictures(cell) {
  const name = cell.querySelector("h3").textContent;
  const falls = fallsOf(cell);
  if (falls.length > 2) {
    const caption = "From base to head; the table above has the numbers.";
    const height = 70 + 26 * falls.length;
    addPicture(cell.querySelector(".beside"), `The artifact's change by cause, ${name}`, caption, height, waterfallOf(falls));
  }
  const dispatches = dispatchesOf(cell);
  const pictures = document.createElement("div");
  pictures.className = "pictures";
  cell.querySelector(".sides").after(pictures);
  const isSame = dispatches.every(({ base, head }) => base === head);
  const sizesOn = (side) => dispatches.map((one) => one[side] ?? 0).filter((size) => size > 0);
  const total = (sizes) => sizes.reduce((one, other) => one + other, 0);
  const largest = Math.max(total(sizesOn("base")), total(sizesOn("head")));
  for (const side of isSame ? ["head"] : ["base", "head"]) {
    const sizes = sizesOn(side);
    if (!sizes.length) continue;
    const sum = `${sizes.length} dispatches, ${bytes(total(sizes))} of code`;
    const height = Math.max(LOWEST, Math.round((HIGHEST * total(sizes)) / largest)); // one scale for both sides
    const colours = isSame ? "the same on both sides" : `${side}: ${sum}; ▲ red grows, ▼ green shrinks, grey stays`;
    const caption = `${isSame ? `${sum}, ` : ""}${colours}. The table of all dispatches has the numbers; a click goes there.`;
    addPicture(pictures, `Executables by size on ${side}, ${name}`, caption, height, treemapOf(dispatches, side));
  }
}

/** Operations after each pass on both sides; marks stand where the sides part. The data is parted by `|`. */
function passesOf(data) {
  const [passes, marks] = [data.passes, data.marks].map((text) => text.split("|"));
  const [base, head] = [data.base, data.head].map((text) => text.split("|").map((line) => (line ? Number(line) : null)));
  const counts = [...base, ...head].filter((count) => count !== null);
  const isWide = Math.min(...counts) > 0 && Math.max(...counts) > 10 * Math.min(...counts);
  const sideLine = (label, data, name, borderDash) => ({
    label, data, borderDash, borderColor: colour(name), backgroundColor: colour(name), borderWidth: 2, pointRadius: 0, stepped: true, pointStyle: "line",
  });
  const marked = marks.map((words, at) => [at, words]).filter(([, words]) => words);
  const mark = ([at, words], number) => ({
    label: `${words}: ${passes[at]}`,
    data: passes.map((_, place) => (place === at ? (head[at] ?? base[at]) : null)),
    borderColor: colour("--ink"),
    backgroundColor: colour("--fill-up"),
    pointStyle: ["triangle", "rectRot"][number],
    pointRadius: 8,
    pointHoverRadius: 8,
    showLine: false,
  });
  return () => ({
    type: "line",
    data: {
      labels: passes,
      datasets: [...marked.map(mark), sideLine("base", base, "--series-1", [6, 3]), sideLine("head", head, "--series-2", [])],
    },
    options: {
      interaction: { mode: "index", intersect: false },
      scales: {
        x: { ticks: { display: false }, grid: { display: false }, title: { display: true, text: "passes, in the compiler's order" } },
        y: { type: isWide ? "logarithmic" : "linear", title: { display: true, text: `operations${isWide ? ", log scale" : ""}` } },
      },
      plugins: { legend: { labels: { usePointStyle: true } }, tooltip: { filter: (item) => item.dataset.showLine !== false } },
    },
  });
}

function drawTrace(trace) {
  const name = trace.querySelector("summary").textContent;
  const caption = "Operations after each pass; a gap is where the next kind of code begins. The table has what differs.";
  const { figure, canvas } = pictureOf(name, caption, 300);
  trace.querySelector("summary").after(figure);
  drawChart(canvas, passesOf(trace.dataset));
}

document.addEventListener("toggle", ({ target }) => {
  if (!target.open) return;
  if (target.matches(".cell") && !target.querySelector(".pictures")) drawPictures(target);
  if (target.matches(".trace") && !target.querySelector("figure")) drawTrace(target);
}, true);
