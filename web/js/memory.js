// memory.js: what reverse mode keeps, and how to keep less. Sliders for a loop or a deep network;
// curves of time and memory for its plans, all counted by the engine (`cotangent cost --depth`);
// and the sweep of a checkpointed loop, event by event.
import { el, svg } from "./dom.js";
import { costOfDepth } from "./engine.js";
import { showBytes, showCount } from "./numbers.js";
import { Rewind } from "./rewind.js";

const plans = {
  plain: ["Plain reverse", "keeps every state"],
  sqrt: ["√N checkpoints", "keeps every √N-th state, and the states of one stretch"],
  binomial: ["Binomial schedule", "keeps the first, the last and the states you allow, where binomial coefficients " +
    "say that least runs again"],
  micro: ["Micro-batches", "keeps every state, of one part of the batch at a time"],
  limit: ["Memory limit", "keeps as many states as fit, and runs the rest again"],
};

const depths = [1, 3, 10, 30, 100, 300, 1000, 3000, 10000];

// Sliders: [key, label, values that it can have, what it means].
const powers = most => Array.from({ length: Math.round(Math.log2(most)) + 1 }, (_, k) => 2 ** k);
const controls = [["depth", "Depth N", [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100, 200, 500, 1000],
  "steps that follow each other: the rounds of a loop, or the layers of a network"],
["width", "Width", powers(4096), "numbers that one step hands to the next, for one example"],
["batch", "Batch", powers(1024), "examples that run together; a state is width × batch numbers"],
["states", "States", [1, 2, 3, 4, 5, 6, 8, 10, 16],
  "that the binomial schedule may keep, besides the first and the last"],
["micro", "Parts of it", powers(64), "micro-batches: the batch is done in parts, and their gradients are added"],
["bytes", "Precision", [8, 4, 2], "bytes of a number: 8 in f64, 4 in f32, 2 in bf16"],
["limit", "Limit", [0, ...Array.from({ length: 11 }, (_, k) => 2 ** (15 + k))],
  "bytes for kept states; with one there is a plan that stays below it"]];

const widthName = { 8: "f64", 4: "f32", 2: "bf16" };
const written = (key, n) => key === "bytes" ? widthName[n] : key !== "limit" ? showCount(n)
  : n === 0 ? "none" : showBytes(n);

export class Memory {
  constructor(onChange) {
    this.onChange = onChange;
    this.sizes = { depth: 16, width: 512, batch: 64, states: 3, micro: 8, bytes: 8, limit: 0 };
    this.rows = new Map();
    this.rewind = new Rewind();
    // it scrolls on narrow screens, by keys too
    this.table = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Plans compared" });
    this.curves = el("div", { class: "curves" });
    this.frame = el("section", { class: "card", id: "memory", "aria-labelledby": "memory-title" },
      el("h2", { id: "memory-title" }, "Memory and depth"),
      el("p", { class: "about" }, "Reverse mode runs forward first and keeps the state before every step, because " +
        "the way back needs it. A state is all that one step hands to the next. So memory grows with depth. One can " +
        "keep less, and run steps again."),
      controls.map(control => this.slider(...control)),
      this.table, this.curves,
      el("p", { class: "hint" }, "Time counts evaluations of one step: a run is 1, a step back is 3. Both axes are " +
        "logarithmic."),
      this.rewind.frame);
  }

  slider(key, label, values, means) {
    const range = el("input", { type: "range", id: `memory-${key}`, min: 0, max: values.length - 1, step: 1,
      "aria-describedby": `memory-${key}-means`, oninput: () => {
        this.sizes[key] = values[Number(range.value)];
        this.draw();
        this.onChange();
      } });
    const out = el("output", { for: `memory-${key}` });
    this.rows.set(key, { range, out, values });
    return el("div", { class: "row slider" }, el("label", { for: `memory-${key}` }, label), range, out,
      el("p", { class: "hint", id: `memory-${key}-means` }, means));
  }

  fields() { return { size: controls.map(([key]) => this.sizes[key]).join(",") }; }

  // Of a link: only numbers that the sliders have.
  recall(text) {
    const numbers = (text ?? "").split(",").map(Number);
    controls.forEach(([key, , values], k) => { if (values.includes(numbers[k])) this.sizes[key] = numbers[k]; });
  }

  draw() {
    const sizes = { ...this.sizes, micro: Math.min(this.sizes.micro, this.sizes.batch) };
    for (const [key, { range, out, values }] of this.rows) {
      range.value = values.indexOf(this.sizes[key]);
      out.textContent = written(key, sizes[key]);
      range.setAttribute("aria-valuetext", written(key, sizes[key]));
    }
    const cost = costOfDepth(sizes);
    if (cost.error) return this.table.replaceChildren(el("p", { class: "error" }, cost.error.message));
    this.table.replaceChildren(planTable(cost));
    const key = JSON.stringify({ ...sizes, depth: 0 });
    if (this.key !== key) this.points = depths.map(depth => costOfDepth({ ...sizes, depth }));
    this.key = key;
    this.curves.replaceChildren(planCurve("Memory", "bytes", this.points, cost, showBytes),
      planCurve("Time", "time", this.points, cost, showCount));
    this.rewind.set(cost);
  }
}

function planTable(cost) {
  const most = key => Math.max(...cost.plans.map(p => p[key]));
  const bar = (p, key) => el("span", { class: `amount plan-${p.name}`, style: `--size:${100 * p[key] / most(key)}%` });
  const cell = (p, key, text) => el("td", { "data-key": key, "data-value": p[key] }, text, bar(p, key));
  return el("table", { class: "compare plans" },
    el("thead", null, el("tr", null, ["Plan", "States kept", "Steps run", "Time", "Memory"].map(h =>
      el("th", { scope: "col" }, h)))),
    el("tbody", null, cost.plans.map(p => el("tr", { "data-plan": p.name },
      el("th", { scope: "row" }, el("b", { class: `plan-${p.name}` }, plans[p.name][0]),
        el("span", { class: "plan-about" }, plans[p.name][1])),
      cell(p, "kept", showCount(p.kept)), cell(p, "runs", showCount(p.runs)), cell(p, "time", showCount(p.time)),
      cell(p, "bytes", showBytes(p.bytes))))));
}

// A line for each plan against depth, and a mark where the slider stands.
function planCurve(title, key, points, here, text) {
  const frame = { width: 420, height: 250, left: 62, right: 26, top: 14, bottom: 40 };
  const all = points.flatMap(c => c.plans.map(p => p[key])), low = Math.floor(Math.log10(Math.min(...all))),
        high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...all))));
  const floor = frame.height - frame.bottom, right = frame.width - frame.right;
  const x = d => frame.left + (right - frame.left) * Math.log10(d) / 4;
  const y = v => floor - (floor - frame.top) * (Math.log10(v) - low) / (high - low);
  const by = Math.ceil((high - low) / 5), ticks = [];
  for (let k = low; k <= high; k += by) ticks.push(k);
  const grid = (x1, x2, y1, y2) => svg("line", { class: "grid", x1, x2, y1, y2 });
  const lines = here.plans.map((plan, i) => {
    const places = points.map(c => `${x(c.depth).toFixed(1)},${y(c.plans[i][key]).toFixed(1)}`);
    return svg("path", { class: `plan-${plan.name}`, d: `M${places.join("L")}` },
      svg("title", null, plans[plan.name][0]));
  });
  return el("figure", { class: "chart" }, el("figcaption", null, el("b", null, title), " against depth"),
    svg("svg", { viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img" },
      svg("title", null, `${title} of the plans against depth`),
      ticks.map(k => [grid(frame.left, right, y(10 ** k), y(10 ** k)),
        svg("text", { x: frame.left - 6, y: y(10 ** k) + 4, "text-anchor": "end" }, text(10 ** k))]),
      [1, 10, 100, 1000, 10000].map(d => [grid(x(d), x(d), frame.top, floor),
        svg("text", { x: x(d), y: floor + 18, "text-anchor": "middle" }, showCount(d))]),
      svg("text", { x: (frame.left + right) / 2, y: frame.height - 4, "text-anchor": "middle" }, "depth N"),
      key === "bytes" && here.limit >= 10 ** low && here.limit <= 10 ** high
        ? svg("line", { class: "limit", x1: frame.left, x2: right, y1: y(here.limit), y2: y(here.limit) }) : null,
      lines, svg("line", { class: "here", x1: x(here.depth), x2: x(here.depth), y1: frame.top, y2: floor }),
      here.plans.map(p => svg("circle", { class: `plan-${p.name}`, cx: x(here.depth), cy: y(p[key]), r: 4 }))));
}
