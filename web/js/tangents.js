// tangents.js: forward mode as a walk. One number moves by 1, an input or a place of one; every
// operation says how fast it moves then, from how fast its operands move. All numbers are the
// engine's (`tangents` of a trace): with very many numbers it moves whole inputs.
import { $, dot, el } from "./dom.js";
import { heatFigure } from "./heat.js";
import { inTable, isTensor, show, showFactor, showShape } from "./numbers.js";

// Which input moves: of the walk, not of a tape, so that a moved slider keeps it.
const moving = { name: null };

export const movable = tape => Object.keys(tape.trace.tangents ?? {});
export const movingIn = tape => movable(tape).includes(moving.name) ? moving.name : movable(tape)[0] ?? null;

// "W[0,1]" -> ["W", 0, 1]
const placeOfWalk = walk => {
  const [, name, inside] = walk.match(/^([^[]*)(?:\[(.*)\])?$/);
  return [name, ...(inside ? inside.split(",").map(Number) : [])];
};

// Does a walk move a whole array at once? Then it is a direction, not one derivative.
const movesArray = (tape, walk) => {
  const [name, ...place] = placeOfWalk(walk);
  return tape.node(tape.trace.inputs.find(i => i.name === name).node).shape.length > place.length;
};

// How many walks tell about every number: as many as the cost of forward mode counts.
export const allWalks = tape => movable(tape).some(w => movesArray(tape, w)) ? tape.trace.cost?.forward.sweeps ?? 0
  : movable(tape).length;

// What the walk back has for the same place: a number, or undefined.
function derivativeBy(tape, walk) {
  const [name, ...place] = placeOfWalk(walk);
  return place.reduce((v, k) => v?.[k], tape.trace.grad[name]);
}

const foundTangents = new WeakMap(); // tape -> {name: Map of node to tangent}

export function tangentsOf(tape, name = movingIn(tape)) {
  if (name === null) return new Map();
  if (!foundTangents.has(tape)) foundTangents.set(tape, {});
  return foundTangents.get(tape)[name] ??= new Map(tape.trace.tangents[name].map(t => [t.node, t.tangent]));
}

export const movedOps = tape => movable(tape).length ? tape.ops.filter(n => tangentsOf(tape).has(n.id)) : [];

// What an operand hands on: the rule of the way back, with the tangent of the operand in the place
// of the adjoint. For numbers they are the same products, in the other direction.
export function tangentParts(tape, node) {
  const entry = tape.sweep.find(s => s.node === node.id), tangents = tangentsOf(tape);
  const plain = v => typeof v === "number" && Number.isFinite(v);
  if (!entry || !plain(node.value) || !plain(entry.adjoint) || entry.adjoint === 0) return null;
  const all = entry.adds.map(add => {
    const partial = add.amount / entry.adjoint, tangent = tangents.get(add.to);
    const pieces = tape.pieces(entry, add), by = (name, value) => pieces.map(p => typeof p === "string" ? p
      : p.adjoint ? name(add.to) : value(p.node));
    return { from: add.to, partial, tangent, names: by(id => dot(tape.label(id)), id => tape.label(id)),
      numbers: by(() => showFactor(tangent), id => showFactor(tape.node(id).value)).join("") };
  });
  return all.length && all.every(p => plain(p.partial) && plain(p.tangent)) ? all : null;
}

export function tangentIntro(tape) {
  const name = movingIn(tape);
  if (!name) return ["No input moves this result, so there are no tangents."];
  const whole = movesArray(tape, name);
  return ["A dot over a name means its ", el("b", null, "tangent"), ": ", dot(name), ` = 1, so ${name} moves at `,
    whole ? "speed 1, in all its places at once. " : "speed 1. ",
    "Every box then says how fast it moves, from how fast its operands move. The last one is the ",
    whole ? `derivative along this direction: the sum of those by each number of ${name}.`
      : `derivative by ${name}, and by nothing else.`];
}

export function tangentView(tape, step) {
  const ops = movedOps(tape), node = step > 0 ? ops[step - 1] : null, tangents = tangentsOf(tape);
  const position = new Map(ops.map((n, i) => [n.id, i]));
  const shown = [...tangents].filter(([id]) => tape.isSource(tape.node(id)) || position.get(id) < step);
  return {
    mode: "tangent", current: node?.id ?? null, key: movingIn(tape), lit: () => true,
    registers: new Map(shown.map(([id, sum]) => [id, { sum, parts: [{}], done: id !== node?.id }])),
    flow: (from, to) => {
      const at = position.get(to) + 1;
      if (!tangents.has(from) || Number.isNaN(at)) return { way: 0, when: "none" };
      return { way: 1, when: at === step ? "now" : at < step ? "done" : "later" };
    },
    flows: node ? flowsOfNode(tape, node) : [],
    summary: `The tape as a graph, ${step} of ${ops.length} tangents known, along ${movingIn(tape)}`,
  };
}

function flowsOfNode(tape, node) {
  const flows = new Map(), products = tangentParts(tape, node);
  const add = (from, line) => {
    const flow = flows.get(from) ?? { from, to: node.id, lines: [] };
    flow.lines.push(line);
    flows.set(from, flow);
  };
  for (const { from, partial, tangent } of products ?? [])
    add(from, [showFactor(tangent, 4), [{ own: `× ${showFactor(partial, 4)}` }], `= ${show(partial * tangent, 4)}`]);
  // of arrays: what comes through an operand, by its rule if that is short
  if (!products)
    for (const { from, filled, amount } of tape.trace.tangents[movingIn(tape)].find(t => t.node === node.id).parts)
      add(from, amount !== null && !isTensor(amount) ? [`= ${show(amount, 4)}`]
        : [filled && filled.length <= 24 ? filled : showShape(tape.node(from).shape)]);
  return [...flows.values()];
}

function formulaOf(tape, node) {
  const list = tangentParts(tape, node), value = tangentsOf(tape).get(node.id);
  const sum = pick => list.flatMap((p, k) => [k ? " + " : "", ...pick(p)]);
  return [dot(tape.label(node.id)), ...(list ? [" = ", ...sum(p => p.names), " = ", ...sum(p => [p.numbers])] : []),
    ...(isTensor(value) ? [] : [" = ", el("b", { class: "t" }, show(value))])];
}

export function tangentText(tape, step) {
  const ops = movedOps(tape), name = movingIn(tape);
  if (!name) return [el("p", null, "The result depends on no input with a derivative, so nothing moves.")];
  if (step === 0) {
    const still = movable(tape).filter(n => n !== name).slice(0, 8);
    return [el("p", { class: "formula" }, dot(name), " = ", el("b", { class: "t" }, "1"),
      still.map(n => [", ", dot(n), " = 0"]), still.length < movable(tape).length - 1 ? ", …" : ""),
    el("p", null, `Only ${name} moves. Step to see what that does to each box.`)];
  }
  const node = ops[step - 1], value = tangentsOf(tape).get(node.id);
  return [
    el("p", { class: "formula" }, `${tape.label(node.id)} = ${tape.written(node)}, so `, formulaOf(tape, node)),
    isTensor(value) ? el("p", null, `How ${tape.label(node.id)} moves, place by place.`) : null,
    value === 0 ? el("p", null, `It does not move with ${name}.`) : null,
    step === ops.length ? el("p", null, movesArray(tape, name)
      ? `That is the derivative of f along ${name} as a whole: a sum over its numbers. One at a time needs more walks.`
      : `That is the derivative of f by ${name}. For another number, walk again.`) : null,
  ];
}

export const tangentBrief = (tape, step) => step === 0 ? [dot(movingIn(tape) ?? ""), " = 1"]
  : formulaOf(tape, movedOps(tape)[step - 1]);

export function tangentFigures(tape, step) {
  const node = step > 0 ? movedOps(tape)[step - 1] : null, value = node && tangentsOf(tape).get(node.id);
  return node && isTensor(value) ? [heatFigure(["Tangent ", dot(tape.label(node.id))], value, node.shape)] : [];
}

export const tangentColumn = { title: "Tangent", of: (tape, node, { registers }) => {
  const register = registers.get(node.id);
  if (!register) return { text: "" };
  return { text: inTable(register.sum, node.shape), done: register.done,
    number: isTensor(register.sum) ? null : String(register.sum) };
} };

export const tangentNodes = tape => movedOps(tape).map(n => n.id);
export const tangentHint = tape => {
  const name = movingIn(tape);
  return name ? [dot(name), ` is the tangent of ${name}: how fast it moves.`] : [];
};

// The input after this one, or null: what the next walk would be about.
export function nextMoving(tape) {
  const names = movable(tape);
  return names[names.indexOf(movingIn(tape)) + 1] ?? null;
}
export function setMoving(name) { moving.name = name; }

// The card beside the walk: which input moves, and n walks against one sweep.
export class Tangents {
  // onMove(name): this input is to move
  constructor(onMove) {
    this.onMove = onMove;
    this.walked = new Map();
    $("tangent-input").addEventListener("change", () => onMove($("tangent-input").value));
  }

  fields() { return { along: document.body.dataset.mode === "tangent" ? moving.name ?? "" : "" }; }
  recall({ along }) { if (along) setMoving(along); }

  look({ tape, mode, step, last }) {
    $("tangent-card").hidden = mode !== "tangent";
    if (mode !== "tangent") return;
    const names = movable(tape), name = movingIn(tape);
    if (this.tape !== tape) this.walked = new Map();
    this.tape = tape;
    if (name && step === last) this.walked.set(name, tangentsOf(tape).get(tape.trace.output));
    $("tangent-input").replaceChildren(...names.map(n => el("option", { value: n, selected: n === name }, n)));
    const full = v => isTensor(v) ? inTable(v, tape.node(tape.trace.output).shape) : show(v);
    const sums = n => derivativeBy(tape, n) === undefined || isTensor(derivativeBy(tape, n)) ? "(an array)"
      : show(derivativeBy(tape, n));
    const all = allWalks(tape);
    $("tangent-table").replaceChildren(el("thead", null, el("tr", null, el("th", null, "input"),
      el("th", { class: "t" }, `${all} walk${all === 1 ? "" : "s"} of tangents`),
      el("th", { class: "r" }, `1 walk back${tape.weighted === "f" ? "" : `, of ${tape.weighted}`}`))),
    el("tbody", null, names.map(n => el("tr", { "data-walk": n }, el("th", { scope: "row" }, n),
      el("td", { class: "number t" }, this.walked.has(n) ? full(this.walked.get(n)) : "not walked yet"),
      el("td", { class: "number r" }, sums(n))))));
    const sweeps = tape.trace.cost?.reverse.sweeps ?? 1;
    const back = sweeps > 1 ? `A walk back gives one weighted sum of the results; all of them need ${sweeps} walks back`
      : "The walk back gives all at once";
    $("tangent-count").textContent = all === names.length
      ? `${this.walked.size} of ${all} walks done. ${back}; tangents need a walk for each number of the inputs, but ` +
        "keep nothing."
      : `Here a walk moves a whole array. One number at a time takes ${all} walks. ${back}.`;
  }
}
