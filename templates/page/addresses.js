"use strict";
// Addresses: what stands behind the `#` of the page's own address is opened and comes into view.
// Every element with an id is one; ids like `model/target/dispatch` may be shortened where that is not ambiguous.

/** Percent-decoded; the text itself where it is not written so. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** 2: the same name, 1: whole words of it (`x86_64` of `llvm-cpu-x86_64`), 0: neither. */
function likeness(short, full) {
  if (short === full) return 2;
  const words = (name) => `_${name.replaceAll("-", "_")}_`;
  return short && words(full).includes(words(short)) ? 1 : 0;
}

/** The element of a shortened address: the one that is most like it, none where several are. */
function shortened(address) {
  const parts = decoded(address).split("/");
  let best = 0;
  let found = [];
  for (const element of parts.length > 1 ? document.querySelectorAll('[id*="/"]') : []) {
    const names = decoded(element.id).split("/");
    const likes = names.length === parts.length ? names.map((name, at) => likeness(parts[at], name)) : [0];
    const sum = likes.includes(0) ? 0 : likes.reduce((one, other) => one + other);
    if (sum > best) [best, found] = [sum, []];
    if (sum && sum === best) found.push(element);
  }
  return found.length === 1 ? found[0] : null;
}

/** The element that an address (without its `#`) is of, or that of its cell where the page has no room for it. */
function elementAt(address) {
  if (!address) return null;
  const element = document.getElementById(address) ?? document.getElementById(decoded(address)) ?? shortened(address);
  return element ?? elementAt(address.split("/").slice(0, -1).join("/"));
}

/** Opens everything around the element that the page's address names, and shows it. */
function showAddressed() {
  const [address, lost] = [location.hash.slice(1), document.querySelector(".lost")];
  const element = elementAt(address);
  const isThere = element && decoded(element.id).split("/").length === decoded(address).split("/").length;
  const where = element ? "This is the nearest that it has." : "It may be misspelt, or in the JSON file beside this page alone.";
  lost.textContent = !address || isThere ? "" : `“${decoded(address)}” is not on this page. ${where}`;
  if (!element) return;
  element.dispatchEvent(new CustomEvent("addressed", { bubbles: true })); // a filter may hide it
  for (let at = element.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  if (address !== element.id && isThere) history.replaceState(null, "", `#${element.id}`);
  if (!element.matches("a, button, summary, [tabindex]")) element.tabIndex = -1;
  element.scrollIntoView();
  element.focus({ preventScroll: true });
}

addEventListener("hashchange", showAddressed);
// What comes into view late (a chart, a row that was never laid out) moves what is below it: look again when all is there.
addEventListener("load", showAddressed);
