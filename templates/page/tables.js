"use strict";
// Tables of class `sortable`: a click on a header sorts. Headers become buttons when their table is first to be seen.

const NUMBER = /[+−-]?\d[\d,]*(?:\.\d+)?/;

/** Base and head of a cell like `50,438 → 83,990 B`; both the same where it has one number, null where it has none. */
function sidesOf(cell) {
  const numbers = cell.textContent.split("→").map((part) => part.match(NUMBER)?.[0] ?? null);
  const values = numbers.map((text) => (text === null ? null : Number(text.replaceAll(",", "").replace("−", "-"))));
  return values.length > 1 ? [values[0], values[1]] : [values[0], values[0]];
}

/** What a column is sorted by: the head's number where its header says that it has numbers, its text elsewhere. */
function keyOf(cell, isNumber) {
  if (!cell) return null;
  return isNumber ? sidesOf(cell)[1] : cell.textContent;
}

/** Numbers by size, texts as people do (`dispatch_9` before `dispatch_10`); what has neither comes last either way. */
function compared(left, right, sign) {
  if (left === null || right === null) return (left === null) - (right === null);
  return sign * (typeof left === "number" ? left - right : left.localeCompare(right, "en", { numeric: true }));
}

const unsorted = new Map(); // the rows of each sorted table as the report orders them

/** Sorts the table by the header's column; a row of sums stays last. */
function sortBy(header, direction) {
  const table = header.closest("table");
  const isNumber = header.classList.contains("n");
  if (!unsorted.has(table)) unsorted.set(table, [...table.tBodies[0].rows]);
  for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  const isSum = (row) => row.classList.contains("sum");
  const rows = unsorted.get(table);
  const keyed = rows.filter((row) => !isSum(row)).map((row) => [keyOf(row.cells[header.cellIndex], isNumber), row]);
  keyed.sort((one, other) => compared(one[0], other[0], direction === "ascending" ? 1 : -1));
  table.tBodies[0].append(...keyed.map(([, row]) => row), ...rows.filter(isSum));
}

/** Numbers begin with the largest, texts with the first; the next click turns the order round. */
function nextDirection(header) {
  const before = header.getAttribute("aria-sort");
  if (before) return before === "descending" ? "ascending" : "descending";
  return header.classList.contains("n") ? "descending" : "ascending";
}

function sortableTables() {
  return [...document.querySelectorAll("table.sortable")];
}

/** `2.0.descending` of the third table and its first column, as the address has it. */
function sortWord(header, direction) {
  return `${sortableTables().indexOf(header.closest("table"))}.${header.cellIndex}.${direction}`;
}

/** Sorts the tables as the address says, and restores the order of all others. */
function showSorts() {
  const words = choicesOf("sort");
  if (!words.length && !unsorted.size) return;
  for (const [table, rows] of unsorted) {
    table.tBodies[0].append(...rows);
    for (const header of table.tHead.rows[0].cells) header.removeAttribute("aria-sort");
  }
  unsorted.clear();
  const tables = sortableTables();
  for (const word of words) {
    const [table, column, direction] = word.split(".");
    const header = tables[Number(table)]?.tHead.rows[0].cells[Number(column)];
    if (header && ["ascending", "descending"].includes(direction)) sortBy(header, direction);
  }
}

/** Makes the headers of the tables that stand in the element, and in no closed part of it, buttons. */
function makeSortable(element) {
  for (const table of element.querySelectorAll("table.sortable:not(.ready)")) {
    if (table.closest("details:not([open])")) continue;
    table.classList.add("ready");
    for (const header of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      if (button.textContent) header.append(button);
    }
  }
}

document.addEventListener("click", (event) => {
  const header = event.target.closest("th button")?.closest("th");
  if (!header) return;
  const direction = nextDirection(header);
  const own = sortWord(header, direction);
  const others = choicesOf("sort").filter((word) => word.split(".")[0] !== own.split(".")[0]);
  remember({ sort: [...others, own] });
  sortBy(header, direction);
});
document.addEventListener("toggle", (event) => event.target.open && makeSortable(event.target), true);
// Nothing is done while the page is loading.
addEventListener("load", () => requestIdleCallback(() => makeSortable(document.body)));
onChoices(showSorts);
