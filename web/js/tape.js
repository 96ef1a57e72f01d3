// tape.js: a trace of the engine, asked the questions of the page: how a node is written, what is
// lit after so many steps, and what every adjoint register holds then.
import { isTensor, show, showFactor } from "./numbers.js";

const infix = { add: " + ", sub: " − ", mul: "·", div: " / ", matmul: " @ ", pow: "^",
  less: " < ", less_equal: " ≤ ", greater: " > ", greater_equal: " ≥ ", equal: " = ", not_equal: " ≠ " };

const spoken = { detach: "stop_gradient" }; // one name, the one that expressions have

const constants = { e: true, pi: true };

export const inBrackets = name => name === "f" ? name : `(${name})`;

export class Tape {
  constructor(trace) {
    this.trace = trace;
    this.nodes = trace.nodes;
    this.byId = new Map(trace.nodes.map(n => [n.id, n]));
    this.place = new Map(trace.nodes.map((n, i) => [n.id, i])); // in the order of the tape
    this.ops = this.nodes.filter(n => !this.isSource(n));                   // the steps forward
    this.sweep = trace.sweep.filter(s => !this.isSource(this.node(s.node))); // the steps backward
    this.position = new Map(this.ops.map((n, i) => [n.id, i]));
    this.matrix = this.nodes.some(n => n.shape.length > 0);
  }

  node(id) { return this.byId.get(id); }
  isNumber(id) {
    return this.node(id).op === "constant" && this.node(id).name === null && !isTensor(this.node(id).value);
  }
  isSource(n) { return n.args.length === 0; }
  label(id) { return this.node(id).label; }

  // An operation as people write it, its operands by their labels; short: without its attributes.
  written(n, short = false) {
    if (this.isSource(n)) return n.op === "leaf" ? "input" : "constant";
    const number = k => n.operands[k] in constants ? n.operands[k] : showFactor(n.numbers[k]);
    const words = n.args.map((id, k) => id === null ? number(k)
      : this.isNumber(id) ? showFactor(this.node(id).value) : this.label(id));
    if (infix[n.op] && words.length === 2) return words.join(infix[n.op]);
    if (n.op === "neg") return `−${words[0]}`;
    if (n.op === "concat" && n.call.endsWith(", axis=0, new)")) return `[${words.join(", ")}]`;
    const attributes = short ? [] : n.call.match(/\b\w+=.*(?=\)$)/) ?? []; // "axes=0,1, keepdims=1"
    return `${spoken[n.op] ?? n.op}(${[...words, ...attributes].join(", ")})`;
  }

  // The same with numbers for operands: null where there are tensors.
  calculated(n) {
    if (n.args.some(id => id !== null && isTensor(this.node(id).value))) return null;
    const words = n.args.map((id, k) => showFactor(id === null ? n.numbers[k] : this.node(id).value));
    if (infix[n.op] && words.length === 2) return words.join(infix[n.op]);
    return n.op === "neg" ? `−${words[0]}` : `${spoken[n.op] ?? n.op}(${words.join(", ")})`;
  }

  // What the way back will read: "x1", "x2", "its own value".
  kept(n) {
    return [...new Set(n.keeps)].map(id => id === n.id ? "its own value" : this.label(id));
  }

  // When something is handed back from one node to another: "to>from" -> the step of the sweep.
  get handed() {
    this.handedAt ??= new Map(this.sweep.flatMap((entry, i) =>
      entry.adds.map(add => [`${add.to}>${entry.node}`, i + 1])));
    return this.handedAt;
  }

  isLit(n, forwardStep) {
    return this.isSource(n) || this.position.get(n.id) < forwardStep;
  }

  // The registers after so many steps of the sweep: id -> {sum, parts: [{from, amount}], done}. A
  // step asks for them more than once, after it and before it.
  registers(step) {
    this.recent ??= new Map();
    const known = this.recent.get(step) ?? this.registersAfter(step);
    this.recent.delete(step);
    this.recent.set(step, known);
    if (this.recent.size > 3) this.recent.delete(this.recent.keys().next().value);
    return known;
  }

  registersAfter(step) {
    const all = new Map();
    if (this.trace.sweep.length === 0) return all;
    all.set(this.trace.output, { sum: this.seed(), parts: [{ from: null, amount: this.seed() }], done: false });
    for (const entry of this.sweep.slice(0, step)) {
      const own = all.get(entry.node);
      if (own) own.done = true;
      for (const add of entry.adds) {
        const register = all.get(add.to) ?? { sum: 0, parts: [], done: false };
        register.parts.push({ from: entry.node, amount: add.amount });
        register.sum = add.sum;
        all.set(add.to, register);
      }
    }
    if (step === this.sweep.length) // nothing is left to arrive
      for (const [id, register] of all) if (this.isSource(this.node(id))) register.done = true;
    return all;
  }

  seed() {
    const first = this.trace.sweep.find(s => s.node === this.trace.output);
    return first ? first.adjoint : this.trace.seed;
  }

  // What the gradient is of: f, or f times the seed, "5·f"; of several results their weighted sum.
  get weighted() {
    const seed = this.seed();
    if (isTensor(this.trace.value)) return "seed·f";
    return seed === 1 || this.trace.sweep.length === 0 ? "f" : `${showFactor(seed)}·f`;
  }

  // "∂f/∂x", "∂(5·f)/∂x"
  partial(name) { return `∂${inBrackets(this.weighted)}/∂${name}`; }

  // A filled-in rule, "v̄₅·cos(x1)", as pieces: texts, and {node, adjoint} for what stands for a
  // node. The bar of an adjoint stands behind the first letter of a label.
  pieces(entry, add) {
    const node = this.node(entry.node), known = new Map();
    for (const id of [node.id, ...node.args].filter(a => a !== null)) {
      const [first, ...rest] = this.label(id);
      known.set(this.label(id), { node: id, adjoint: false });
      known.set(first + "\u0304" + rest.join(""), { node: id, adjoint: true });
    }
    const list = [];
    let at = 0;
    for (const found of add.filled.matchAll(/[\p{L}_]\u0304?[\p{L}\d_₀-₉]*(?![\p{L}\d_(])/gu)) {
      if (!known.has(found[0])) continue;
      list.push(add.filled.slice(at, found.index), known.get(found[0]));
      at = found.index + found[0].length;
    }
    return [...list, add.filled.slice(at)]
      .map(p => typeof p === "string" ? p.replaceAll("-", "−") : p)
      .filter(p => p !== "");
  }

  // The same in numbers; null where there are tensors, or where the numbers are only the result
  // once more.
  inNumbers(entry, add, registers) {
    const pieces = this.pieces(entry, add),
          value = p => p.adjoint ? registers.get(p.node)?.sum : this.node(p.node).value;
    if (pieces.some(p => typeof p !== "string" && isTensor(value(p)))) return null;
    const text = pieces.map(p => typeof p === "string" ? p : showFactor(value(p))).join("");
    return /^\(?[−\d.e∞]+\)?$/.test(text) ? null : text;
  }
}
