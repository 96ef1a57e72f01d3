// tape.js: a trace of the engine, asked the questions of the page: how a node is written, what is
// lit after so many steps, and what every adjoint register holds then.
import { isTensor, show, showFactor } from "./numbers.js";

const infix = { add: " + ", sub: " − ", mul: "·", div: " / ", matmul: " @ ", pow: "^",
  less: " < ", less_equal: " ≤ ", greater: " > ", greater_equal: " ≥ ", equal: " = ", not_equal: " ≠ " };

export class Tape {
  constructor(trace) {
    this.trace = trace;
    this.nodes = trace.nodes;
    this.byId = new Map(trace.nodes.map(n => [n.id, n]));
    this.place = new Map(trace.nodes.map((n, i) => [n.id, i])); // in the order of the tape
    this.ops = this.nodes.filter(n => !this.isSource(n));                   // the steps forward
    this.sweep = trace.sweep.filter(s => !this.isSource(this.node(s.node))); // the steps backward
    this.position = new Map(this.ops.map((n, i) => [n.id, i]));
    this.assigned = assignedNames(trace);
    this.matrix = this.nodes.some(n => n.shape.length > 0);
  }

  node(id) { return this.byId.get(id); }
  isNumber(id) {
    return this.node(id).op === "constant" && this.node(id).name === null && !isTensor(this.node(id).value);
  }
  isSource(n) { return n.args.length === 0; }
  label(id) { return this.node(id).name ?? this.assigned.get(id) ?? `%${id}`; }

  // An operation as people write it, its operands by their labels; short: without its attributes.
  written(n, short = false) {
    if (this.isSource(n)) return n.op === "leaf" ? "input" : "constant";
    const words = n.args.map((id, k) => id === null ? showFactor(n.numbers[k])
      : this.isNumber(id) ? showFactor(this.node(id).value) : this.label(id));
    if (infix[n.op] && words.length === 2) return words.join(infix[n.op]);
    if (n.op === "neg") return `−${words[0]}`;
    const attributes = short ? [] : n.call.match(/\b\w+=.*(?=\)$)/) ?? []; // "axes=0,1, keepdims=1"
    return `${n.op}(${[...words, ...attributes].join(", ")})`;
  }

  // The same with numbers for operands: null where there are tensors.
  calculated(n) {
    if (n.args.some(id => id !== null && isTensor(this.node(id).value))) return null;
    const words = n.args.map((id, k) => showFactor(id === null ? n.numbers[k] : this.node(id).value));
    if (infix[n.op] && words.length === 2) return words.join(infix[n.op]);
    return n.op === "neg" ? `−${words[0]}` : `${n.op}(${words.join(", ")})`;
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

  // A filled-in rule, "%5̄·cos(x1)", as pieces: texts, and {node, adjoint} for what stands for a
  // node.
  pieces(entry, add) {
    const node = this.node(entry.node),
          named = new Map([node.id, ...node.args].filter(a => a !== null).map(a => [this.node(a).name, a]));
    const list = [];
    let at = 0;
    for (const found of add.filled.matchAll(
           /(?:%(\d+)|([\p{L}_][\p{Ll}\p{Lu}\d_]*))(\u0304?)(?![\p{Ll}\p{Lu}\d_(])/gu)) {
      const id = found[1] !== undefined ? +found[1] : named.get(found[2].normalize("NFC"));
      if (id === undefined || !this.byId.has(id)) continue;
      list.push(add.filled.slice(at, found.index), { node: id, adjoint: found[3] !== "" });
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

// Names that the text gives to values, "a = x*y": node -> name, where the node's part of the text
// is the whole right side. A name used again counts: y₁, y₂.
function assignedNames(trace) {
  const encoder = new TextEncoder(), found = [], statements = /(^|[;\n])(\s*)([A-Za-z_]\w*)(\s*=(?!=)\s*)([^;\n]*)/g;
  const bySpan = new Map(trace.nodes.filter(n => n.args.length > 0 && n.span).map(n => [n.span.join(), n]));
  const uses = new Map(), times = new Map(),
        once = (counts, name) => counts.set(name, (counts.get(name) ?? 0) + 1).get(name);
  let read = 0, bytes = 0; // of the text, up to the right side
  for (const match of trace.expression.matchAll(statements)) {
    const [, end, space, name, equals, right] = match, { index } = match;
    const at = index + end.length + space.length + name.length + equals.length;
    bytes += encoder.encode(trace.expression.slice(read, at)).length;
    read = at;
    const node = bySpan.get(`${bytes},${bytes + encoder.encode(right.trimEnd()).length}`);
    if (!node) continue;
    found.push([node.id, name]);
    once(uses, name);
  }
  return new Map(found.map(([id, name]) => [id, uses.get(name) > 1 ? name + subscript(once(times, name)) : name]));
}

const subscript = n => String(n).replace(/\d/g, d => "₀₁₂₃₄₅₆₇₈₉"[d]);
