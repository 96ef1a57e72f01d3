// cost.js: what derivatives cost. Forward mode needs one sweep for each input, reverse mode one for each output; the rest is drawing it.
import { el, svg } from "./dom.js";
import { costOf, engineReady } from "./engine.js";
import { showBytes, showCount } from "./numbers.js";

const most = 6; // powers of ten

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
      const range = el("input", { type: "range", id: `cost-${key}`, min: 0, max: 20 * most, step: 1, value: toSlider(this.sizes[key]),
        oninput: () => {
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
      el("p", { class: "about" }, "Forward mode follows one input at a time through the whole tape; reverse mode follows one output at a time back. " +
        "So the shape of the function decides: a training loss has a million inputs and one output."),
      slider("n", "Inputs n"), slider("m", "Outputs m"), this.drawn);
    this.own = el("section", { class: "card", id: "cost-own", "aria-labelledby": "own-title" });
  }

  set(sizes) {
    Object.assign(this.sizes, sizes);
    for (const key of ["n", "m"]) this[key].range.value = toSlider(this.sizes[key]);
  }

  show(tape) {
    this.frame.replaceChildren(...(engineReady() ? [this.any] : []), this.own);
    if (engineReady()) this.draw();
    this.own.replaceChildren(el("h2", { id: "own-title" }, "The function on this page"), ...(tape ? ownCost(tape.trace.cost) : []));
  }

  draw() {
    const { n, m } = this.sizes, cost = costOf(n, m);
    for (const key of ["n", "m"]) {
      this[key].out.textContent = showCount(this.sizes[key]);
      this[key].range.setAttribute("aria-valuetext", `${this.sizes[key]}`);
    }
    if (cost.error) return this.drawn.replaceChildren(el("p", { class: "error" }, cost.error.message));
    if (this.curves.n !== n) // both curves for this n, over all m
      this.curves = { n, points: Array.from({ length: most + 1 }, (_, k) => ({ m: 10 ** k, cost: costOf(n, 10 ** k) })) };
    this.drawn.replaceChildren(comparison(cost, "evaluations of the function"), chart(this.curves.points, m, cost), verdict(cost));
  }
}

function ownCost(cost) {
  if (!cost) return [];
  return [el("p", { class: "about" }, `${plural(cost.inputs, "input number")}, ${plural(cost.outputs, "output number")}; computing it once takes ` +
    `${plural(cost.function.operations, "operation")}.`), comparison(cost, "operations"), verdict(cost)];
}

const plural = (n, word) => `${showCount(n)} ${word}${n === 1 ? "" : "s"}`;

function verdict(cost) {
  const best = { reverse: "Reverse mode is cheaper here.", forward: "Forward mode is cheaper here.", equal: "Both cost the same here." }[cost.cheaper];
  return el("p", { class: "verdict", role: "status" }, el("b", { class: cost.cheaper === "forward" ? "f" : cost.cheaper === "reverse" ? "r" : null }, best), " ",
    sentence(cost.crossing?.why ?? ""));
}

const sentence = text => text && `${text[0].toUpperCase()}${text.slice(1)}.`;

// Rows: passes, operations, memory; the bars are logarithmic, so that both can be seen.
function comparison(cost, unit) {
  const rows = [["Passes over the tape", "sweeps", showCount], [`Work, in ${unit}`, "operations", showCount], ["Memory", "bytes", showBytes]];
  const most = key => Math.log10(1 + Math.max(cost.forward[key], cost.reverse[key], 1));
  const bar = (mode, key) => el("span", { class: `amount ${mode}`, style: `--size:${(100 * Math.log10(1 + cost[mode][key]) / most(key)).toFixed(1)}%` });
  return el("table", { class: "compare" },
    el("thead", null, el("tr", null, el("td"), el("th", { scope: "col", class: "f" }, "Forward mode"), el("th", { scope: "col", class: "r" }, "Reverse mode"))),
    el("tbody", null, rows.map(([label, key, text]) => el("tr", { "data-row": key }, el("th", { scope: "row" }, label),
      ["forward", "reverse"].map(mode => el("td", { "data-value": cost[mode][key] }, text(cost[mode][key]), bar(mode, key)))))));
}

// Work against the number of outputs, both axes logarithmic.
function chart(points, m, cost) {
  const width = innerWidth < 640 ? 400 : 560, height = 270, left = 58, right = 70, top = 16, bottom = 44;
  const top10 = Math.max(...points.flatMap(p => [p.cost.forward.operations, p.cost.reverse.operations]).map(Math.log10));
  const x = v => left + (width - left - right) * Math.log10(v) / most, y = v => height - bottom - (height - top - bottom) * Math.log10(Math.max(v, 1)) / Math.ceil(top10);
  const line = mode => points.map((p, i) => `${i ? "L" : "M"}${x(p.m).toFixed(1)},${y(p.cost[mode].operations).toFixed(1)}`).join("");
  const power = k => k === 0 ? "1" : k === 1 ? "10" : ["10", svg("tspan", { dy: -5, "font-size": "75%" }, String(k))];
  const end = points[points.length - 1].cost, crossing = cost.crossing?.outputs, ends = { forward: y(end.forward.operations), reverse: y(end.reverse.operations) };
  if (Math.abs(ends.forward - ends.reverse) < 15) ends[ends.forward > ends.reverse ? "forward" : "reverse"] = Math.max(ends.forward, ends.reverse) + 15 - Math.abs(ends.forward - ends.reverse);
  const cross = Number.isFinite(crossing) && crossing >= 1 && crossing <= 10 ** most;
  return el("div", { class: "chart" }, svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" },
    svg("title", null, `Work against the number of outputs, for ${cost.inputs} inputs.` + (cross ? ` The lines cross at ${Math.round(crossing)} outputs.` : "")),
    Array.from({ length: most + 1 }, (_, k) => [svg("line", { class: "grid", x1: x(10 ** k), x2: x(10 ** k), y1: top, y2: height - bottom }),
      svg("text", { x: x(10 ** k), y: height - bottom + 18, "text-anchor": "middle" }, power(k))]),
    Array.from({ length: Math.ceil(top10) + 1 }, (_, k) => k % 2 ? null : [svg("line", { class: "grid", x1: left, x2: width - right, y1: y(10 ** k), y2: y(10 ** k) }),
      svg("text", { x: left - 8, y: y(10 ** k) + 5, "text-anchor": "end" }, power(k))]),
    svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "outputs m"),
    svg("text", { x: 14, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }, "work"),
    ["forward", "reverse"].map(mode => [svg("path", { class: mode, d: line(mode) }),
      svg("text", { class: mode, x: width - right + 8, y: ends[mode] + 5 }, mode)]),
    svg("line", { class: "here", x1: x(m), x2: x(m), y1: top, y2: height - bottom }),
    ["forward", "reverse"].map(mode => svg("circle", { class: mode, cx: x(m), cy: y(cost[mode].operations), r: 5 })),
    cross ? [svg("circle", { class: "cross", cx: x(crossing), cy: y(cost.forward.operations), r: 8 }),
      svg("text", { x: x(crossing) + (crossing > 1e3 ? -13 : 13), y: y(cost.forward.operations) - 9, "text-anchor": crossing > 1e3 ? "end" : "start" },
        `cross at ${showCount(crossing)}`)] : null),
  el("p", { class: "hint" }, "Bars and axes are logarithmic: one line up is a hundred times the work."));
}
