// reverse.js: what one step backward says, and the registers.
import { el } from "./dom.js";
import { heatFigure } from "./heat.js";
import { conventions } from "./kinks.js";
import { isTensor, show } from "./numbers.js";

export const reverseIntro = "An adjoint says how much the result changes when a value changes a little. From the seed at the end, " +
  "every box passes its adjoint back to what it was made from, times its own derivative. Where paths meet, they add up.";

export function reverseView(tape, step) {
  const entry = step > 0 ? tape.sweep[step - 1] : null;
  return {
    mode: "reverse", current: entry?.node ?? tape.trace.output, registers: tape.registers(step),
    lit: () => true,
    active: new Set(entry ? entry.adds.map(a => `${a.to}>${entry.node}`) : []),
    summary: `The tape as a graph, ${step} of ${tape.sweep.length} nodes swept`,
  };
}

const arriving = register => register.parts.map(p => show(p.amount)).join(" + ").replaceAll("+ −", "− ");

export function reverseText(tape, step) {
  if (tape.trace.sweep.length === 0)
    return [el("p", null, "The result does not depend on any input with a derivative, so there is nothing to sweep.")];
  if (step === 0)
    return [el("p", { class: "formula" }, `adj(${tape.label(tape.trace.output)}) = `, el("b", { class: "r" }, show(tape.seed()))),
      el("p", null, "The seed. All other registers are empty, which counts as 0. Step to send it backward.")];
  const entry = tape.sweep[step - 1], node = tape.node(entry.node), before = tape.registers(step - 1);
  const held = new Map([...before].map(([id, r]) => [id, r.sum]));
  const lines = entry.adds.map(add => {
    const old = held.get(add.to), label = tape.label(add.to), tensor = isTensor(add.amount);
    const numbers = tape.ruleInNumbers(entry, add, before);
    held.set(add.to, add.sum);
    return el("li", null,
      el("p", { class: "formula" }, `${label} gets `, add.rule, numbers ? ` = ${numbers}` : ` = ${tape.ruleInLabels(add)}`,
        tensor ? "" : [" = ", el("b", { class: "r" }, show(add.amount))]),
      el("p", { class: "sum" }, old === undefined
        ? (tensor ? `The first to arrive at ${label}.` : `adj(${label}): empty → ${show(add.sum)}`)
        : tensor ? `Paths meet: it is added to what ${label} holds already.`
          : `Paths meet: adj(${label}) = ${show(old)} + ${show(add.amount)} = ${show(add.sum)}`));
  });
  return [
    el("p", { class: "formula" }, `${tape.label(node.id)} = ${tape.written(node)}`, `, g = adj(${tape.label(node.id)})`,
      isTensor(entry.adjoint) ? "" : [" = ", el("b", { class: "r" }, show(entry.adjoint))]),
    lines.length ? el("ul", { class: "adds" }, lines)
      : el("p", null, "Its adjoint is zero, so it hands nothing on and its rule is not even looked at: a zero stays a zero, " +
        "whatever the rule would say."),
    conventions(tape, node),
    step === tape.sweep.length ? el("p", null, "The sweep is done: the registers of the inputs are the gradient.") : null,
  ];
}

// One line for small screens.
export function reverseBrief(tape, step) {
  if (step === 0) return `adj(${tape.label(tape.trace.output)}) = ${show(tape.seed())}`;
  const { adds } = tape.sweep[step - 1];
  const line = a => `${tape.label(a.to)} gets ${a.rule}${isTensor(a.amount) ? "" : ` = ${show(a.amount)}`}`;
  return adds.map(line).join(";  ") || "Nothing is handed on.";
}

export function reverseFigures(tape, step) {
  const entry = step > 0 ? tape.sweep[step - 1] : null;
  if (!entry) return [];
  const last = new Map(entry.adds.map(a => [a.to, a.sum])), figure = (title, id, v) => heatFigure(title, v, tape.node(id).shape);
  const own = isTensor(entry.adjoint) ? [figure(`g, the adjoint of ${tape.label(entry.node)}`, entry.node, entry.adjoint)] : [];
  const changed = [...last].filter(([, sum]) => isTensor(sum));
  return [...own, ...changed.map(([id, sum]) => figure(`Adjoint of ${tape.label(id)} now`, id, sum))];
}

// The table below the graph: the tape forward, or the registers backward.
export function registersTable(tape, view, step) {
  const reverse = view.mode === "reverse";
  const head = reverse ? ["Register", "Made by", "Value", "Adjoint so far"] : ["Register", "Made by", "Value", "Keeps"];
  const at = Math.max(0, tape.nodes.findIndex(n => n.id === view.current)), near = 150; // of a very long tape: around the step
  const rows = tape.nodes.slice(Math.max(0, at - near), at + near).map(node => {
    const lit = view.lit(node), register = view.registers?.get(node.id);
    const scalar = register && !isTensor(register.sum), sum = register ? show(register.sum) : "";
    const adjoint = scalar && register.parts.length > 1 ? `${arriving(register)} = ${sum}` : sum;
    return el("tr", { "data-node": node.id, class: node.id === view.current && (step > 0 || reverse) ? "current" : null },
      el("th", { scope: "row" }, tape.label(node.id)),
      el("td", null, tape.written(node)),
      el("td", { class: "number" }, lit ? show(node.value) : ""),
      el("td", { class: `number adjoint${register?.done ? " done" : ""}`, "data-adjoint": scalar ? String(register.sum) : null },
        reverse ? adjoint : lit ? tape.kept(node).join(", ") : ""));
  });
  return [el("thead", null, el("tr", null, head.map(h => el("th", { scope: "col" }, h)))), el("tbody", null, rows)];
}

export function gradientList(tape, step) {
  if (step < tape.sweep.length || tape.trace.sweep.length === 0) return [];
  const entries = Object.entries(tape.trace.grad ?? {});
  return [el("h3", null, "Gradient"), el("dl", { class: "gradient" }, entries.map(([name, v]) => [el("dt", null, `d/d${name}`),
    el("dd", { "data-grad": name, "data-value": JSON.stringify(v), title: isTensor(v) ? null : String(v) }, show(v))]))];
}
