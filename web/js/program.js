// program.js: the function, or its gradient, as a program: what runs together in one box, in the
// order in which it runs; what a run takes; and the text.
import { el, svg } from "./dom.js";
import { showBytes, showCount } from "./numbers.js";
import { Tracer } from "./engine.js";
import { inPageWords } from "./refuse.js";

// Sizes in the drawing: of a letter, a line, the edge of a box, its title; between boxes and lanes.
const flow = { letter: 7.3, line: 19, pad: 10, head: 24, gap: 26, lane: 11 };

// state: {expression, inputs, seed}; `many`: the result has several numbers, so a seed goes with it
function programArguments({ state, of, many }) {
  const args = ["compile", "--json", "--print", "--report"];
  if (of === "gradient") args.push(...(many ? ["--vjp", "--seed", state.seed.trim() || "1"] : ["--grad"]));
  const wanted = state.inputs.filter(i => i.wrt).map(i => i.name);
  if (of === "gradient" && wanted.length > 0 && wanted.length < state.inputs.length)
    args.push("--wrt", wanted.join(","));
  return [...args, "--", state.expression, ...state.inputs.map(i => `${i.name}=${i.text}`)];
}

const mostDrawn = 300; // values

export class ProgramPanel {
  constructor(frame, onChange) {
    this.frame = frame;
    this.onChange = onChange;
    this.of = "function";
    this.choices = el("div", { class: "choose", role: "group", "aria-label": "Program of" },
      [["function", "The function"], ["gradient", "Function and gradient"]].map(([of, text]) =>
        el("button", { type: "button", class: "plain small", "data-of": of, onclick: () => this.choose(of) }, text)));
    this.drawn = el("div", { class: "graph flow", tabindex: 0, role: "region", "aria-label": "The program" });
    this.side = el("div", { class: "side" });
    frame.append(el("section", { class: "card" },
      this.choices,
      el("p", { class: "about" },
        "What cot_compile makes of it: the operations that are left, with a box around those that run together. " +
          "Within a box values stay in registers or in cache; lines between boxes go through memory."),
      this.drawn), this.side);
    this.tracer = new Tracer((program, asked) => this.answer(program, asked),
      busy => frame.setAttribute("aria-busy", String(busy)), programArguments);
  }

  set(of) {
    this.of = of === "gradient" ? "gradient" : "function";
  }

  choose(of) {
    this.set(of);
    this.onChange();
    this.show(this.asked.state, this.asked.many);
  }

  show(state, many) {
    for (const button of this.choices.children)
      button.setAttribute("aria-pressed", String(button.dataset.of === this.of));
    this.asked = { state: { ...state, inputs: state.inputs.map(i => ({ ...i })) }, of: this.of, many };
    this.tracer.ask(this.asked);
  }

  answer(program, asked) {
    this.frame.dataset.shows = "";
    if (program.error) {
      this.drawn.replaceChildren(el("p", { class: "error" }, inPageWords(program.error, asked.state).message));
      this.side.replaceChildren();
      return;
    }
    const blocks = blocksOf(program);
    this.drawn.replaceChildren(program.values.length > mostDrawn
      ? el("p", { class: "about" },
        `This program has ${program.values.length} values, too many to draw; its text shows it all.`)
      : flowOf(blocks));
    this.side.replaceChildren(factsCard(program.facts),
      textCard("together", "What runs together, and why not more", told(program.report)),
      textCard("text", "The text of the program", program.text));
    this.frame.dataset.shows = asked.of;
  }
}

// ---- what runs as one ---------------------------------------------------------------------------

const typeOf = v => v.dtype + (v.shape.length ? `(${v.shape.join(",")}${v.shape.length === 1 ? "," : ""})` : "");

const lineOf = (v, id) => v.input !== undefined ? `%${id} = ${v.input}  ${typeOf(v)}`
  : v.constant !== undefined ? `%${id} = constant  ${typeOf(v)}`
    : `%${id} = ${v.op}(${v.args.map(a => a.number !== undefined ? a.number : `%${a}`).join(", ")})  ${typeOf(v)}`;

// Inputs, then each step of a run with its operations, then the outputs; `reads` are the blocks
// that a block reads from. Operations on scalars that follow each other are one step.
function blocksOf({ values, outputs }) {
  const blocks = [], of = [];
  const inputs = { title: "Inputs and constants", kind: "source", lines: [], reads: new Set() };
  blocks.push(inputs);
  values.forEach((v, id) => {
    if (v.op === undefined) {
      of[id] = inputs;
      inputs.lines.push(lineOf(v, id));
      return;
    }
    const last = blocks[blocks.length - 1];
    const kind = v.group !== undefined ? `group ${v.group}` : v.how;
    const joins = last.kind === kind && (v.group !== undefined || v.how !== "job");
    const block = joins ? last : { kind, title: titleOf(v), lines: [], reads: new Set() };
    if (!joins) blocks.push(block);
    of[id] = block;
    block.lines.push(lineOf(v, id));
    for (const a of v.args)
      if (a.number === undefined && of[a] !== block) block.reads.add(of[a]);
  });
  blocks.push({ title: "Outputs", kind: "output", lines: outputs.map(o => `${o.name} = %${o.value}`),
    reads: new Set(outputs.map(o => of[o.value])) });
  return blocks.filter(b => b.lines.length);
}

const titleOf = v => v.group !== undefined ? `Group ${v.group}: together, block by block`
  : { scalar: "Numbers: one instruction each", view: "Views: nothing is done", job: "By itself" }[v.how];

// ---- the drawing --------------------------------------------------------------------------------

// One box below the other, as they run. A box that reads from the one before has a line down;
// others have a line around the boxes between.
function flowOf(blocks) {
  const { letter, line, pad, head, gap, lane } = flow;
  const longest = Math.max(...blocks.map(b => Math.max(b.title.length, ...b.lines.map(l => l.length))));
  const wide = longest * letter + 2 * pad;
  let top = 2;
  for (const block of blocks) {
    block.top = top;
    block.height = head + block.lines.length * line + pad / 2;
    top += block.height + gap;
  }
  const wires = svg("g", { class: "wires" });
  let lanes = 0;
  blocks.forEach((block, at) => {
    for (const from of block.reads) {
      const before = blocks.indexOf(from), y1 = from.top + from.height, y2 = block.top;
      const x = wide + lane * (1 + lanes % 8), a = from.top + head, b = block.top + head - 8;
      const near = before === at - 1;
      wires.append(svg("path", near ? { d: `M${wide / 2},${y1}V${y2 - 6}m-5,0h10l-5,6z`, class: "down" }
        : { d: `M${wide},${a}Q${x},${a} ${x},${a + 14}V${b - 14}Q${x},${b} ${wide},${b}` }));
      lanes += !near;
    }
  });
  const boxes = blocks.map(block => svg("g", { class: `box ${block.kind.split(" ")[0]}` },
    svg("rect", { x: 1, y: block.top, width: wide - 2, height: block.height,
      rx: block.kind === "source" ? 18 : 7 }),
    svg("text", { class: "what title", x: pad, y: block.top + 17 }, block.title),
    block.lines.map((text, i) => svg("text", { x: pad, y: block.top + head + 13 + i * line }, text))));
  const width = wide + (lanes ? lane * Math.min(9, 2 + lanes) : 2), height = top - gap + 4;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" },
    svg("title", null, "The program, from its inputs to its outputs"), wires, boxes);
}

// ---- numbers and words --------------------------------------------------------------------------

function factsCard(facts) {
  const rows = [["Operations", showCount(facts.operations)],
    ["in groups", `${showCount(facts.fused)} in ${showCount(facts.groups)}`], ["on numbers", showCount(facts.scalars)],
    ["by themselves", showCount(facts.jobs)], ["views", showCount(facts.views)],
    ["Memory of a run", showBytes(facts.run_bytes)], ["Inputs", showBytes(facts.input_bytes)],
    ["Outputs", showBytes(facts.output_bytes)], ["Constants", showBytes(facts.constant_bytes)],
    ["Never stored", showBytes(facts.fused_bytes)]];
  return el("section", { class: "card", id: "program-facts", "aria-labelledby": "facts-title" },
    el("h2", { id: "facts-title" }, "What a run takes"),
    el("dl", { class: "gradient" }, rows.map(([name, value]) => [el("dt", null, name), el("dd", null, value)])),
    el("p", { class: "hint" }, "Memory of a run is all that a run of the program holds: its instructions and tables " +
      "too, so it is large beside a small function. Under Cost only the numbers of the function are counted."));
}

// The report from where it speaks of groups: what comes before is in the table.
const told = report => report.slice(Math.max(0, report.search(/^(run together|not together)/m)));

const textCard = (name, title, text) =>
  el("section", { class: "card", id: `program-${name}`, "aria-labelledby": `${name}-title` },
    el("h2", { id: `${name}-title` }, title),
    el("pre", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title}: all of it` }, text.trimEnd()));
