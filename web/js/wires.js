// wires.js: the lines between boxes, with a head at the end to which something flows, and what is
// written at them, where it covers no box and no other text.
import { svg, svgBar } from "./dom.js";
import { widthOf } from "./plan.js";

const head = 7; // length of an arrowhead

// A smooth line through the points as cubic pieces, [[p0, c1, c2, p1], …].
const pieces = (points, down) => points.slice(1).map((b, i) => {
  const a = points[i], mid = down ? (a.y + b.y) / 2 : (a.x + b.x) / 2;
  return down ? [a, { x: a.x, y: mid }, { x: b.x, y: mid }, b] : [a, { x: mid, y: a.y }, { x: mid, y: b.y }, b];
});

// flow: 1 for a head at the end, -1 for one at the start, 0 for none
export function wirePath(points, down, flow) {
  const ends = points.map(p => ({ ...p })), along = down ? "y" : "x", last = ends.length - 1;
  if (flow > 0) ends[last][along] -= head;
  if (flow < 0) ends[0][along] += head;
  let d = `M${ends[0].x},${ends[0].y}`;
  for (const [, c, e, b] of pieces(ends, down)) d += `C${c.x},${c.y} ${e.x},${e.y} ${b.x},${b.y}`;
  return d;
}

export function headPath(points, down, flow) {
  const { x, y } = points[flow > 0 ? points.length - 1 : 0], back = -head * flow;
  return down ? `M${x},${y}l-4.5,${back}h9z` : `M${x},${y}l${back},-4.5v9z`;
}

// A short end with a name stands for a line too long to draw.
export const stubPoints = ({ x, y }, down) => [down ? { x, y: y - 16 } : { x: x - 16, y }, { x, y }];

// ---- what is written at an arrow ----------------------------------------------------------------

const at = ([a, c, e, b], t) => {
  const s = 1 - t, mix = k => s * s * s * a[k] + 3 * s * s * t * c[k] + 3 * s * t * t * e[k] + t * t * t * b[k];
  return { x: mix("x"), y: mix("y") };
};

function pointsAlong(points, down) {
  const list = pieces(points, down).flatMap(piece => [0.15, 0.3, 0.5, 0.7, 0.85].map(t => at(piece, t)));
  const middle = (list.length - 1) / 2; // the middle first
  return list.map((p, i) => [Math.abs(i - middle), p]).sort((a, b) => a[0] - b[0]).map(([, p]) => p);
}

const textOf = part => typeof part === "string" ? part : part.bar ?? part.own;

// Ways to break the lines of a label: not at all, before "=", at each word.
const shapesOf = lines => [lines, lines.flatMap(line => [line.slice(0, -1), line.slice(-1)].filter(l => l.length)),
  lines.flatMap(line => line.map(word => [word]))];

const lineHeight = 1.5;

const inWords = line => line.flatMap((word, i) => i ? [" ", word] : [word]).flat();

const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

const distances = [0, 6, 12, 18, 26, 34, 40, 46, 52, 60, 70, 86, 106, 130, 160, 200, 250];

const sides = [[0, -1], [0, 1], [-1, 0], [1, 0], [-1, -1], [1, -1], [-1, 1], [1, 1]];

const within = (box, bounds) => box.left >= bounds.left && box.right <= bounds.right && box.top >= bounds.top &&
  box.bottom <= bounds.bottom;

// The place of a label beside the point, at a distance from it.
function beside(p, { width, height }, distance, [dx, dy]) {
  const x = p.x + (distance ? dx * (distance + width / 2) : 0), y = p.y + (distance ? dy * (distance + height / 2) : 0);
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

const nearest = (p, box) => ({ x: Math.max(box.left, Math.min(p.x, box.right)),
  y: Math.max(box.top, Math.min(p.y, box.bottom)) });

// Does the straight line from a label to its arrow pass through something?
function passes(p, box, taken) {
  const q = nearest(p, box), line = { left: Math.min(p.x, q.x), right: Math.max(p.x, q.x), top: Math.min(p.y, q.y),
    bottom: Math.max(p.y, q.y) };
  return taken.some(other => overlap(line, other));
}

// How many of these lines, each as points along it, pass under a box: it would seem to be theirs.
const crossed = (box, others) => others.filter(line => line.some(p => p.x > box.left && p.x < box.right &&
  p.y > box.top && p.y < box.bottom)).length;

// Points along a line, near to each other.
export const sampled = (points, down) =>
  pieces(points, down).flatMap(piece => Array.from({ length: 12 }, (_, k) => at(piece, (k + 0.5) / 12)));

// lines: lists of words, a word a text or a list of texts, {bar}, and {own}, what belongs to the
// operation itself; taken: rectangles to avoid; bounds: where labels may be; others: points along
// the arrows of others. Returns {cost, box, lines, size, anchor}, or null where there is no room.
export function placeLabel(lines, points, down, size, taken, bounds, others) {
  let best = null;
  const anchors = pointsAlong(points, down);
  shapesOf(lines).forEach((shape, k) => {
    const extent = { width: Math.max(...shape.map(line => widthOf(inWords(line).map(textOf).join(""), size))) + 10,
      height: shape.length * size * lineHeight + 4 };
    anchors.forEach((anchor, i) => {
      for (const distance of distances)
        for (const side of distance ? sides : sides.slice(0, 1)) {
          const box = beside(anchor, extent, distance, side), cost = distance + 3 * i + 6 * k;
          if ((best && best.cost <= cost) || !within(box, bounds) || taken.some(other => overlap(box, other))) continue;
          const all = cost + (distance && passes(anchor, box, taken) ? 150 : 0) + 25 * crossed(box, others);
          if (!best || all < best.cost) best = { cost: all, box, lines: shape, size, anchor };
        }
    });
  });
  return best;
}

export function drawLabel({ box, lines, size, anchor }, mode) {
  const x = (box.left + box.right) / 2, edge = nearest(anchor, box), apart = edge.x !== anchor.x || edge.y !== anchor.y;
  return svg("g", { class: `flow-label ${mode}` },
    apart ? svg("path", { class: "leader", d: `M${edge.x},${edge.y}L${anchor.x},${anchor.y}` }) : null,
    svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, rx: 5 }),
    lines.map((line, i) => svg("text", { x, y: box.top + (i + 1) * size * lineHeight - size * 0.3,
      style: `font-size:${size}px`, "text-anchor": "middle" },
    inWords(line).map(part => typeof part === "string" ? part
      : part.bar ? svgBar(part.bar) : svg("tspan", { class: "own" }, part.own)))));
}
