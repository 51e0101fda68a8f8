"use strict";
// The cells: filter, search and sort. All of it works on what stands in the page.

const controls = document.querySelector(".controls");
const cells = [...document.querySelectorAll(".cell")]; // as the report orders them: the most important first
const texts = new WeakMap();
let order = "";

const ORDERS = {
  moved: (cell) => -Math.abs(Number(cell.dataset.moved)),
  size: (cell) => -Number(cell.dataset.size),
  ratio: (cell) => -Math.abs(Number(cell.dataset.moved)) / Math.max(1, cell.dataset.size - cell.dataset.moved),
  model: (cell) => `${nameOf(cell, "model")} ${nameOf(cell, "target")}`,
  target: (cell) => `${nameOf(cell, "target")} ${nameOf(cell, "model")}`,
};

function nameOf(cell, what) {
  return cell.querySelector(`summary .${what}`).textContent;
}

/** All that a cell says, in small letters; collected when somebody first searches. */
function textOf(cell) {
  if (!texts.has(cell)) texts.set(cell, cell.textContent.toLowerCase());
  return texts.get(cell);
}

function isWanted(cell, wanted) {
  if (wanted.state && cell.dataset.state !== wanted.state) return false;
  if (wanted.level && cell.dataset.level !== wanted.level) return false;
  if (wanted.model && nameOf(cell, "model") !== wanted.model) return false;
  if (wanted.target && nameOf(cell, "target") !== wanted.target) return false;
  return wanted.words.toLowerCase().split(/\s+/).every((word) => textOf(cell).includes(word));
}

/** Shows the cells that are wanted, and says how many there are. */
function filterCells() {
  const wanted = Object.fromEntries(new FormData(controls));
  let shown = 0;
  for (const cell of cells) {
    cell.hidden = !isWanted(cell, wanted);
    shown += !cell.hidden;
  }
  const all = `${cells.length} ${cells.length === 1 ? "build" : "builds"}`;
  controls.querySelector("[role=status]").textContent = shown === cells.length ? all : `${shown} of ${all}`;
}

function sortCells() {
  if (controls.elements.order.value === order) return; // what moves loses the focus
  order = controls.elements.order.value;
  const key = ORDERS[order];
  const keyed = cells.map((cell, at) => [key ? key(cell) : at, cell]);
  keyed.sort((one, other) => compared(one[0], other[0], 1));
  controls.parentElement.append(...keyed.map(([, cell]) => cell));
}

/** What is chosen, as the address has it: by name, empty where the page decides. */
function chosenControls() {
  const chosen = [...new FormData(controls)];
  return Object.fromEntries(chosen.map(([name, value]) => [name, value ? [value] : []]));
}

/** Sets the controls to what the address says. */
function showControls() {
  for (const name of Object.keys(chosenControls())) {
    const [value] = choicesOf(name);
    controls.elements[name].value = value ?? "";
    if (controls.elements[name].selectedIndex === -1) controls.elements[name].value = ""; // no such value on this page
  }
  filterCells();
  sortCells();
}

controls.hidden = false;
controls.addEventListener("input", ({ target }) => {
  remember(chosenControls(), target.name === "words" ? "words" : ""); // a word is one step, not one for each letter
  if (target.name === "order") sortCells();
  else filterCells();
});
controls.addEventListener("submit", (event) => event.preventDefault());
// A reset form has its values after the event.
controls.addEventListener("reset", () => setTimeout(() => {
  remember(chosenControls());
  filterCells();
  sortCells();
}));
document.addEventListener("addressed", (event) => {
  if (!event.target.closest(".cell[hidden]")) return;
  rememberQuietly(Object.fromEntries(Object.keys(chosenControls()).map((name) => [name, []])));
  showControls();
});
onChoices(showControls);
