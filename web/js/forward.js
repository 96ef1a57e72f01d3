// forward.js: what one step forward says.
import { el } from "./dom.js";
import { heatFigure } from "./heat.js";
import { isTensor, show, showShape } from "./numbers.js";
import { conventions } from "./kinks.js";

export const forwardIntro = "Each box is one operation, done in order. It lights up when its value is known, " +
  "and keeps what the way back will need. A name like v₂ is the second operation.";

export function forwardView(tape, step) {
  const current = step > 0 ? tape.ops[step - 1] : null;
  return {
    mode: "forward", current: current?.id ?? null, registers: null,
    lit: node => tape.isLit(node, step),
    flow: (from, to) => {
      const at = tape.position.get(to) + 1;
      return { way: 1, when: at === step ? "now" : at < step ? "done" : "later" };
    },
    flows: [...new Set(current?.args.filter(a => a !== null))].map(a => ({ from: a, to: current.id,
      lines: [[isTensor(tape.node(a).value) ? showShape(tape.node(a).shape) : show(tape.node(a).value)]] })),
    summary: `The tape as a graph, ${step} of ${tape.ops.length} operations done`,
  };
}

export function forwardText(tape, step) {
  if (step === 0) {
    const given = n => isTensor(n.value) ? `${n.name} (${showShape(n.shape)})` : `${n.name} = ${show(n.value)}`;
    const names = tape.trace.inputs.map(i => given(tape.node(i.node)));
    const text =
      names.length ? `The inputs are given: ${names.join(", ")}.` : "There are no inputs; everything is constant.";
    return [el("p", null, text), el("p", null, "Step to do the first operation.")];
  }
  const node = tape.ops[step - 1], numbers = tape.calculated(node), keeps = tape.kept(node),
        last = step === tape.ops.length;
  return [
    el("p", { class: "formula" }, `${tape.label(node.id)} = ${tape.written(node)}`, numbers ? ` = ${numbers}` : "",
      isTensor(node.value) ? "" : [" = ", el("b", { class: "f" }, show(node.value))]),
    isTensor(node.value) ? el("p", null, `A result of shape ${showShape(node.shape)}.`) : null,
    el("p", null, keeps.length ? ["Keeps ", el("b", null, keeps.join(" and ")), " for the way back."]
      : node.active ? "Keeps nothing: its rule for the way back needs no computed value."
        : "No derivative passes through here, so it keeps nothing."),
    /\baxes=\d/.test(tape.written(node)) ? el("p", { class: "hint" }, "axes=0 is along the first axis, over all " +
      "rows; axes=1 over all columns.") : null,
    conventions(tape, node),
    last ? el("p", null, "That is the result. The ", el("b", { class: "r" }, "backward pass"),
      " now asks how much each input mattered.") : null,
  ];
}

// One line for small screens.
export function forwardBrief(tape, step) {
  if (step === 0) return "The inputs are given.";
  const node = tape.ops[step - 1];
  return `${tape.label(node.id)} = ${tape.written(node)}${isTensor(node.value) ? "" : ` = ${show(node.value)}`}`;
}

export function forwardFigures(tape, step) {
  const given = tape.nodes.filter(n => tape.isSource(n) && isTensor(n.value));
  if (step === 0) return given.map(n => heatFigure(tape.label(n.id), n.value, n.shape));
  const node = tape.ops[step - 1];
  return isTensor(node.value) ? [heatFigure(`Value of ${tape.label(node.id)}`, node.value, node.shape)] : [];
}

// The last column of the table: what a node keeps once it is known.
export const keepsColumn = { title: "Keeps", of: (tape, node, view) => ({
  text: view.lit(node) ? tape.kept(node).join(", ") : ""
}) };
