// reverse.js: what one step backward says, and the registers.
import { bar, el } from "./dom.js";
import { heatFigure } from "./heat.js";
import { conventions, onKink } from "./kinks.js";
import { asMatrix, isTensor, leftOut, show, showFactor, showShape } from "./numbers.js";

// An input to explain by: one that is differentiated.
const example = tape => tape.trace.inputs.find(i => tape.node(i.node)?.active)?.name ?? tape.label(tape.trace.output);

// What a bar means, at length before the first step and in short after it.
export function reverseIntro(tape) {
  const label = example(tape);
  return [
    "A bar over a name means its ", el("b", null, "adjoint"), ": ", bar(label),
    ` says how much the result changes when ${
      label} changes a little. From the seed at the end, every box passes its adjoint back to ` +
      "what it was made from, times its own derivative. Where paths meet, they add up."
  ];
}

export function barHint(tape) {
  const label = example(tape);
  return [bar(label), ` is the adjoint of ${label}: the derivative of the result by ${label}.`];
}

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

// "x̄1 gets v̄₂·cos(x1) = 1·cos(0.7854) = 0.70711": the rule with what it is about filled in, first
// names, then numbers.
function formula(tape, entry, add, registers) {
  const kink = onKink(tape, tape.node(entry.node)), numbers = kink ? null : tape.inNumbers(entry, add, registers);
  const rule = tape.pieces(entry, add)
                 .map(p => typeof p === "string" ? p :
                     p.adjoint                   ? bar(tape.label(p.node)) :
                                                   tape.label(p.node));
  const whole = add.filled.includes(" += "); // names the part of the register itself
  const amount =
    isTensor(add.amount) ? "" : [kink ? ", by convention " : " = ", el("b", { class: "r" }, show(add.amount))];
  return [whole ? "" : [bar(tape.label(add.to)), " gets "], rule, numbers && !whole ? ` = ${numbers}` : "", amount];
}

export function reverseText(tape, step) {
  if (tape.trace.sweep.length === 0)
    return [el("p", null, "The result does not depend on any input with a derivative, so there is nothing to sweep.")];
  if (step === 0)
    return [
      el("p", { class: "formula" }, bar(tape.label(tape.trace.output)), " = ",
        el("b", { class: "r" }, show(tape.seed()))),
      el("p", null,
        "The seed. All other registers are empty, which counts as 0. Step to send it through the tape, " +
          "from its end to its beginning.")
    ];
  const entry = tape.sweep[step - 1], node = tape.node(entry.node), before = tape.registers(step - 1);
  const held = new Map([...before].map(([id, r]) => [id, r.sum]));
  const lines = entry.adds.map(add => {
    const old = held.get(add.to), label = tape.label(add.to), tensor = isTensor(add.amount);
    held.set(add.to, add.sum);
    return el("li", null, el("p", { class: "formula" }, formula(tape, entry, add, before)),
      el("p", { class: "sum" },
        old === undefined ? (tensor ? ["The first to arrive at ", bar(label), "."] :
                                      ["The first to arrive: ", bar(label), ` = ${show(add.sum)}`]) :
          tensor                    ? ["Paths meet: it is added to what ", bar(label), " holds already."] :
                                      ["Paths meet: ", bar(label),
                                        ` = ${show(old)} + ${showFactor(add.amount)} = ${show(add.sum)}`]));
  });
  // a condition in brackets
  const asks = entry.adds.some(add => /\[[^\]]*[<>=≠≤≥]|\[[^\],]*\]·/.test(add.filled));
  return [
    el("p", { class: "formula" }, `${tape.label(node.id)} = ${tape.written(node)}, and `, bar(tape.label(node.id)),
      isTensor(entry.adjoint) ? " is complete" : [" = ", el("b", { class: "r" }, show(entry.adjoint))]),
    lines.length ?
      el("ul", { class: "adds" }, lines) :
      el("p", null,
        "Its adjoint is zero, so it hands nothing on and its rule is not even looked at: a zero stays a zero, " +
          "whatever the rule would say."),
    asks ? el("p", { class: "hint" }, "A condition in brackets counts as 1 where it holds, as 0 where not.") : null,
    conventions(tape, node),
    step === tape.sweep.length ? el("p", null, "The sweep is done: the registers of the inputs are the gradient.") :
                                 null,
  ];
}

// One line for small screens.
export function reverseBrief(tape, step) {
  if (tape.trace.sweep.length === 0) return ["Nothing to sweep."];
  if (step === 0) return [bar(tape.label(tape.trace.output)), ` = ${show(tape.seed())}`];
  const entry = tape.sweep[step - 1], before = tape.registers(step - 1);
  return entry.adds.flatMap((add, k) => [k ? ";  " : "", ...formula(tape, entry, add, before)]).flat(Infinity)
    .concat(entry.adds.length ? [] : ["Nothing is handed on."]);
}

export function reverseFigures(tape, step) {
  const entry = step > 0 ? tape.sweep[step - 1] : null;
  if (!entry) return [];
  const last = new Map(entry.adds.map(a => [a.to, a.sum])),
        figure = (title, id, v) => heatFigure(title, v, tape.node(id).shape);
  const own =
    isTensor(entry.adjoint) ? [figure(["Adjoint ", bar(tape.label(entry.node))], entry.node, entry.adjoint)] : [];
  const changed = [...last].filter(([, sum]) => isTensor(sum));
  return [...own, ...changed.map(([id, sum]) => figure(["Now ", bar(tape.label(id))], id, sum))];
}

// Numbers as they are; of arrays the shape and the range.
function inTable(v, shape) {
  if (!isTensor(v) || shape.length === 0) return show(v);
  const rows = asMatrix(v, shape), flat = rows.flat().filter(Number.isFinite);
  const least = v.elided ? v.min : Math.min(...flat), most = v.elided ? v.max : Math.max(...flat);
  const size = shape.length === 1 ? `[${shape[0]}]` : showShape(shape);
  if (flat.length <= 3 && !v.elided) return show(v);
  const range = least === most ? `all ${show(least, 3)}` : `${show(least, 3)} to ${show(most, 3)}`;
  return `${size}, ${range}${leftOut(v, rows)}`;
}

// The table below the graph: the tape forward, or the registers backward.
export function registersTable(tape, view, step) {
  const reverse = view.mode === "reverse";
  const head = reverse ? ["Register", "Made by", "Value", "Adjoint so far"] : ["Register", "Made by", "Value", "Keeps"];
  // of a very long tape: around the step
  const at = Math.max(0, tape.nodes.findIndex(n => n.id === view.current)), near = 150;
  const rows = tape.nodes.slice(Math.max(0, at - near), at + near).map(node => {
    const lit = view.lit(node), register = view.registers?.get(node.id);
    const scalar = register && !isTensor(register.sum), sum = register ? inTable(register.sum, node.shape) : "";
    const adjoint = scalar && register.parts.length > 1 ? `${arriving(register)} = ${sum}` : sum;
    return el("tr",
      { "data-node": node.id, class: node.id === view.current && (step > 0 || reverse) ? "current" : null },
      el("th", { scope: "row" }, tape.label(node.id)), el("td", null, tape.written(node)),
      el("td", { class: "number value" }, lit ? inTable(node.value, node.shape) : ""),
      el("td", {
        class: `number adjoint${register?.done ? " done" : ""}`,
        "data-adjoint": scalar ? String(register.sum) : null
      },
        reverse ? adjoint :
          lit   ? tape.kept(node).join(", ") :
                  ""));
  });
  const heads = head.map((h, k) => el("th", { scope: "col", class: k === 2 ? "value" : null }, h));
  return [el("thead", null, el("tr", null, heads)), el("tbody", null, rows)];
}

export function gradientList(tape, step) {
  if (step < tape.sweep.length || tape.trace.sweep.length === 0) return [];
  const entries = Object.entries(tape.trace.grad ?? {});
  return [
    el("h3", null, "Gradient"),
    el("dl", { class: "gradient" },
      entries.map(
        ([name, v]) => [el("dt", null, `d/d${name}`),
          el("dd", { "data-grad": name, "data-value": JSON.stringify(v), title: isTensor(v) ? null : String(v) },
            show(v))]))
  ];
}
