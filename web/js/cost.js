// cost.js: what derivatives cost. Forward mode needs one sweep for each input, reverse mode one for
// each output; the rest is drawing it. Forward mode is green like its tangents: blue is the forward
// pass, which both modes begin with.
import { chart } from "./chart.js";
import { el } from "./dom.js";
import { costOf, costOfDepth, engineReady } from "./engine.js";
import { Memory } from "./memory.js";
import { showBytes, showCount } from "./numbers.js";

const most = 6; // powers of ten of the sliders

const fromSlider = v => Math.round(10 ** (v / 20));
const toSlider = n => Math.round(20 * Math.log10(n));

export class CostPanel {
  constructor(frame, onChange) {
    this.frame = frame;
    this.onChange = onChange;
    this.sizes = { n: 1000, m: 1 };
    this.curves = { n: 0 };
    this.drawn = el("div", { class: "drawn" });
    const slider = (key, label) => {
      const range = el("input", { type: "range", id: `cost-${key}`, min: 0, max: 20 * most, step: 1,
        value: toSlider(this.sizes[key]), oninput: () => {
          this.sizes[key] = fromSlider(Number(range.value));
          this.draw();
          onChange();
        } });
      const out = el("output", { id: `cost-${key}-value`, for: `cost-${key}` });
      this[key] = { range, out };
      return el("div", { class: "row slider" }, el("label", { for: `cost-${key}` }, label), range, out);
    };
    this.any = el("section", { class: "card", "aria-labelledby": "any-title" },
      el("h2", { id: "any-title" }, "Any function from n inputs to m outputs"),
      el("p", { class: "about" },
        "Forward mode walks with tangents: it follows one input at a time through the whole tape. Reverse mode " +
          "follows one output at a time back. So the shape of the function decides: a training loss has a million " +
          "inputs and one output."),
      slider("n", "Inputs n"), slider("m", "Outputs m"), this.drawn);
    this.memory = new Memory(() => {
      this.draw(); // its depth counts here too
      onChange();
    });
    this.own = el("section", { class: "card", id: "cost-own", "aria-labelledby": "own-title" });
  }

  // As a panel of the page: nothing changes from step to step, but the sliders are part of a link.
  look() {}
  fields() { return document.body.dataset.mode === "cost" ? this.memory.fields() : {}; }
  recall({ size }) { this.memory.recall(size); }

  set(sizes) {
    Object.assign(this.sizes, sizes);
    for (const key of ["n", "m"]) this[key].range.value = toSlider(this.sizes[key]);
  }

  show(tape) {
    this.frame.replaceChildren(...(engineReady() ? [this.any, this.memory.frame] : []), this.own);
    if (engineReady()) {
      this.draw();
      this.memory.draw();
    }
    this.own.replaceChildren(
      el("h2", { id: "own-title" }, "The function on this page"), ...(tape ? ownCost(tape) : []));
  }

  draw() {
    const { n, m } = this.sizes, cost = costOf(n, m);
    for (const key of ["n", "m"]) {
      this[key].out.textContent = showCount(this.sizes[key]);
      this[key].range.setAttribute("aria-valuetext", `${this.sizes[key]}`);
    }
    if (cost.error) return this.drawn.replaceChildren(el("p", { class: "error" }, cost.error.message));
    const { depth } = this.memory.sizes, [plain] = costOfDepth({ depth, width: n }).plans;
    const kept = { depth, forward: 0, reverse: plain.bytes };
    if (this.curves.n !== n) // both curves for this n, over all m
      this.curves = {
        n,
        points: Array.from({ length: most + 1 }, (_, k) => ({ m: 10 ** k, cost: costOf(n, 10 ** k) }))
      };
    this.drawn.replaceChildren(
      comparison(cost, "evaluations of the function", kept), chart(this.curves.points, m, cost), verdict(cost));
  }
}

// The values that the way back will read, each counted once.
const keptBytes = tape => [...new Set(tape.nodes.flatMap(n => n.keeps))].reduce((sum, id) =>
  sum + tape.node(id).bytes, 0);

function ownCost(tape) {
  const { cost } = tape.trace;
  if (!cost) return [];
  const about =
    `${plural(cost.inputs, "input number")}, ${plural(cost.outputs, "output number")}; computing it once takes ` +
    `${plural(cost.function.operations, "operation")}.`;
  return [el("p", { class: "about" }, about), comparison(cost, "operations", { forward: 0, reverse: keptBytes(tape) }),
    el("p", { class: "hint" }, "Memory is the most that is held at once. Forward mode has a tangent beside every " +
      "value, reverse mode what it keeps, and the adjoints. In a short function the tangents can be more. " +
      "What is kept grows with the length of the tape."), verdict(cost)];
}

const plural = (n, word) => `${showCount(n)} ${word}${n === 1 ? "" : "s"}`;

function verdict(cost) {
  const best = { reverse: ["r", "Reverse mode is cheaper here."], forward: ["t", "Forward mode is cheaper here."],
    equal: [null, "Both cost the same here."] };
  const [name, text] = best[cost.cheaper];
  return el("p", { class: "verdict", role: "status" }, el("b", { class: name }, text), " ",
    sentence(cost.crossing?.why ?? ""));
}

const sentence = text => text && `${text[0].toUpperCase()}${text.slice(1)}.`;

// Rows: passes, operations, memory; the bars are logarithmic, so that both can be seen.
// kept: what waits for the way back, {forward, reverse}, perhaps with so many steps of n numbers
function comparison(cost, unit, kept) {
  cost = { ...cost, forward: { ...cost.forward, kept: kept.forward },
    reverse: { ...cost.reverse, kept: kept.reverse } };
  const rows = [["Passes over the tape", "sweeps", showCount], [`Work, in ${unit}`, "operations", showCount],
    [kept.depth ? "Memory, for inputs, outputs and their derivatives" : "Memory, the most at once", "bytes", showBytes],
    [`Kept for the way back${kept.depth ? `, with ${showCount(kept.depth)} steps of n numbers` : ""}`, "kept",
      showBytes]];
  const most = key => Math.log10(1 + Math.max(cost.forward[key], cost.reverse[key], 1));
  const size = (mode, key) => (100 * Math.log10(1 + cost[mode][key]) / most(key)).toFixed(1);
  const bar = (mode, key) => el("span", { class: `amount ${mode}`, style: `--size:${size(mode, key)}%` });
  const cell = (mode, key, text) => el("td", { "data-value": cost[mode][key] }, text(cost[mode][key]), bar(mode, key));
  const head = (name, text) => el("th", { scope: "col", class: name }, text);
  return el("table", { class: "compare" },
    el("thead", null, el("tr", null, el("td"), head("t", "Forward mode (tangents)"), head("r", "Reverse mode"))),
    el("tbody", null, rows.map(([label, key, text]) => el("tr", { "data-row": key },
      el("th", { scope: "row" }, label), cell("forward", key, text), cell("reverse", key, text)))));
}
