// softmax.js: cross-entropy seen as what it is. The rule of log_softmax, g − p·Σg for an adjoint g,
// becomes p − y, times a number, wherever g is −y times that number. This is looked for in the
// numbers of the step, and said only where it is so.
import { el } from "./dom.js";
import { heatFigure } from "./heat.js";
import { asMatrix, isTensor, show } from "./numbers.js";

// {p, y, scale, shape} for a step of log_softmax along its last axis, or null.
export function probabilityMinusTruth(tape, entry) {
  const node = tape.node(entry.node), add = entry.adds[0];
  if (node.op !== "log_softmax" || !add || entry.adjoint?.elided || !isTensor(entry.adjoint)) return null;
  const p = asMatrix(node.value, node.shape).map(row => row.map(Math.exp)), got = asMatrix(add.amount, node.shape);
  const arrives = asMatrix(entry.adjoint, node.shape), scales = arrives.map(row => -row.reduce((a, b) => a + b, 0));
  const scale = scales[0], near = (a, b) => Math.abs(a - b) <= 1e-12 * Math.abs(scale);
  if (!(scale > 0) || !scales.every(s => near(s, scale))) return null;
  const y = arrives.map(row => row.map(v => -v / scale));
  const fits = got.every((row, i) => row.every((v, k) => near(v, scale * (p[i][k] - y[i][k]))));
  return fits ? { p, y, scale, shape: node.shape } : null;
}

const asValue = (rows, shape) => shape.length === 1 ? rows[0] : rows;

export function softmaxText(tape, entry) {
  const found = probabilityMinusTruth(tape, entry);
  if (!found) return null;
  const { p, y, scale, shape } = found, one = Math.abs(scale - 1) < 1e-12;
  const numbers = shape.length === 1
    ? ` = ${show(asValue(p, shape))} − ${show(asValue(y, shape).map(v => v + 0))}` : "";
  return el("p", { class: "formula insight", id: "p-minus-y" }, "That is ", one ? "" : `${show(scale)}·(`,
    el("b", { class: "r" }, "p − y"), one ? "" : ")", `: probability minus truth${numbers}.`);
}

export function softmaxFigures(tape, entry) {
  const found = probabilityMinusTruth(tape, entry);
  if (!found || found.shape.length < 2) return [];
  return [heatFigure("p = softmax", found.p, found.shape), heatFigure("y, the truth", found.y, found.shape)];
}
