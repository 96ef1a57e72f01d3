// code.js: the code beside the picture: the program in the library's calls and the adjoint code
// that the sweep does, unrolled, both from the trace, and the C that `cotangent compile` exports.
// The line of the step is lit.
import { $, el } from "./dom.js";
import { engineReady, Tracer } from "./engine.js";

// The lines of the trace: [{text, node, back}]. What no public function of the library says ends
// them, and is named.
function codeLines(tape, kind) {
  const { program, sweep, missing } = tape.trace.code;
  const lines = kind === "program" ? program : sweep;
  if (program.length === 0)
    return [{ text: "This tape is too long to be read as code. `cotangent trace --c` prints it.", node: null }];
  if (lines.length === 0) return [{ text: "No derivative is asked for: there is no sweep.", node: null }];
  if (lines.at(-1).text === "}") return lines;
  const end = `    /* The code ends here: no public function says what ${missing} does. */`;
  return [...lines, { text: end, node: null }];
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
      this.show(tape, codeLines(tape, this.kind));
    }
    const current = this.at.step > 0 ? view.current : null;
    // the program runs forward in every walk; the adjoint code has a forward part and the sweep
    const backward = this.kind === "adjoint" && this.at.mode === "reverse";
    let first = null;
    for (const { element, node, back } of this.lines) {
      const lit = node !== null && node === current && back === backward;
      element.classList.toggle("lit", lit);
      if (lit) first ??= element;
    }
    // within its own frame, never the page
    if (first) this.listing.scrollTop = first.offsetTop - this.listing.clientHeight / 2;
  }

  show(tape, lines) {
    Object.assign(this, { shown: tape, drawn: this.kind });
    this.lines = lines.map(({ text, node, back }) =>
      ({ node, back, element: el("span", { class: "line" }, `${text}\n`) }));
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
