"use strict";
// A picture of a change: rectangles in proportion to the changed bytes, orange where they grew,
// blue where they shrank. The two differ in lightness, and a text says the direction.
// The data is the element `change-data`: name, net, changed bytes, address, parts. A title zooms in, a rectangle is a link.

const LOWEST = [64, 40]; // pixels of a place whose parts are drawn
const TITLE = 20; // pixels of a title
const EDGES = 16; // pixels beside a text in a rectangle, both sides together
const LEAST_LETTERS = 7; // of a shortened name that stands beside its change

/** `+1,675 B`, `−304 B`, `±0`. */
function signedBytes(size) {
  return size ? `${size > 0 ? "+" : "−"}${bytes(Math.abs(size))}` : "±0";
}

/** `▲ +1,675 B`, and how much moved where some of it cancels out. */
function changeOf([, net, moved]) {
  const mark = net > 0 ? "▲ " : net < 0 ? "▼ " : "";
  return `${mark}${signedBytes(net)}${Math.abs(net) === moved ? "" : ` net, ${bytes(moved)} moved`}`;
}

/** The class of a rectangle: `grew`, `shrank`, or `mixed` where its parts did both. */
function directionOf([, net, moved]) {
  if (net === moved) return "grew";
  return net === -moved ? "shrank" : "mixed";
}

const brush = document.createElement("canvas").getContext("2d");
const fonts = new Map();

/** How wide a text is in the font of an element that is in the page; elements of one class have one font. */
function widthOf(text, element) {
  if (!fonts.has(element.className)) {
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(element);
    fonts.set(element.className, `${fontWeight} ${fontSize} ${fontFamily}`);
  }
  brush.font = fonts.get(element.className);
  return brush.measureText(text).width;
}

/** A name in at most `width` pixels: `mobil…_224`, both its ends as long as there is room for; empty without room. */
function shortenedName(name, element, width) {
  if (widthOf(name, element) <= width) return name;
  const letters = [...name];
  for (let kept = Math.min(letters.length - 1, Math.floor(width / 3)); kept >= 2; kept--) {
    const tail = Math.floor(kept / 2);
    const text = `${letters.slice(0, kept - tail).join("")}…${letters.slice(-tail).join("")}`;
    if (widthOf(text, element) <= width) return text;
  }
  return "";
}

/** The lines of a rectangle: its name, shortened in the middle, and of its change what fits whole. */
function linesOf(place, element, width, most) {
  const [name] = place;
  const lines = [shortenedName(name.match(/dispatch_\d.*/)?.[0] ?? name, element, width)];
  for (const line of changeOf(place).split(", ")) {
    if (widthOf(line, element) > width) break; // a part of a number is another number
    lines.push(line);
  }
  return lines.filter((line) => line).slice(0, most);
}

/** The text of a title: name and change, or the name alone where there is no room for both. */
function titleOf([name, net], element, width) {
  const change = ` ${changeOf([name, net, Math.abs(net)])}`;
  const short = shortenedName(name, element, width - widthOf(change, element));
  const isEnough = short === name || short.length >= LEAST_LETTERS;
  return isEnough ? `${short}${change}` : shortenedName(name, element, width);
}

/** Rectangles [place, x, y, width, height] as near to squares as can be (Bruls, Huizing, van Wijk: Squarified Treemaps). */
function squarified(places, x, y, width, height) {
  const found = [];
  let left = places.reduce((sum, [, , moved]) => sum + moved, 0);
  for (let at = 0; at < places.length; ) {
    const scale = (width * height) / left;
    const side = Math.min(width, height);
    let [end, row, worst] = [at, 0, Infinity];
    for (; end < places.length; end++) {
      const more = row + places[end][2] * scale;
      const ratio = Math.max((side ** 2 * places[at][2] * scale) / more ** 2, more ** 2 / (side ** 2 * places[end][2] * scale));
      if (ratio > worst) break;
      [row, worst] = [more, ratio];
    }
    const depth = row / side;
    let from = 0;
    for (const place of places.slice(at, end)) {
      const length = (place[2] * scale) / depth;
      found.push(width >= height ? [place, x, y + from, depth, length] : [place, x + from, y, length, depth]);
      from += length;
      left -= place[2];
    }
    if (width >= height) [x, width] = [x + depth, width - depth];
    else [y, height] = [y + depth, height - depth];
    at = end;
  }
  return found;
}

function boxOf(tag, className, x, y, width, height) {
  const box = document.createElement(tag);
  box.className = className;
  Object.assign(box.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
  return box;
}

/** Puts the parts of a place into the picture; of two levels, those that there is room for. */
function fillIn(picture, place, area, levels, zoom) {
  for (const [one, x, y, width, height] of squarified(place[4], ...area)) {
    if (Math.min(width, height) < 2) continue; // nobody sees it; the table and the place around it count it
    const [name, net, moved, address, parts] = one;
    const words = `${name} ${changeOf(one)}`;
    if (levels > 1 && parts && width >= LOWEST[0] && height >= LOWEST[1]) {
      const title = boxOf("button", "title", x, y, width, TITLE);
      title.type = "button";
      title.title = words;
      title.addEventListener("click", () => zoom(one));
      picture.append(title);
      title.textContent = titleOf(one, title, width - EDGES);
      if (!title.textContent) title.ariaLabel = words;
      fillIn(picture, one, [x, y + TITLE, width - 2, height - TITLE - 2], levels - 1, zoom);
      continue;
    }
    const box = boxOf(address ? "a" : "span", "place", x, y, Math.max(0, width - 1), Math.max(0, height - 1));
    box.classList.add(directionOf(one));
    if (box.matches(".mixed")) {
      const grew = `${(50 * (moved + net)) / moved}%`;
      box.style.background = `linear-gradient(90deg, var(--fill-up) ${grew}, var(--fill-down) ${grew})`;
    }
    if (address) box.href = `#${address}`;
    box.title = words;
    picture.append(box);
    const hasRoom = width > 40 && height > 16;
    const lines = hasRoom ? linesOf(one, box, width - EDGES, Math.max(1, Math.floor((height - 3) / 15))) : [];
    for (const line of lines) box.append(Object.assign(document.createElement("span"), { textContent: `${line} ` }));
    if (!lines.length) [box.tabIndex, box.ariaHidden] = [-1, "true"]; // the table has it, and so has the place one level up
  }
}

/** The places from the whole to where the names lead, as far as there are such parts. */
function wayAlong(whole, names) {
  const way = [whole];
  for (const name of names) {
    const next = way.at(-1)[4]?.find((part) => part[0] === name && part[4]);
    if (!next) break;
    way.push(next);
  }
  return way;
}

/** The names below the whole. */
function namesOf(way) {
  return way.slice(1).map(([name]) => name);
}

/** Draws a place into an element, and again when its width changes; `height` in pixels, `choice` the zoom's name in the address. */
function drawMap(element, place, label, height, choice) {
  const [path, picture] = [document.createElement("nav"), document.createElement("div")];
  path.ariaLabel = `Way through the picture: ${label}`;
  path.className = "path";
  picture.className = "treemap";
  picture.role = "group";
  picture.ariaLabel = label;
  picture.style.height = `${height}px`;
  element.append(path, picture);
  const first = [place]; // what is shown before anybody zooms: steps with one part only are passed over
  while (first.at(-1)[4].length === 1 && first.at(-1)[4][0][4]) first.push(first.at(-1)[4][0]);
  let [way, width] = [first, 0];
  const draw = () => {
    width = picture.clientWidth;
    picture.replaceChildren();
    fillIn(picture, way.at(-1), [0, 0, width, height], 2, (one) => go([...way, one]));
    path.replaceChildren(...way.map((one, at) => {
      const step = document.createElement("button");
      step.type = "button";
      step.className = "plain";
      step.textContent = at < way.length - 1 ? one[0] : `${one[0]} ${changeOf(one)}`;
      step.disabled = at === way.length - 1;
      step.addEventListener("click", () => go(way.slice(0, at + 1)));
      return step;
    }));
    const [name, , , address] = way.at(-1);
    if (!address || way.length === 1) return;
    const link = document.createElement("a");
    link.href = `#${address}`;
    link.textContent = `all of ${name}`;
    path.append(link);
  };
  const go = (to) => {
    way = to;
    draw();
    const isFirst = way.at(-1) === first.at(-1);
    remember({ [choice]: isFirst ? [] : ["", ...namesOf(way)] }); // the empty name is the whole
    (path.querySelector("button:nth-last-of-type(2)") ?? picture.querySelector("button, a"))?.focus({ preventScroll: true });
  };
  new ResizeObserver(() => picture.clientWidth !== width && draw()).observe(picture);
  draw();
  onChoices(() => {
    const names = choicesOf(choice);
    const chosen = names.length ? wayAlong(place, names.slice(1)) : first;
    if (chosen.at(-1) === way.at(-1)) return;
    way = chosen;
    draw();
  });
}

const change = JSON.parse(document.getElementById("change-data")?.textContent ?? "null");

/** The place of a cell; undefined where nothing of it changed, or it was too small for the picture. */
function changeAt(address, places = change?.[4] ?? []) {
  for (const target of places) {
    const found = target[4]?.find((one) => one[3] === address);
    if (found) return found;
  }
}

for (const place of document.querySelectorAll(".change-map")) {
  place.hidden = false;
  drawMap(place, change, "What changed, by bytes", 460, "zoom");
}
