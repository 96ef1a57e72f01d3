// tape.js: a trace of the engine, asked the questions of the page: how a node is written, what is lit after so many steps, and what
// every adjoint register holds then.
import { isTensor, show, showFactor } from "./numbers.js";

const infix = { add: " + ", sub: " − ", mul: "·", div: " / ", matmul: " @ ", pow: "^",
  lt: " < ", le: " ≤ ", gt: " > ", ge: " ≥ ", eq: " = ", ne: " ≠ " };

export class Tape {
  constructor(trace) {
    this.trace = trace;
    this.nodes = trace.nodes;
    this.byId = new Map(trace.nodes.map(n => [n.id, n]));
    this.ops = this.nodes.filter(n => !this.isSource(n));                   // the steps forward
    this.sweep = trace.sweep.filter(s => !this.isSource(this.node(s.node))); // the steps backward
    this.matrix = this.nodes.some(n => n.shape.length > 0);
  }

  node(id) { return this.byId.get(id); }
  isSource(n) { return n.args.length === 0; }
  label(id) { return this.node(id).name ?? `%${id}`; }

  // An operation as people write it, its operands by their labels; short: without its attributes.
  written(n, short = false) {
    if (this.isSource(n)) return n.op === "leaf" ? "input" : "constant";
    const words = n.args.map((id, k) => id === null ? showFactor(n.numbers[k]) : this.label(id));
    if (infix[n.op] && words.length === 2) return words.join(infix[n.op]);
    if (n.op === "neg") return `−${words[0]}`;
    const attributes = short ? [] : n.call.match(/\b\w+=(\([^)]*\)|\[[^\]]*\]|[^\s,()]+)/g) ?? [];
    return `${n.op}(${[...words, ...attributes].join(", ")})`;
  }

  // The same with numbers for operands: null where there are tensors.
  calculated(n) {
    if (n.args.some(id => id !== null && isTensor(this.node(id).value))) return null;
    const words = n.args.map((id, k) => showFactor(id === null ? n.numbers[k] : this.node(id).value));
    if (infix[n.op] && words.length === 2) return words.join(infix[n.op]);
    return n.op === "neg" ? `−${words[0]}` : `${n.op}(${words.join(", ")})`;
  }

  // What the way back will read: "x1 and x2", "its own value".
  kept(n) {
    const names = n.saves.map(s => {
      if (s === "z") return "its own value";
      const id = n.args["xyw".indexOf(s)];
      return id === undefined || id === null ? null : this.label(id);
    });
    return [...new Set(names.filter(x => x !== null))];
  }

  isLit(n, forwardStep) {
    return this.isSource(n) || this.ops.indexOf(n) < forwardStep;
  }

  // The registers after so many steps of the sweep: id -> {sum, parts: [{from, amount}], done}.
  registers(step) {
    const all = new Map();
    all.set(this.trace.output, { sum: this.seed(), parts: [{ from: null, amount: this.seed() }], done: false });
    for (const entry of this.sweep.slice(0, step)) {
      const own = all.get(entry.node);
      if (own) own.done = true;
      for (const add of entry.adds) {
        const register = all.get(add.to) ?? { sum: 0, parts: [], done: false };
        register.parts = [...register.parts, { from: entry.node, amount: add.amount }];
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

  // A filled-in rule, "%5̄·%1", in labels and in numbers (null where there are tensors).
  ruleInLabels(add) {
    return add.filled.replace(/%(\d+)(\u0304?)/g, (all, id, bar) => bar ? `adj(${this.label(+id)})` : this.label(+id));
  }
  ruleInNumbers(add, registers) {
    let tensors = false;
    const text = add.filled.replace(/%(\d+)(\u0304?)/g, (all, id, bar) => {
      const v = bar ? registers.get(+id)?.sum : this.node(+id).value;
      tensors ||= isTensor(v);
      return showFactor(v);
    });
    return tensors || text === show(add.amount) ? null : text;
  }
}
