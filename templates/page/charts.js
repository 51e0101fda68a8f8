"use strict";
// Charts: the library stands in the page as text and is run when the first chart is to be drawn. Colours are those of
// the page's style; nothing moves. A chart repeats what a table beside it says.

const drawn = [];

/** The value of one of the style's colours. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Runs the library, once; the page's policy knows its text. */
function needCharts() {
  if (globalThis.Chart) return;
  for (const kept of document.querySelectorAll("script.library")) {
    const script = document.createElement("script");
    script.textContent = kept.textContent;
    document.head.append(script);
  }
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
}

function useColours() {
  Chart.defaults.color = colour("--ink");
  Chart.defaults.borderColor = colour("--line");
  Chart.defaults.backgroundColor = colour("--fill-same");
}

/** Draws a chart into a figure; `configured` makes Chart.js's configuration anew whenever the colours change. */
function drawChart(canvas, configured) {
  needCharts();
  useColours();
  drawn.push({ chart: new Chart(canvas, configured()), configured });
}

/** A figure with an empty canvas: `label` is its name, `caption` what stands below it. */
function pictureOf(label, caption, height) {
  const figure = document.createElement("figure");
  const picture = document.createElement("div");
  const canvas = document.createElement("canvas");
  const words = document.createElement("figcaption");
  picture.className = "picture";
  if (height) picture.style.height = `${height}px`;
  canvas.role = "img";
  canvas.ariaLabel = label;
  words.textContent = caption;
  picture.append(canvas);
  figure.append(picture, words);
  return { figure, canvas };
}

/** `83,990 B`. */
function bytes(size) {
  return `${size.toLocaleString("en")} B`;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const one of drawn) {
    const canvas = one.chart.canvas;
    one.chart.destroy();
    useColours();
    one.chart = new Chart(canvas, one.configured());
  }
});
