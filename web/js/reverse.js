// reverse.js: what one step backward says, and the registers.
import { bar, el } from "./dom.js";
import { heatFigure } from "./heat.js";
import { conventions, onKink } from "./kinks.js";
import { softmaxFigures, softmaxText } from "./softmax.js";
import { inTable, isTensor, show, showFactor, toNumber } from "./numbers.js";

// An input to explain by: one that is differentiated.
const example = tape => tape.trace.inputs.find(i => tape.node(i.node)?.active)?.name ?? tape.label(tape.trace.output);

// What a bar means, at length before the first step and in short after it.
export function reverseIntro(tape) {
  const label = example(tape);
  return [
    "A bar over a name means its ", el("b", null, "adjoint"), ": ", bar(label),
    ` says how much ${resultOf(tape)} changes when ${label} changes a little. `,
    "From the seed at the end, every box passes its adjoint back to what it was made from, " +
      "times its own derivative. Where paths meet, they add up."
  ];
}

const resultOf = tape => tape.weighted === "f" ? "the result" : tape.weighted;

export function barHint(tape) {
  const label = example(tape);
  return [bar(label), ` is the adjoint of ${label}: the derivative of ${resultOf(tape)} by ${label}. `,
    "At an arrow: adjoint × derivative of the box = what is handed back."];
}

export function reverseView(tape, step) {
  const entry = step > 0 ? tape.sweep[step - 1] : null;
  return {
    mode: "reverse", current: entry?.node ?? tape.trace.output, registers: tape.registers(step),
    lit: () => true,
    flow: (from, to) => {
      const at = tape.handed.get(`${from}>${to}`);
      if (at === undefined) return { way: 0, when: "none" };
      return { way: -1, when: at === step ? "now" : at < step ? "done" : "later" };
    },
    flows: entry ? flowsOf(tape, entry) : [],
    summary: `The tape as a graph, ${step} of ${tape.sweep.length} nodes swept`,
  };
}

// What is written at the arrows of a step: adjoint × local derivative = contribution, in the order
// of the rule beside it, with the derivative in ink. Of numbers the derivative is the quotient of
// the two others; else the rule says it.
function flowsOf(tape, entry) {
  const flows = new Map();
  for (const add of entry.adds) {
    const flow = flows.get(add.to) ?? { from: add.to, to: entry.node, lines: [] };
    flow.lines.push(flowLine(tape, entry, add));
    flows.set(add.to, flow);
  }
  return [...flows.values()];
}

function flowLine(tape, entry, add) {
  const { adjoint } = entry, { amount } = add, plain = v => typeof v === "number" && Number.isFinite(v);
  if (plain(adjoint) && plain(amount) && adjoint !== 0)
    return [showFactor(adjoint, 4), [{ own: `× ${showFactor(amount / adjoint, 4)}` }], `= ${show(amount, 4)}`];
  const rule = tape.pieces(entry, add).map(p => typeof p === "string" ? p :
    p.adjoint ? { bar: tape.label(p.node) } : tape.label(p.node));
  const length = rule.reduce((sum, p) => sum + (p.bar ?? p).length, 0);
  // a long one is said in full beside the picture
  return [length > 24 ? ["its rule of ", { bar: tape.label(entry.node) }] : rule,
    ...(isTensor(amount) ? [] : [`= ${show(amount, 4)}`])];
}

const arriving = register => register.parts.map(p => show(p.amount)).join(" + ").replaceAll("+ −", "− ");

// "x̄1 gets v̄₂·cos(x1) = 1·cos(0.7854) = 0.70711": the rule with what it is about filled in, first
// names, then numbers.
// part: "names" or "numbers" for one of the two, without the amount.
export function formula(tape, entry, add, registers, part = "all") {
  const kink = onKink(tape, tape.node(entry.node)), numbers = kink ? null : tape.inNumbers(entry, add, registers);
  const rule = tape.pieces(entry, add)
                 .map(p => typeof p === "string" ? p :
                     p.adjoint                   ? bar(tape.label(p.node)) :
                                                   tape.label(p.node));
  if (part === "names") return [bar(tape.label(add.to)), " gets ", ...rule];
  if (part === "numbers") return [bar(tape.label(add.to)), " gets ", numbers ?? show(add.amount)];
  const whole = add.filled.includes(" += "); // names the part of the register itself
  const amount =
    isTensor(add.amount) ? "" : [kink ? ", by convention " : " = ", el("b", { class: "r" }, show(add.amount))];
  return [whole ? "" : [bar(tape.label(add.to)), " gets "], rule, numbers && !whole ? ` = ${numbers}` : "", amount];
}

// cos(π/2) is 6e−17 and not 0, because π/2 itself is rounded.
function roundedZero({ adds, adjoint }) {
  const tiny = ({ amount }) => typeof amount === "number" && amount !== 0 &&
    Math.abs(amount) < 4 * Number.EPSILON * Math.abs(toNumber(adjoint));
  const found = adds.find(tiny);
  return found ? el("p", { class: "hint" }, `${show(found.amount)} is 0 up to rounding: numbers here have 16 digits.`)
    : null;
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
    entry.adds.some(add => add.filled.includes("broadcast"))
      ? el("p", { class: "hint" }, "Broadcast: one number, or a row, is copied to every place.") : null,
    roundedZero(entry),
    softmaxText(tape, entry),
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
  return [...own, ...changed.map(([id, sum]) => figure(["Now ", bar(tape.label(id))], id, sum)),
    ...softmaxFigures(tape, entry)];
}

// The last column of the table: what a register has got so far, and from how many.
export const adjointColumn = { title: "Adjoint so far", of: (tape, node, { registers }) => {
  const register = registers.get(node.id);
  if (!register) return { text: "" };
  const scalar = !isTensor(register.sum), sum = inTable(register.sum, node.shape);
  return { text: scalar && register.parts.length > 1 ? `${arriving(register)} = ${sum}` : sum,
    number: scalar ? String(register.sum) : null, done: register.done };
} };
