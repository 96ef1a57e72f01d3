// kinks.js: a node that sits exactly where there is no derivative says what is taken as one. The engine's own sentences.
import { el } from "./dom.js";

// "relu (%2) sits on its kink x = 0; …": the line belongs to %2.
export function conventions(tape, node) {
  const lines = (tape.trace.report ?? []).filter(line => line.match(/^\S+ \(%(\d+)\b/)?.[1] === String(node.id));
  if (lines.length === 0) return null;
  return el("div", { class: "kink" }, el("p", null, el("b", null, "Only a convention. ")),
    lines.map(line => el("p", null, line.replace(/^(\S+) \([^)]*\)/, `$1, here ${tape.label(node.id)},`))));
}

export const onKink = (tape, node) => conventions(tape, node) !== null;
