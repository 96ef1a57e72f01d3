// graph.js: a tape as boxes and lines. What is seen through the frame is drawn, nothing else, so
// that a tape of ten thousand nodes steps like one of ten; a step changes classes and texts.
import { dotted, svg, svgBar } from "./dom.js";
import { picture } from "./heat.js";
import { onKink } from "./kinks.js";
import { isTensor, show } from "./numbers.js";
import { fitting, headingOf } from "./plan.js";
import { drawLabel, headPath, placeLabel, sampled, stubPoints, wirePath } from "./wires.js";

const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

const overlaps = (a, b) => a.left <= b.right && b.left <= a.right && a.top <= b.bottom && b.top <= a.bottom;

export class Graph {
  // plan: of plan.js; onPick(id): a node was clicked
  constructor(tape, plan, onPick) {
    Object.assign(this, { tape, plan, onPick, boxes: new Map(), wires: new Map(), seen: null, view: null });
    this.rects = new Map([...plan.places].map(([id, { x, y, width, height }]) =>
      [id, { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2, width, height }]));
    for (const edge of plan.edges) edge.rect = edge.far ? this.rects.get(edge.to) : around(edge.points);
    this.layers = { wires: svg("g", { class: "wires" }), boxes: svg("g", { class: "boxes" }),
      labels: svg("g", { class: "labels" }) };
    this.image = svg("svg", { role: "img", class: tape.matrix ? "matrix" : "scalar" },
      svg("title", null, "The tape as a graph"), this.layers.wires, this.layers.boxes, this.layers.labels);
  }

  // Another part is seen: draws what came into it, forgets what left.
  look(seen, scale) {
    this.seen = seen;
    this.scale = scale;
    const keep = (drawn, shown, layer, make) => {
      for (const [key, item] of drawn)
        if (!shown.has(key)) {
          item.group.remove();
          drawn.delete(key);
        }
      for (const key of shown)
        if (!drawn.has(key)) {
          const item = make(key);
          layer.append(item.group);
          drawn.set(key, item);
        }
    };
    const inside = rect => overlaps(rect, seen);
    keep(this.boxes, new Set(this.tape.nodes.filter(n => inside(this.rects.get(n.id))).map(n => n.id)),
      this.layers.boxes, id => this.drawBox(this.tape.node(id)));
    keep(this.wires, new Set(this.plan.edges.filter(e => inside(e.rect))), this.layers.wires, e => this.drawWire(e));
    if (this.view) this.light(this.view);
  }

  title(node) {
    const { tape } = this;
    return tape.isSource(node) ? node.name ?? tape.written(node) : `${tape.label(node.id)} = ${tape.written(node)}`;
  }

  drawBox(node) {
    const { tape, plan: { stacked } } = this, { left, top, width, height } = this.rects.get(node.id);
    const text = (name, dx, dy, content = "") =>
      svg("text", { class: name, x: left + dx, y: top + dy, "text-anchor": "middle" }, content);
    const lines = headingOf(tape, node, stacked).map((line, i) =>
      text(stacked && i === 0 ? "what label" : "what", width / 2, 19 + 17 * i, cut(line, fitting(width, 12))));
    const image = name => svg("image", { class: name, preserveAspectRatio: "none" });
    const corner = `M${left + width - 17},${top + height - 15}l5,8l5,-8`;
    const middle = tape.matrix ? 62 : stacked ? 55 : 39;
    const source = tape.isSource(node), output = node.id === tape.trace.output;
    const parts = isTensor(node.value)
      ? [image("value-map"), image("adjoint-map"), text("legend value-legend", width * 0.28, height - 6),
        text("legend adjoint-legend", width * 0.72, height - 6)]
      : [text("value", width / 2, middle), text("adjoint", width / 2, middle + (tape.matrix ? 22 : 18))];
    const group = svg("g", { class: `box${source ? " source" : ""}${output ? " output" : ""}`, "data-node": node.id,
      onclick: () => this.onPick(node.id) },
    svg("title", null, this.title(node)), svg("rect", { x: left, y: top, width, height, rx: source ? 18 : 7 }), lines,
    svg("path", { class: "kinky", d: corner }, svg("title", null, "the derivative here is only a convention")),
    svg("path", { class: "note-mark", d: `M${left + 4},${top + 4}h7v7h-4l-3,3z` },
      svg("title", null, "there is a note on it, below")), parts);
    const one = name => group.querySelector(name);
    return { group, node, own: group.className.baseVal, name: group.firstChild, value: one(".value"),
      adjoint: one(".adjoint"), seen: null };
  }

  drawWire(edge) {
    const line = svg("path"), tip = svg("path", { class: "tip" });
    const from = cut(this.tape.label(edge.from), 4);
    const name = edge.far ? svg("text", { class: "legend", "text-anchor": "end" }, from) : null;
    return { group: svg("g", null, line, tip, name), line, tip, name, edge, seen: null };
  }

  // What to show: {mode, lit(node), current: id or null, registers: Map or null, summary,
  // flow(from, to): {way, when}, flows: [{from, to, lines}]}; see walks.js
  light(view) {
    this.view = view;
    const receiving = new Set(view.flows.map(f => view.mode === "reverse" ? f.from : f.to));
    for (const item of this.boxes.values()) this.lightBox(item, view, receiving);
    for (const item of this.wires.values()) this.lightWire(item, view);
    this.label(view);
    this.image.firstChild.textContent = view.summary;
  }

  lightBox(item, view, receiving) {
    const { group } = item, node = this.tape.node(item.node.id); // of the tape that is shown now
    const lit = view.lit(node), register = view.registers?.get(node.id);
    const receives = receiving.has(node.id) && node.id !== view.current;
    const noted = this.noted?.has(node.id) && "noted";
    if (this.tape !== item.tape) item.kinked = onKink(this.tape, node) && "kinked";
    const classes = [item.own, noted, item.kinked, lit && view.mode === "forward" && "lit", register && "reached",
      register?.done && "done",
      node.id === view.current && "current", receives && "receives"].filter(c => c).join(" ");
    const seen = `${classes}|${view.mode}|${view.key}|${lit}|${register ? register.parts.length : 0}`;
    if (seen === item.seen && this.tape === item.tape) return;
    Object.assign(item, { seen, tape: this.tape, node });
    group.setAttribute("class", classes);
    if (isTensor(node.value)) {
      const alone = view.mode === "forward" || !node.active;
      this.thumbnail(item, "value", lit ? node.value : null, alone ? 0.5 : 0.28);
      this.thumbnail(item, "adjoint", register ? register.sum : null, 0.72);
    } else {
      item.value.textContent = lit ? show(node.value) : "";
      item.adjoint.replaceChildren(...this.below(node, view, lit, register));
    }
    item.name.textContent = `${this.title(node)}${lit ? `, value ${show(node.value)}` : ""}` +
      (register ? `, ${view.mode === "tangent" ? "tangent" : "adjoint"} ${show(register.sum)}` : "");
  }

  // The last line of a box: forward what it keeps, backward its adjoint.
  below(node, view, lit, register) {
    if (register) return [this.mark(cut(this.tape.label(node.id), 8)), ` = ${show(register.sum, 4)}`];
    if (view.mode !== "forward" || !lit) return [];
    const names = this.tape.kept(node).map(k => k.replace("its own value", "itself"));
    if (names.length === 0) return [];
    const room = fitting(this.rects.get(node.id).width, 11), all = `keeps ${names.join(", ")}`;
    return [cut(all.length > room && names.length === 2 ? "keeps both" : all, room)];
  }

  mark(label) { return this.view.mode === "tangent" ? dotted(label) : svgBar(label); }

  thumbnail({ group, node }, name, v, slot) {
    const image = group.querySelector(`.${name}-map`), legend = group.querySelector(`.${name}-legend`);
    legend.replaceChildren(...(v === null ? [] :
      [name === "value" ? "value" : this.mark(cut(this.tape.label(node.id), 6))]));
    if (v === null) return image.removeAttribute("href");
    const map = picture(v, node.shape), side = 38, ratio = Math.sqrt(map.columns / map.rows);
    const extent = r => Math.min(side, Math.max(10, side * r)), width = extent(ratio), height = extent(1 / ratio);
    const { left, top, width: wide } = this.rects.get(node.id), middle = left + wide * slot;
    legend.setAttribute("x", middle);
    for (const [key, value] of Object.entries({ x: middle - width / 2, y: top + 61 - height / 2, width, height,
      href: map.address })) image.setAttribute(key, value);
  }

  lightWire(item, view) {
    const { edge, line, tip, name } = item, { way, when } = view.flow(edge.from, edge.to);
    const seen = `${way}|${when}|${view.mode}`;
    if (seen === item.seen) return;
    item.seen = seen;
    const { down } = this.plan, points = edge.far ? stubPoints(edge.points.at(-1), down) : edge.points;
    const end = points.at(way < 0 ? 0 : -1), x = end.x - (down ? 0 : 6 * way), y = end.y - (down ? 6 * way : 0);
    Object.assign(item, { points, tipRect: grown({ left: x, right: x, top: y, bottom: y }, 6) });
    line.setAttribute("d", wirePath(points, down, way));
    tip.setAttribute("d", way ? headPath(points, down, way) : "");
    item.group.setAttribute("class", `wire ${when} ${when === "none" ? "" : view.mode}`);
    if (!name) return;
    name.setAttribute("x", points[0].x - (down ? -4 : 3));
    name.setAttribute("y", points[0].y + 4);
  }

  // The drawn line of a flow, or undefined.
  wireOf({ from, to }) {
    this.between ??= new Map(this.plan.edges.map(e => [`${e.from}>${e.to}`, e]));
    return this.wires.get(this.between.get(`${from}>${to}`));
  }

  // What the step hands along its arrows.
  label(view) {
    const drawn = [], taken = [...this.boxes.keys()].map(id => grown(this.rects.get(id), 3)), { seen } = this;
    if (!seen) return;
    const bounds = grown(seen, -2);
    // as large on the screen as the texts of boxes at their own size, if there is room
    const size = Math.min(12 / Math.min(1, this.scale), 15);
    const flows = view.flows.map(flow => ({ ...flow, wire: this.wireOf(flow) })).filter(flow => flow.wire);
    for (const { wire } of flows) taken.push(wire.tipRect); // arrowheads stay free
    for (const { name, points: [p] } of this.wires.values())
      if (name) taken.push({ left: p.x - 32, right: p.x, top: p.y - 9, bottom: p.y + 9 });
    const along = new Map([...this.wires.values()].map(wire => [wire, sampled(wire.points, this.plan.down)]));
    for (const { wire, lines } of flows) {
      const others = [...along].filter(([other]) => other !== wire).map(([, points]) => points);
      const at = letters => placeLabel(lines, wire.points, this.plan.down, letters, taken, bounds, others);
      // smaller letters rather than a place far away
      const tried = [at(size), at(0.8 * size)].filter(label => label), [first, second] = tried;
      const label = second && second.cost + 40 < first.cost ? second : first;
      if (!label) continue;
      taken.push(grown(label.box, 2));
      drawn.push(drawLabel(label, view.mode));
    }
    this.layers.labels.replaceChildren(...drawn);
  }

  // Nodes with a note have a mark.
  note(ids) {
    this.noted = ids;
    for (const { group, node } of this.boxes.values()) group.classList.toggle("noted", ids.has(node.id));
  }

  // Where a step happens.
  place(view) { return this.rects.get(view.current) ?? null; }
}

const grown = ({ left, top, right, bottom }, by) =>
  ({ left: left - by, top: top - by, right: right + by, bottom: bottom + by });

const around = points => ({ left: Math.min(...points.map(p => p.x)), right: Math.max(...points.map(p => p.x)),
  top: Math.min(...points.map(p => p.y)), bottom: Math.max(...points.map(p => p.y)) });
