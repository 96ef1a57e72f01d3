// heat.js: matrices as colours. Green is positive, purple negative, the background zero; numbers
// stand in the cells, or below, so that colour is never the only way to read them.
import { dark, el } from "./dom.js";
import { asMatrix, leftOut, show, showShape } from "./numbers.js";

const light = { zero: [247, 246, 243], plus: [24, 110, 48], minus: [112, 40, 132] };
const night = { zero: [34, 37, 43], plus: [120, 214, 146], minus: [206, 150, 224] };

// t in [-1, 1] -> [r, g, b]
function colour(t) {
  const theme = dark() ? night : light, end = t < 0 ? theme.minus : theme.plus,
        weight = Math.sqrt(Math.min(Math.abs(t), 1));
  return theme.zero.map((z, i) => Math.round(z + (end[i] - z) * weight));
}

export function largest(rows) {
  return rows.flat().reduce((m, x) => Number.isFinite(x) ? Math.max(m, Math.abs(x)) : m, 0) || 1;
}

// A picture with one pixel for each element, as a data address.
export function picture(v, shape) {
  const rows = asMatrix(v, shape), scale = largest(rows), canvas = document.createElement("canvas");
  canvas.width = Math.max(rows[0]?.length ?? 0, 1);
  canvas.height = Math.max(rows.length, 1);
  const context = canvas.getContext("2d"), pixels = context.createImageData(canvas.width, canvas.height);
  rows.forEach((row, i) => row.forEach((x, j) => {
    const c = Number.isNaN(x) ? [220, 40, 40] : colour(x / scale);
    pixels.data.set([...c, 255], 4 * (i * canvas.width + j));
  }));
  context.putImageData(pixels, 0, 0);
  return { address: canvas.toDataURL(), rows: canvas.height, columns: canvas.width };
}

const mostRows = 12, mostColumns = 10;

const wordsOf = title => [title].flat().map(t => t.textContent ?? t).join("");

// A figure: small matrices as a table of coloured numbers; large ones as a picture, with the
// numbers folded away. The title is a text, or a list of texts and elements.
export function heatFigure(title, v, shape) {
  const rows = asMatrix(v, shape);
  const caption = el("figcaption", null, el("b", null, title), ` ${showShape(shape)}`,
    el("span", { class: "hint signs" }, " green is positive, purple negative"));
  const flat = rows.flat().filter(Number.isFinite);
  const range = flat.length ? `from ${show(Math.min(...flat))} to ${show(Math.max(...flat))}${leftOut(v, rows)}` :
                              "no finite numbers";
  if (rows.length <= mostRows && (rows[0]?.length ?? 0) <= mostColumns)
    return el("figure", { class: "heat" }, caption, el("div", { class: "scroll" }, numbers(title, rows)));
  const image = picture(v, shape),
        cell = Math.max(2, Math.min(10, Math.floor(280 / image.columns), Math.floor(220 / image.rows)));
  return el("figure", { class: "heat" }, caption, el("img", {
    src: image.address,
    width: image.columns * cell,
    height: image.rows * cell,
    alt: `${wordsOf(title)}: ${range}`
  }),
    el("p", { class: "hint" }, range + (v.elided ? "; each cell is the mean of a block" : "")),
    el("details", null, el("summary", null, "The numbers"), el("div", { class: "scroll" }, numbers(title, rows))));
}

// How bright a colour is to the eye, 0 to 1: black has the better contrast with all above 0.179.
function luminance(rgb) {
  const [r, g, b] = rgb.map(c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function numbers(title, rows) {
  const scale = largest(rows);
  const cell = x => {
    const ground = Number.isNaN(x) ? [220, 40, 40] : colour(x / scale);
    return el("td", { style: `background:rgb(${ground});color:${luminance(ground) > 0.179 ? "#000" : "#fff"}`,
      title: String(x) },
      show(x, 3));
  };
  return el("table", { class: "cells", "aria-label": wordsOf(title) },
    rows.map((row, i) => el("tr", null, el("th", { scope: "row", class: "hidden" }, `row ${i}`), row.map(cell))));
}
