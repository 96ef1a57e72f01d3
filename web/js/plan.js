// plan.js: how a tape is put on paper: which texts a box holds, how large boxes must be so that no
// text touches their edges, and which way the graph runs. Several ways are tried; the one that can
// be drawn largest in the room there is wins.
import { layoutOf } from "./layout.js";
import { isTensor, show } from "./numbers.js";

const letter = 0.602;  // width of a character of the fixed-width fonts, in sizes of the font
const sizes = { heading: 12, value: 14, adjoint: 13 };
const widest = 196, padding = 11;
const margin = { aside: 8, over: 32 }; // around the boxes; above and below is room for labels
export const mostTried = 120; // boxes; longer tapes run to the right, whatever the room

export const widthOf = (text, size) => [...text].length * letter * size;

export const fitting = (width, size) => Math.floor((width - 2 * padding + 4) / (letter * size));

const shapeOf = node =>
  node.shape.length === 1 ? ` [${node.shape[0]}]` : node.shape.length ? ` ${node.shape.join("×")}` : "";

// The lines at the top of a box: label and operation in one line, or in two in a narrower box.
export function headingOf(tape, node, stacked) {
  if (stacked) return [tape.label(node.id) + shapeOf(node), tape.written(node, true)];
  if (tape.isSource(node)) return [node.name ?? tape.written(node)];
  return [`${tape.label(node.id)} = ${tape.written(node)}`];
}

// How wide each box must be for all that it may have to hold at some step: id -> width.
function widthsOf(tape, stacked) {
  const widths = new Map(tape.nodes.map(n => [n.id, isTensor(n.value) ? 112 : 84]));
  const hold = (id, text, size) => widths.set(id, Math.max(widths.get(id), widthOf(text, size) + 2 * padding));
  for (const node of tape.nodes) {
    for (const line of headingOf(tape, node, stacked)) hold(node.id, line, sizes.heading);
    if (isTensor(node.value)) continue;
    hold(node.id, show(node.value), sizes.value);
    if (tape.kept(node).length === 2) hold(node.id, "keeps both", sizes.adjoint);
    hold(node.id, `${tape.label(node.id)} = ${show(node.value, 4)}`, sizes.adjoint);
  }
  for (const entry of tape.sweep)
    for (const add of entry.adds)
      if (!isTensor(add.sum)) hold(add.to, `${tape.label(add.to).slice(0, 8)} = ${show(add.sum, 4)}`, sizes.adjoint);
  return new Map([...widths].map(([id, width]) => [id, Math.min(widest, Math.ceil(width))]));
}

// Can a plan that was made for other numbers hold those of this tape?
export function holds(plan, tape) {
  const widths = widthsOf(tape, plan.stacked);
  return [...plan.places].every(([id, place]) => place.width >= widths.get(id));
}

const between = { rows: 34, lead: 46 }; // between two rows; before the first box of each

// Breaks a long layout like a text into rows of about the same length. An edge from one row to
// another becomes a short end with the name of where it comes from.
function inRows(laid, rows) {
  const { layer, starts, deep } = laid, length = laid.along / rows, last = starts.length - 1;
  const rowOf = starts.map((start, i) => Math.min(rows - 1, Math.floor((start + deep[i] / 2) / length)));
  const first = rowOf.map(row => starts[rowOf.indexOf(row)]);
  const moved = (p, at) => ({ along: p.along - first[at] + between.lead,
    across: p.across + rowOf[at] * (laid.across + between.rows) });
  const broken = laid.edges.filter(e => e.far || rowOf[layer.get(e.from)] !== rowOf[layer.get(e.to)]);
  laid.edges = laid.edges.map(e => {
    const far = broken.includes(e), ends = [layer.get(e.from), layer.get(e.to)];
    if (!far) return { ...e, points: e.points.map(p => moved(p, ends[0])) };
    // several of them at one box stand below each other
    const mates = broken.filter(other => other.to === e.to), up = 20 * (mates.indexOf(e) - (mates.length - 1) / 2);
    const end = moved(e.points.at(-1), ends[1]);
    return { ...e, far, points: [moved(e.points[0], ends[0]), { ...end, across: end.across + up }] };
  });
  laid.places = new Map([...laid.places].map(([id, p]) => [id, moved(p, layer.get(id))]));
  laid.along = Math.max(...rowOf.map((row, i) =>
    rowOf[i + 1] === row ? 0 : starts[i] + deep[i] - first[i] + between.lead));
  laid.across = (rowOf[last] + 1) * (laid.across + between.rows) - between.rows;
}

// {down, stacked, width, height, places: Map id -> {x, y, width, height}, edges: [{from, to,
// points}]}
function planOf(tape, { down, stacked, roomy, tall = false, rows = 1 }) {
  const widths = widthsOf(tape, stacked), height = tape.matrix ? 98 : stacked ? 82 : 66;
  const gap = down ? { across: roomy ? 40 : 16, along: tall ? 58 : 38 }
    : { across: tape.matrix ? 14 : 22, along: roomy ? 96 : tape.matrix ? 28 : 46 };
  const laid = layoutOf(tape.nodes.map(n => {
    const args = n.args.filter(a => a !== null), width = widths.get(n.id);
    return down ? { id: n.id, args, across: width, along: height } : { id: n.id, args, across: height, along: width };
  }), gap, rows > 1 ? 2 : tape.nodes.length > mostTried ? 6 : Infinity);
  if (rows > 1) inRows(laid, rows);
  const place = ({ across, along }) =>
    ({ x: (down ? across : along) + margin.aside, y: (down ? along : across) + margin.over });
  return { down, stacked, width: (down ? laid.across : laid.along) + 2 * margin.aside,
    height: (down ? laid.along : laid.across) + 2 * margin.over,
    places: new Map([...laid.places].map(([id, p]) => [id, { ...place(p), width: widths.get(id), height }])),
    edges: laid.edges.map(e => ({ ...e, points: e.points.map(place) })) };
}

// How large a plan can be drawn: in a narrow room (a phone) only the width binds.
export const scaleIn = (plan, room) =>
  Math.min(room.width / plan.width, room.narrow ? Infinity : room.height / plan.height);

// The plan for one of several rooms, each with what it is worth: {plan, room}. From where all can
// be read with ease, larger is no better, but more room for what is written at arrows is.
export function bestPlan(tape, rooms) {
  const tall = rooms[0].narrow; // a phone scrolls: what is written at arrows has room there
  if (tape.nodes.length > mostTried)
    return { plan: planOf(tape, { down: tall, stacked: true, roomy: true, tall }), room: rooms[0] };
  let best = null;
  for (const down of [false, true])
    for (const stacked of tape.matrix ? [true] : [false, true])
      for (const [roomy, rows] of down ? [[false, 1], [true, 1]] : [[false, 1], [true, 1], [false, 2], [false, 3]]) {
        const plan = planOf(tape, { down, stacked, roomy, rows, tall });
        for (const room of rooms) {
          const worth = room.worth * (down && !room.narrow ? 0.9 : 1) * (roomy ? 1.06 : 1) * (rows > 1 ? 0.85 : 1);
          const score = Math.min(scaleIn(plan, room), room.letters) * worth;
          if (!best || score > best.score * 1.001) best = { score, plan, room };
        }
      }
  return best;
}
