// code.js: the code beside the picture: the program in the library's calls, the adjoint code that
// the sweep does, unrolled, and the C that `cotangent compile` exports. The line of the step is
// lit.
import { $, el } from "./dom.js";
import { engineReady, Tracer } from "./engine.js";
import { isTensor, toNumber } from "./numbers.js";

const subscripts = "₀₁₂₃₄₅₆₇₈₉";

// A label as a name in C: %3 and v₃ are v3.
const inC = label => label.replace(/^%/, "v").replace(/[₀-₉]/g, d => subscripts.indexOf(d)).replace(/\W/g, "_");

const numberInC = v => {
  const x = toNumber(v);
  return Number.isNaN(x) ? "NAN" : x === Infinity ? "INFINITY" : x === -Infinity ? "-INFINITY" : String(x);
};

const operandsInC = (tape, node) => node.args.map((id, k) => id === null ? numberInC(node.numbers[k])
  : tape.isNumber(id) ? numberInC(tape.node(id).value) : inC(tape.label(id)));

// The program: [{text, node}], a line for each node.
export function programLines(tape) {
  const lines = [{ text: "cot_tape *t = cot_tape_create(NULL);", node: null }];
  for (const node of tape.nodes) {
    const name = inC(tape.label(node.id));
    if (tape.isSource(node)) {
      if (tape.isNumber(node.id)) continue;
      const leaf = node.op === "leaf", many = isTensor(node.value);
      const shape = `COT_${node.dtype.toUpperCase()}, COT_SHAPE(${node.shape.join(", ")}), ${name}_data`;
      const made = many ? `${leaf ? "cot_tensor" : "cot_data"}(t, ${shape})`
        : `${leaf ? "cot_scalar" : "cot_constant"}(t, ${numberInC(node.value)})`;
      lines.push({ text: `cot_var ${name} = ${made};`, node: node.id });
      continue;
    }
    const attributes = node.call.match(/\b\w+=.*(?=\)$)/)?.[0];
    lines.push({ text: `cot_var ${name} = cot_${node.op}(${operandsInC(tape, node).join(", ")});` +
      (attributes ? `  /* ${attributes} */` : ""), node: node.id });
  }
  const output = inC(tape.label(tape.trace.output));
  if (tape.trace.sweep.length) lines.push({ text: `cot_backward(${output});`, node: null });
  return lines;
}

// A rule in letters of mathematics as C: · is *, a bar is _bar, x^2 is pow(x, 2).
function ruleInC(tape, entry, add) {
  const text = tape.pieces(entry, add).map(p => typeof p === "string" ? p
    : inC(tape.label(p.node)) + (p.adjoint ? "_bar" : "")).join("");
  const power = /([A-Za-z_]\w*|\([^()]*\))\^(\([^()]*\)|[\w.]+)/g;
  return text.replace(power, (_, base, exponent) => `pow(${base}, ${exponent.replace(/^\((.*)\)$/, "$1")})`)
    .replaceAll("·", " * ").replaceAll("−", "-").replaceAll(" [", " (").replaceAll("[", "(").replaceAll("]", ")");
}

// The adjoint code: [{text, node}], every addition of the sweep in its order.
export function adjointLines(tape) {
  if (tape.trace.sweep.length === 0) return [];
  const names = tape.nodes.filter(n => n.active).map(n => `${inC(tape.label(n.id))}_bar`);
  const seed = tape.seed(), output = `${inC(tape.label(tape.trace.output))}_bar`;
  const lines = [{ text: `${names.map(n => `${n} = 0`).join(", ")};`, node: null },
    { text: `${output} = ${isTensor(seed) ? "seed" : numberInC(seed)};`, node: null }];
  for (const entry of tape.sweep) {
    const made = tape.written(tape.node(entry.node), true).replace(/%\d+|v[₀-₉]+/g, inC);
    const written = `/* ${inC(tape.label(entry.node))} = ${made} */`;
    if (entry.adds.length === 0)
      lines.push({ text: `${written} nothing: its adjoint is 0`, node: entry.node });
    entry.adds.forEach((add, k) => {
      const to = inC(tape.label(add.to)), whole = add.filled.includes(" += ");
      const sum = whole ? `${ruleInC(tape, entry, add)};` : `${to}_bar += ${ruleInC(tape, entry, add)};`;
      lines.push({ text: k ? sum : `${sum}  ${written}`, node: entry.node });
    });
  }
  return lines;
}

function exportArguments({ state, many }) {
  const wanted = state.inputs.filter(i => i.wrt).map(i => i.name);
  const by = wanted.length > 0 && wanted.length < state.inputs.length ? ["--wrt", wanted.join(",")] : [];
  const what = many ? ["--vjp", "--seed", state.seed.trim() || "1"] : ["--grad"];
  return ["compile", "--json", "--libm", ...what, ...by, "--", state.expression,
    ...state.inputs.map(i => `${i.name}=${i.text}`)];
}

const codeKinds = [["program", "The program"], ["adjoint", "The adjoint code"], ["export", "Exported C"]];

export class Code {
  constructor() {
    this.kind = "program";
    this.buttons = codeKinds.filter(([kind]) => kind !== "export" || RECORDED === null).map(([kind, text]) =>
      el("button", { type: "button", class: "plain small", "data-code": kind, onclick: () => this.choose(kind) },
        text));
    this.listing = el("pre", { class: "scroll code", id: "code-text", tabindex: 0, role: "region",
      "aria-label": "The code" });
    this.said = el("span", { class: "hint", role: "status" });
    const copy = el("button", { type: "button", class: "plain small", id: "code-copy", onclick: () => this.copy() },
      "Copy");
    this.body = el("div", { class: "code-body" }, el("div", { class: "row wrap" }, this.buttons, copy, this.said),
      this.listing);
    this.details = el("details", { id: "code-more", ontoggle: () => this.draw() },
      el("summary", null, "The code of this tape, in step"));
    $("code").replaceChildren(this.details);
    $("code").hidden = false;
    this.tracer = new Tracer((answer, asked) => this.exported(answer, asked), () => {}, exportArguments);
  }

  fields() { return { code: this.details.open ? this.kind : "" }; }
  recall({ code }, isLink) {
    if (!isLink) return;
    this.details.open = codeKinds.some(([kind]) => kind === code);
    if (this.details.open) this.kind = code;
  }

  look(at) {
    // forward and with tangents the program runs; backward the adjoint code does
    if (at.mode !== this.at?.mode && this.kind !== "export") this.kind = at.mode === "reverse" ? "adjoint" : "program";
    this.at = at;
    this.draw();
  }

  choose(kind) {
    this.kind = kind;
    this.draw();
  }

  draw() {
    if (!this.at || !this.details.open) return;
    this.details.append(this.body); // what is folded has no buttons
    const { tape, state, view } = this.at;
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.code === this.kind));
    if (this.kind === "export") {
      if (this.shown === tape && this.drawn === "export" || !engineReady()) return;
      this.shown = tape;
      this.tracer.ask({ state, many: Array.isArray(tape.trace.value), of: tape });
      return;
    }
    if (this.shown !== tape || this.drawn !== this.kind) {
      const lines = this.kind === "program" ? programLines(tape) : adjointLines(tape);
      this.show(tape, lines);
    }
    const current = this.at.step > 0 ? view.current : null;
    let first = null;
    for (const { element, node } of this.lines) {
      const lit = node !== null && node === current;
      element.classList.toggle("lit", lit);
      if (lit) first ??= element;
    }
    // within its own frame, never the page
    if (first) this.listing.scrollTop = first.offsetTop - this.listing.clientHeight / 2;
  }

  show(tape, lines) {
    Object.assign(this, { shown: tape, drawn: this.kind });
    this.lines = lines.map(({ text, node }) => ({ node, element: el("span", { class: "line" }, `${text}\n`) }));
    this.listing.replaceChildren(...this.lines.map(l => l.element));
    this.said.textContent = "";
  }

  exported(answer, { of }) {
    if (this.kind !== "export" || of !== this.at.tape) return;
    const text = answer.error ? answer.error.message ?? "This needs more memory than a page can have." : answer.source;
    this.show(of, text.trimEnd().split("\n").map(line => ({ text: line, node: null })));
  }

  copy() {
    const text = this.listing.textContent, done = () => { this.said.textContent = "Copied."; };
    const failed = () => { // the text is marked: Ctrl+C copies it
      getSelection().selectAllChildren(this.listing);
      this.said.textContent = "Marked: copy it with Ctrl+C.";
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, failed);
    else failed();
  }
}
