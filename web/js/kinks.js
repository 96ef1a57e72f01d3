// kinks.js: a node that sits exactly where there is no derivative says what is taken as one.
import { el } from "./dom.js";

export function conventions(node) {
  if (!node.kinks || node.kinks.length === 0) return null;
  return el("div", { class: "kink" }, node.kinks.map(k => el("p", null,
    `There is no derivative here: ${node.op} at ${k.condition}. Cotangent takes `, el("b", null, k.convention), ".")));
}
