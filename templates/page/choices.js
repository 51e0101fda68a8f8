"use strict";
// What a reader chose (filter, order, zoom) stands in the page's address behind the `?`. The browser's Back undoes it,
// and a copied address shows the same.

const appliers = [];

/** The values of one choice, in order; empty where the reader chose nothing. */
function choicesOf(name) {
  return new URLSearchParams(location.search).getAll(name);
}

/** The address with other values for some choices: lists by name, where an empty list is the page's own choice. */
function addressWith(choices) {
  const all = new URLSearchParams(location.search);
  for (const [name, values] of Object.entries(choices)) {
    all.delete(name);
    for (const value of values) all.append(name, value);
  }
  const text = all.toString();
  return `${location.pathname}${text ? "?" : ""}${text}${location.hash}`;
}

/** Remembers choices as a new step of the browser's history. Steps with the same `merged` word in a row are one. */
function remember(choices, merged = "") {
  const address = addressWith(choices);
  if (address === addressWith({})) return;
  if (merged && history.state?.merged === merged) history.replaceState({ merged }, "", address);
  else history.pushState({ merged }, "", address);
}

/** Remembers choices in the present step: the page made them, not the reader. */
function rememberQuietly(choices) {
  const address = addressWith(choices);
  if (address !== addressWith({})) history.replaceState(history.state, "", address);
}

/** Runs a function that shows what the address says: now, and whenever the reader goes back or forward. */
function onChoices(apply) {
  appliers.push(apply);
  apply();
}

addEventListener("popstate", () => {
  for (const apply of appliers) apply();
});
