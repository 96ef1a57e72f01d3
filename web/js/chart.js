// chart.js: the work of both modes against the number of outputs, both axes logarithmic, with the
// point where they cross.
import { el, svg } from "./dom.js";
import { showCount } from "./numbers.js";

const modes = ["forward", "reverse"];
const power = k => k === 0 ? "1" : k === 1 ? "10" : ["10", svg("tspan", { dy: -5, "font-size": "75%" }, String(k))];
const count = n => Array.from({ length: n }, (_, k) => k);

// points: [{m, cost}] for m = 1, 10, 100, …; m and cost: where the sliders are.
export function chart(points, m, cost) {
  const frame = { width: innerWidth < 640 ? 400 : 560, height: 270, left: 58, right: 70, top: 16, bottom: 44 };
  const right = frame.width - frame.right, floor = frame.height - frame.bottom, powers = points.length - 1;
  const highest = Math.ceil(Math.max(...points.flatMap(p => modes.map(mode => Math.log10(p.cost[mode].operations)))));
  const x = v => frame.left + (right - frame.left) * Math.log10(v) / powers;
  const y = v => floor - (floor - frame.top) * Math.log10(Math.max(v, 1)) / highest;
  const crossing = cost.crossing?.outputs,
        crosses = Number.isFinite(crossing) && crossing >= 1 && crossing <= 10 ** powers;
  const title = `Work against the number of outputs, for ${cost.inputs} inputs.` +
    (crosses ? ` The lines cross at ${Math.round(crossing)} outputs.` : "");
  return el("div", { class: "chart" },
    svg("svg", { viewBox: `0 0 ${frame.width} ${frame.height}`, role: "img" }, svg("title", null, title),
      axes(frame, x, y, powers, highest), lines(points, x, y, right + 8),
      svg("line", { class: "here", x1: x(m), x2: x(m), y1: frame.top, y2: floor }),
      modes.map(mode => svg("circle", { class: mode, cx: x(m), cy: y(cost[mode].operations), r: 5 })),
      crosses ? mark(x(crossing), y(cost.forward.operations), crossing) : null),
    el("p", { class: "hint" }, "Bars and axes are logarithmic: one line up is a hundred times the work."));
}

function axes(frame, x, y, powers, highest) {
  const right = frame.width - frame.right, floor = frame.height - frame.bottom, middle = (frame.top + floor) / 2;
  const grid = (x1, x2, y1, y2) => svg("line", { class: "grid", x1, x2, y1, y2 });
  const text = (tx, ty, anchor, content, more) =>
    svg("text", { x: tx, y: ty, "text-anchor": anchor, ...more }, content);
  return [
    count(powers + 1)
      .map(k => [grid(x(10 ** k), x(10 ** k), frame.top, floor), text(x(10 ** k), floor + 18, "middle", power(k))]),
    count(highest + 1)
      .filter(k => k % 2 === 0)
      .map(k => [grid(frame.left, right, y(10 ** k), y(10 ** k)),
             text(frame.left - 8, y(10 ** k) + 5, "end", power(k))]),
    text((frame.left + right) / 2, frame.height - 6, "middle", "outputs m"),
    text(14, middle, "middle", "work", { transform: `rotate(-90 14 ${middle})` }),
  ];
}

// Each line with its name at the end; the names stay apart where the lines end close together.
function lines(points, x, y, nameAt) {
  const end = points[points.length - 1].cost, at = modes.map(mode => y(end[mode].operations)), apart = 15;
  const lower = at[0] > at[1] ? 0 : 1;
  at[lower] = Math.max(at[lower], at[1 - lower] + apart);
  const path = mode =>
    points.map((p, i) => `${i ? "L" : "M"}${x(p.m).toFixed(1)},${y(p.cost[mode].operations).toFixed(1)}`).join("");
  return modes.map((mode, i) => [svg("path", { class: mode, d: path(mode) }),
    svg("text", { class: mode, x: nameAt, y: at[i] + 5 }, mode)]);
}

function mark(cx, cy, crossing) {
  // in the right half: the words stand to the left, above the lines; else to the right, below them
  const late = crossing > 1e3;
  const place =
    late ? { x: cx - 13, y: cy - 9, "text-anchor": "end" } : { x: cx + 13, y: cy + 21, "text-anchor": "start" };
  return [svg("circle", { class: "cross", cx, cy, r: 8 }), svg("text", place, `cross at ${showCount(crossing)}`)];
}
