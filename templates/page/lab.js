"use strict";
// Pictures of an experiment: each element of `data-picture` has the numbers of one, which a table on the page has, too.

const SERIES = 8;

/** Chart.js's configuration of one picture: how far each variant is from the reference, or lines along an axis. */
function labChart(picture) {
  const names = Object.keys(picture.series);
  const datasets = names.map((name, index) => {
    const fill = colour(`--series-${(index % SERIES) + 1}`);
    const points = picture.series[name].map((y, at) => (picture.line ? { x: Number(picture.labels[at]), y } : y));
    const fills = picture.line ? fill : points.map((y) => colour(y > 0 ? "--fill-up" : "--fill-down"));
    return { label: name, data: points, backgroundColor: fills, borderColor: fill, spanGaps: false };
  });
  const values = { beginAtZero: true, title: { display: true, text: picture.unit } };
  return {
    type: picture.line ? "line" : "bar",
    data: { labels: picture.labels, datasets },
    options: {
      indexAxis: picture.line ? "x" : "y",
      scales: picture.line ? { x: { type: "linear", beginAtZero: true }, y: values } : { x: values },
      plugins: { legend: { display: picture.line } },
    },
  };
}

for (const place of document.querySelectorAll("[data-picture]")) {
  const picture = JSON.parse(place.dataset.picture);
  const height = picture.line ? 320 : 90 + 24 * picture.labels.length;
  const { figure, canvas } = pictureOf(picture.title, picture.title, height);
  place.append(figure);
  drawChart(canvas, () => labChart(picture));
}
