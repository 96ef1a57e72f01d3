// graph.js: the tape drawn as a graph. Built once for a tape and a width; lighting it up only
// changes classes and texts.
import { calm, el, svg, svgBar } from "./dom.js";
import { picture } from "./heat.js";
import { onKink } from "./kinks.js";
import { layoutOf } from "./layout.js";
import { isTensor, show } from "./numbers.js";

const letter = 7.1; // width of a character at the size used in boxes

const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

export const mostDrawn = 300; // nodes

// In place of a graph that would be too large to read, or to lay out.
export class NoGraph {
  constructor(frame, tape) {
    frame.replaceChildren(el("p", { class: "about" },
      `This tape has ${tape.nodes.length} nodes, too many to draw; the steps and the table below show it all.`));
  }
  light() {}
}

export class Graph {
  // onPick(id): a node was clicked
  constructor(frame, tape, onPick) {
    this.frame = frame;
    this.tape = tape;
    this.groups = new Map();
    this.lines = [];
    const down = frame.clientWidth < 640; // narrow: from top to bottom; wide: from left to right
    // label and operation on two lines: narrower boxes for longer tapes
    this.stacked = tape.matrix || tape.nodes.length > 8;
    const longest =
      Math.max(...tape.nodes.map(n => this.heading(n).reduce((most, line) => Math.max(most, line.length), 0)));
    this.box = { width: Math.min(this.stacked ? 132 : 196, Math.max(112, Math.ceil(longest * letter) + 18)),
      height: tape.matrix ? 116 : this.stacked ? 82 : 66 };
    const size =
      down ? { across: this.box.width, along: this.box.height } : { across: this.box.height, along: this.box.width };
    const plan = layoutOf(tape.nodes.map(n => ({ id: n.id, args: n.args.filter(a => a !== null) })), size,
      { across: 16, along: down ? 30 : this.stacked ? 34 : 44 });
    const place = p => down ? { x: p.across, y: p.along } : { x: p.along, y: p.across };
    const margin = 6;
    this.width = (down ? plan.across : plan.along) + 2 * margin;
    this.height = (down ? plan.along : plan.across) + 2 * margin;

    const wires = svg("g", { class: "wires" }), boxes = svg("g", { class: "boxes" });
    for (const edge of plan.edges) {
      const path = svg("path", { d: curve(edge.points.map(place), down) });
      wires.append(path);
      this.lines.push({ ...edge, path });
    }
    for (const node of tape.nodes) {
      const { x, y } = place(plan.places.get(node.id)), group = this.draw(node, x, y);
      group.addEventListener("click", () => onPick(node.id));
      boxes.append(group);
      this.groups.set(node.id, group);
    }
    // As large as it is, or smaller to fit, but not so small that it cannot be read: then the frame
    // scrolls.
    const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16, room = frame.clientWidth - 4;
    const scale = letters * Math.min(1.25, Math.max(down ? 1 : 1.1, room / this.width / letters));
    this.image = svg("svg", { viewBox: `${-margin} ${-margin} ${this.width} ${this.height}`, width: this.width * scale,
      height: this.height * scale, role: "img", class: tape.matrix ? "matrix" : "scalar" },
    svg("title", null, "The tape as a graph"), wires, boxes);
    this.scale = scale;
    frame.replaceChildren(this.image);
  }

  title(node) {
    const label = this.tape.label(node.id);
    return this.tape.isSource(node) ? (node.name ?? this.tape.written(node)) : `${label} = ${this.tape.written(node)}`;
  }

  // The lines at the top of a box.
  heading(node) {
    if (!this.stacked) return [this.title(node)];
    const shape = node.shape.length === 1 ? ` [${node.shape[0]}]` : node.shape.length ? ` ${node.shape.join("×")}` : "";
    return [this.tape.label(node.id) + shape, this.tape.written(node, true)];
  }

  draw(node, x, y) {
    const { width, height } = this.box, left = x - width / 2, top = y - height / 2, source = this.tape.isSource(node);
    const text = (name, dx, dy, content = "") =>
      svg("text", { class: name, x: left + dx, y: top + dy, "text-anchor": "middle" }, content);
    const lines = this.heading(node).map((line, i) => text(this.stacked && i === 0 ? "what label" : "what", width / 2,
                                           19 + 16 * i, cut(line, Math.floor((width - 12) / letter))));
    const image = name => svg("image", { class: name, preserveAspectRatio: "none" });
    const corner = `M${left + width - 17},${top + height - 15}l5,8l5,-8`;
    const middle = this.tape.matrix ? 66 : this.stacked ? 54 : 38;
    const output = node.id === this.tape.trace.output;
    const group = svg("g", { class: `box${source ? " source" : ""}${output ? " output" : ""}` },
      svg("title", null, this.title(node)), svg("rect", { x: left, y: top, width, height, rx: source ? 18 : 7 }), lines,
      onKink(this.tape, node)
        ? svg("path", { class: "kinky", d: corner },
          svg("title", null, "the derivative here is only a convention")) : null,
      isTensor(node.value)
        ? [image("value-map"), image("adjoint-map"),
          text("legend value-legend", width * 0.28, height - 7),
          text("legend adjoint-legend", width * 0.72, height - 7)]
        : [text("value", width / 2, middle), text("adjoint", width / 2, middle + 18)]);
    group.place = { left, top };
    return group;
  }

  keeps(node) {
    const names = this.tape.kept(node).map(k => k.replace("its own value", "itself"));
    return names.length ? cut(`keeps ${names.join(", ")}`, Math.floor((this.box.width - 8) / 6.4)) : "";
  }

  thumbnail(group, id, name, v, shape, slot) {
    const image = group.querySelector(`.${name}-map`);
    const legend = name === "value" ? "value" : svgBar(cut(this.tape.label(id), 8));
    group.querySelector(`.${name}-legend`).replaceChildren(...(v === null ? [] : [legend]));
    if (v === null) {
      image.removeAttribute("href");
      return;
    }
    const map = picture(v, shape), side = 44, ratio = Math.sqrt(map.columns / map.rows);
    const extent = r => Math.min(side, Math.max(10, side * r)), width = extent(ratio), height = extent(1 / ratio);
    const middle = group.place.left + this.box.width * (slot === 0 ? 0.28 : 0.72);
    image.setAttribute("x", middle - width / 2);
    image.setAttribute("y", group.place.top + 71 - height / 2);
    image.setAttribute("width", width);
    image.setAttribute("height", height);
    image.setAttribute("href", map.address);
  }

  // What to show: {mode, lit(node), current: id or null, registers: Map or null, active: pairs
  // "from>to", summary}
  light(view) {
    for (const node of this.tape.nodes) {
      const group = this.groups.get(node.id), lit = view.lit(node), register = view.registers?.get(node.id);
      const set = (name, on) => group.classList.toggle(name, !!on);
      set("lit", lit && view.mode === "forward");
      set("reached", register && view.mode === "reverse");
      set("done", register?.done);
      set("current", node.id === view.current);
      set("receives", [...view.active].some(pair => view.mode === "reverse" && pair.startsWith(`${node.id}>`)));
      if (isTensor(node.value)) {
        this.thumbnail(group, node.id, "value", lit ? node.value : null, node.shape, 0);
        this.thumbnail(group, node.id, "adjoint", register ? register.sum : null, node.shape, 1);
      } else {
        group.querySelector(".value").textContent = lit ? show(node.value) : "";
        group.querySelector(".adjoint").replaceChildren(...(view.mode === "forward" ? [lit ? this.keeps(node) : ""]
          : register ? [svgBar(cut(this.tape.label(node.id), 8)), ` = ${show(register.sum, 4)}`] : []));
      }
      group.querySelector(":scope > title").textContent =
        `${this.title(node)}${lit ? `, value ${show(node.value)}` : ""}` +
        (register ? `, adjoint ${show(register.sum)}` : "");
    }
    for (const { from, to, path } of this.lines)
      path.setAttribute("class", view.active.has(`${from}>${to}`) ? `active ${view.mode}` : "");
    this.image.querySelector("title").textContent = view.summary;
    this.reveal(view.current);
  }

  // Scrolls the frame, never the page.
  reveal(id) {
    if (id === null || id === undefined) return;
    const { place } = this.groups.get(id), { frame, box, scale } = this;
    const left = (place.left + box.width / 2) * scale - frame.clientWidth / 2,
          top = (place.top + box.height / 2) * scale - frame.clientHeight / 2;
    frame.scrollTo({ left, top, behavior: calm() ? "auto" : "smooth" });
  }
}

// A smooth line through the points, with an arrowhead at its end.
function curve(points, down) {
  const ends = points.map(p => ({ ...p })), last = ends.length - 1;
  ends[last][down ? "y" : "x"] -= 5; // room for the arrowhead
  let d = `M${ends[0].x},${ends[0].y}`;
  for (let i = 1; i <= last; i++) {
    const a = ends[i - 1], b = ends[i], mid = down ? (a.y + b.y) / 2 : (a.x + b.x) / 2;
    d += down ? `C${a.x},${mid} ${b.x},${mid} ${b.x},${b.y}` : `C${mid},${a.y} ${mid},${b.y} ${b.x},${b.y}`;
  }
  const { x, y } = ends[last];
  const tip = down ? [[x - 4, y - 1], [x, y + 5], [x + 4, y - 1]] : [[x - 1, y - 4], [x + 5, y], [x - 1, y + 4]];
  return `${d}M${tip.map(p => p.join(",")).join("L")}`;
}
