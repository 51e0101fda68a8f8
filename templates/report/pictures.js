"use strict";
// The pictures of a cell, drawn when it is first opened: where its bytes went, and the passes of its traced dispatches.

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

/** What changed in a cell, where the page has it. */
function drawCell(cell) {
  const place = changeAt(cell.id);
  if (!place?.[4]) return;
  const picture = document.createElement("div");
  picture.className = "pictures";
  (cell.querySelector(".sides") ?? cell.lastElementChild).before(picture);
  drawMap(picture, place, `What changed in ${cell.querySelector("h3").textContent}, by bytes`, 260, `zoom:${cell.id}`);
}

function drawTrace(trace) {
  const name = trace.querySelector("summary").textContent;
  const caption = "Operations after each pass; a gap is where the next kind of code begins. The table has what differs.";
  const { figure, canvas } = pictureOf(name, caption, 300);
  trace.querySelector("summary").after(figure);
  drawChart(canvas, passesOf(JSON.parse(trace.querySelector("[data-picture]").dataset.picture)));
}

document.addEventListener("toggle", ({ target }) => {
  if (!target.open) return;
  if (target.matches(".cell") && !target.querySelector(".treemap")) drawCell(target);
  if (target.matches(".trace") && !target.querySelector("figure")) drawTrace(target);
}, true);
