// kinks.js: a node that sits exactly where there is no derivative says what is taken as one. The
// engine's own sentences, with the names of this tape.
import { bar, el } from "./dom.js";

// "relu (v₂) sits on its kink x = 0; …": the line belongs to v₂.
const linesOf = (tape, node) =>
  (tape.trace.report ?? []).filter(line => line.match(/^\S+ \(([^\s,)]+)/)?.[1] === node.label);

export const onKink = (tape, node) => linesOf(tape, node).length > 0;

export function conventions(tape, node) {
  const lines = linesOf(tape, node);
  if (lines.length === 0) return null;
  const limits = lines.every(isLimit);
  return el("div", { class: "kink" }, el("p", null, el("b", null, limits ? "Only a limit. " : "Only a convention. ")),
    lines.map(
      line => el("p", null, `${tape.label(node.id)} = ${tape.written(node)}`, inNames(tape, node, placed(line)))));
}

const isLimit = line => /derivative there: (-?inf\b|infinite)/.test(line);

// Not every such place is a corner: there are edges of domains, and poles.
function placed(line) {
  const rest = line.replace(/^\S+ \([^)]*\)/, "");
  if (!isLimit(line)) return rest;
  const place = /there: -?inf, the limit from/.test(line) ? "at the edge of its domain,"
    : /^(div|reciprocal|pow) /.test(line) ? "on its pole," : "where its slope is infinite,";
  return rest.replace(/sits on its kink/, `sits ${place}`).replace(/\binf\b/g, "∞").replace("-∞", "−∞");
}

// The engine has put in the names of operands and values. g is left, the adjoint of the node.
function inNames(tape, node, text) {
  return text.split(/(?<![\p{L}\d_%])g(?![\p{L}\d_])/u).flatMap((part, i) => i ? [bar(tape.label(node.id)), part] : [
    part
  ]);
}
