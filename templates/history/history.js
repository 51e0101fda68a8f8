"use strict";
// The charts of a history: one of all models, one of each, a line for each target. Lines differ in colour, dashes and
// marks; a gap is not bridged. Whatever a chart shows stands in a table, too.

const told = JSON.parse(document.getElementById("page:history").textContent);
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];
const MARKS = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "rectRounded", "cross"];
const SERIES = 8;
const POINTED = "Point at a line: what moved it is told here.";
const chosen = { metric: told.metrics[0], relative: true, hidden: new Set() };

/** How the line of a target looks. */
function look(target) {
  const round = Math.floor(target / SERIES);
  return {
    borderColor: colour(`--series-${(target % SERIES) + 1}`),
    backgroundColor: colour(`--series-${(target % SERIES) + 1}`),
    borderDash: DASHES[(target + round) % DASHES.length],
    pointStyle: MARKS[(target + 3 * round) % MARKS.length],
    borderWidth: 2,
  };
}

/** Runs, [how often, what, …], as what stands in each release; in place, once. */
function unpack(series) {
  const all = (runs) => runs.flatMap((what, at) => (at % 2 ? Array(runs[at - 1]).fill(what) : []));
  for (const one of series) {
    if (one.isUnpacked) continue;
    for (const id of Object.keys(one.values)) one.values[id] = all(one.values[id]);
    if (one.told) one.told = all(one.told);
    one.isUnpacked = true;
  }
}

/** What the axis counts in, and how many of the metric's own units one of these is. */
function scaleOf() {
  if (chosen.relative) return [" %", 1];
  return chosen.metric.unit === "bytes" ? [" KiB", 1024] : ["", 1];
}

/** `72.6 KiB`, `36`; in the relative view `+55.3 %`. */
function amount(value) {
  return `${chosen.relative && value > 0 ? "+" : ""}${value.toLocaleString("en", { maximumFractionDigits: 1 })}${scaleOf()[0]}`;
}

/** `74,296 B`, `36`. */
function exactly(value) {
  return chosen.metric.unit === "bytes" ? bytes(value) : value.toLocaleString("en");
}

/** The values of one line as they are drawn; null is a gap. */
function drawnValues(one) {
  const values = one.values[chosen.metric.id];
  const first = values.find((value) => value !== null);
  const whole = chosen.relative ? first / 100 : scaleOf()[1];
  const from = chosen.relative ? 100 : 0; // differences from the first release, in percent
  return values.map((value) => (value === null || !whole ? null : value / whole - from));
}

/** A line for each release in which another compiler begins; with its name where the axis does not say it. */
const releaseMarks = {
  id: "releaseMarks",
  beforeDatasetsDraw(chart) {
    const { ctx, chartArea, scales } = chart;
    ctx.save();
    ctx.strokeStyle = colour("--dim");
    ctx.fillStyle = colour("--dim");
    ctx.font = `11px ${Chart.defaults.font.family}`;
    ctx.setLineDash([1, 3]);
    for (const mark of told.marks) {
      const x = scales.x.getPixelForValue(mark.at);
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      if (mark.text) ctx.fillText(mark.text, Math.min(x + 3, chartArea.right - 60), chartArea.top + 10);
    }
    ctx.restore();
  },
};

/** What is said of a point below its chart. */
function sentence(one, at) {
  const name = told.targets[one.target].name;
  const value = one.values[chosen.metric.id]?.[at];
  const shown = value === null || value === undefined ? "" : `: ${exactly(value)}`;
  return `${told.releases[at]}, ${name}${shown}${one.told?.[at] ? `. ${one.told[at]}` : ""}`;
}

/** Which targets have no value in a release, of those that are shown. */
function gapsAt(series, at) {
  const missing = series.filter((one) => !chosen.hidden.has(one.target) && (one.values[chosen.metric.id]?.[at] ?? null) === null);
  return missing.map((one) => told.targets[one.target].short);
}

function changeText(one, at) {
  const values = one.values[chosen.metric.id] ?? [];
  const before = values.slice(0, at).findLast((value) => value !== null);
  if (before === undefined || before === values[at]) return "";
  const change = values[at] - before;
  const percent = Math.abs((100 * change) / before);
  const shown = values[at] && change < 0 ? Math.min(percent, 99.9) : percent; // less than all is never −100.0 %
  const share = before ? ` (${change > 0 ? "+" : "−"}${shown.toFixed(1)} %)` : "";
  return `${change > 0 ? "+" : "−"}${exactly(Math.abs(change))}${share}`;
}

/** Chart.js's configuration of one chart. */
function configurationOf(series, caption, addressOf) {
  const shown = series.filter((one) => !chosen.hidden.has(one.target) && one.values[chosen.metric.id]);
  return {
    type: "line",
    plugins: [releaseMarks],
    data: {
      labels: told.releases,
      datasets: shown.map((one) => ({ ...look(one.target), label: told.targets[one.target].short, data: drawnValues(one), spanGaps: false, pointRadius: told.releases.length > 24 ? 2 : 4, pointHoverRadius: 7, tension: 0 })),
    },
    options: {
      interaction: { mode: "nearest", axis: "xy", intersect: false },
      scales: {
        x: { grid: { display: false }, ticks: { maxRotation: 45, autoSkipPadding: 8 } },
        y: { grace: "8%", ...(chosen.relative && { suggestedMin: -2, suggestedMax: 2 }), ticks: { maxTicksLimit: 6, callback: (value) => amount(value) } },
      },
      plugins: {
        legend: { display: false },
        tooltip: {
          displayColors: false,
          callbacks: {
            label: (item) => `${item.dataset.label}: ${exactly(shown[item.datasetIndex].values[chosen.metric.id][item.dataIndex])}`,
            afterLabel: (item) => changeText(shown[item.datasetIndex], item.dataIndex),
            footer: (items) => {
              const gaps = items.length ? gapsAt(series, items[0].dataIndex) : [];
              return gaps.length ? `no value: ${gaps.slice(0, 4).join(", ")}${gaps.length > 4 ? " …" : ""}` : "";
            },
          },
        },
      },
      onHover: (_event, items) => {
        if (items.length) caption.textContent = sentence(shown[items[0].datasetIndex], items[0].index);
      },
      onClick: (_event, items) => {
        if (items.length) location.hash = addressOf(shown[items[0].datasetIndex]);
      },
    },
  };
}

/** A chart with its heading. */
function add(place, title, link, series, addressOf, height) {
  const box = document.createElement("div");
  const heading = document.createElement("h3");
  const anchor = document.createElement("a");
  anchor.href = link;
  anchor.textContent = title;
  heading.append(anchor);
  const { figure, canvas } = pictureOf(`${title}: a line for each target over the releases; the tables below say the same`, POINTED, height);
  box.append(heading, figure);
  place.append(box);
  const draw = () => drawChart(canvas, () => configurationOf(series, figure.querySelector("figcaption"), addressOf));
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    unpack(series);
    draw();
  }, { rootMargin: "400px" });
  watch.observe(box);
}

function redraw() {
  for (const one of drawn) {
    const { canvas } = one.chart;
    one.chart.destroy();
    one.chart = new Chart(canvas, one.configured());
  }
}

/** The line and mark of a target, for the legend. */
function drawSwatch(canvas, target) {
  const scale = 2;
  [canvas.width, canvas.height] = [44 * scale, 14 * scale];
  const context = canvas.getContext("2d");
  const style = look(target);
  context.scale(scale, scale);
  context.strokeStyle = style.borderColor;
  context.fillStyle = style.borderColor;
  context.lineWidth = 2;
  context.setLineDash(style.borderDash);
  context.beginPath();
  context.moveTo(1, 7);
  context.lineTo(43, 7);
  context.stroke();
  context.setLineDash([]);
  Chart.helpers.drawPoint(context, { pointStyle: style.pointStyle, radius: 5, rotation: 0, borderWidth: 2 }, 22, 7);
}

function drawLegend() {
  const legend = document.querySelector(".legend");
  legend.replaceChildren();
  told.targets.forEach((target, at) => {
    const entry = document.createElement("li");
    const button = document.createElement("button");
    const swatch = document.createElement("canvas");
    button.type = "button";
    button.ariaPressed = String(!chosen.hidden.has(at));
    swatch.ariaHidden = "true";
    button.append(swatch, target.name);
    button.addEventListener("click", () => {
      if (!chosen.hidden.delete(at)) chosen.hidden.add(at);
      button.ariaPressed = String(!chosen.hidden.has(at));
      rememberChosen();
      redraw();
    });
    entry.append(button);
    legend.append(entry);
    drawSwatch(swatch, at);
  });
}

/** Puts what the charts show into the page's address. */
function rememberChosen() {
  const isFirst = chosen.metric === told.metrics[0];
  remember({
    metric: isFirst ? [] : [chosen.metric.id],
    values: chosen.relative ? [] : ["absolute"],
    hide: [...chosen.hidden].sort((one, other) => one - other).map((at) => told.targets[at].name),
  });
}

/** Shows what the page's address says. */
function showChosen() {
  const [id] = choicesOf("metric");
  const hidden = choicesOf("hide");
  const metric = Math.max(0, told.metrics.findIndex((one) => one.id === id));
  const targets = [...told.targets.keys()].filter((at) => hidden.includes(told.targets[at].name));
  chosen.metric = told.metrics[metric];
  chosen.relative = choicesOf("values")[0] !== "absolute";
  chosen.hidden = new Set(targets);
  document.getElementById("page:metric").selectedIndex = metric;
  document.getElementById("page:relative").checked = chosen.relative;
  for (const [at, button] of [...document.querySelectorAll(".legend button")].entries()) {
    button.ariaPressed = String(!chosen.hidden.has(at));
  }
  redraw();
}

function begin() {
  const section = document.querySelector(".pictures");
  section.hidden = false;
  document.getElementById("page:no-charts").remove();
  needCharts();
  drawLegend();
  const metric = document.getElementById("page:metric");
  for (const one of told.metrics) metric.add(new Option(one.label, one.id));
  metric.addEventListener("change", () => {
    chosen.metric = told.metrics[metric.selectedIndex];
    rememberChosen();
    redraw();
  });
  document.getElementById("page:relative").addEventListener("change", (event) => {
    chosen.relative = event.target.checked;
    rememberChosen();
    redraw();
  });
  onChoices(showChosen);
  add(document.querySelector(".total"), "All models", "#page:totals", told.total, () => "#page:totals", 320);
  for (const model of told.models) {
    add(document.querySelector(".multiples"), model.name, `#${model.address}`, model.series, (one) => `#${one.address}`, 260);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawLegend);
}

begin();
