"use strict";
// Pictures of an experiment: each element of `data-picture` has the numbers of one, which a table on the page has, too.

/** Chart.js's configuration of one picture: how far each variant is from the reference. */
function labChart(picture) {
  const fills = picture.values.map((value) => colour(value > 0 ? "--fill-up" : "--fill-down"));
  return {
    type: "bar",
    data: { labels: picture.labels, datasets: [{ label: picture.unit, data: picture.values, backgroundColor: fills }] },
    options: {
      indexAxis: "y",
      scales: { x: { beginAtZero: true, title: { display: true, text: picture.unit } } },
      plugins: { legend: { display: false } },
    },
  };
}

for (const place of document.querySelectorAll("[data-picture]")) {
  const picture = JSON.parse(place.dataset.picture);
  const { figure, canvas } = pictureOf(picture.title, picture.title, 90 + 24 * picture.labels.length);
  place.append(figure);
  drawChart(canvas, () => labChart(picture));
}
