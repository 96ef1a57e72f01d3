// nudge.js: the nudge test. An input is moved by less and less; beside what the result really does
// stands what the gradient predicts, and the error shrinks faster than the step.
import { el } from "./dom.js";
import { Tracer } from "./engine.js";
import { isTensor, show, toNumber } from "./numbers.js";
import { meetsStop } from "./reach.js";

const nudges = [1e-1, 1e-2, 1e-3, 1e-4];

const flat = v => [v].flat(Infinity).map(toNumber);

const mostMoved = 4096; // numbers in an input: the text of a direction has as many

// h in the first place of an array of this shape, else 0; or h itself.
const direction = (shape, h) => shape.length === 0 ? h
  : Array.from({ length: shape[0] }, (_, i) => direction(shape.slice(1), i === 0 ? h : 0));

// The text of an input, moved in its first place: a list of numbers has to become an array first.
const moved = (text, shape, h) => shape.length === 0 ? `(${text}) + ${h}`
  : `${text.trim().startsWith("[") ? `array(${text})` : `(${text})`} + array(${JSON.stringify(direction(shape, h))})`;

function evalArguments({ state, name, shape, h }) {
  return ["eval", "--json", "--", state.expression,
    ...state.inputs.map(i => `${i.name}=${i.name === name ? moved(i.text, shape, h) : i.text}`)];
}

// Of the size of the input: 0.1 for numbers near 1.
function sizeOf(value) {
  const size = Math.abs(flat(value)[0]);
  return size > 0 && Number.isFinite(size) ? 10 ** Math.round(Math.log10(size)) : 1;
}

// One line of the table: {h, real, predicted, error}; several results are weighted by the seed.
export function nudgeOf(tape, name, h, after) {
  const before = flat(tape.trace.value), seed = flat(tape.seed()), now = flat(after);
  const weight = i => seed.length === 1 ? seed[0] : seed[i];
  const real = now.reduce((sum, v, i) => sum + weight(i) * (v - before[i]), 0);
  const predicted = h * flat(tape.trace.grad[name])[0];
  return { h, real, predicted, error: real - predicted };
}

// What the errors say; `name` is the input that was moved. Rounding leaves some units in the last
// place of the result.
export function judgeNudges(lines, tape, name) {
  const { value } = tape.trace, what = tape.weighted;
  const least = 16 * Number.EPSILON * Math.max(...flat(value).map(Math.abs), ...lines.map(l => Math.abs(l.real)));
  const errors = lines.map(l => Math.abs(l.error));
  if (errors.some(e => !Number.isFinite(e)))
    return ["odd", "Here the result or the derivative is not a finite number, so there is nothing to compare."];
  if (flat(tape.seed()).every(s => s === 0))
    return ["odd", `The seed is 0, and ${what} never moves, whatever f does. Take another seed.`];
  if (errors.every(e => e <= least))
    return ["exact", "No error but rounding: along this input the function is a straight line."];
  if (lines.every(l => l.real === 0))
    return ["rough", `${what} does not move at all, although the derivative is not 0: such steps are lost in ` +
      "rounding."];
  const shrinks = errors.slice(1).map((e, i) => errors[i] / Math.max(e, least));
  const last = shrinks.slice(0, 2).reduce((a, b) => Math.min(a, b));
  if (last <= 50 && meetsStop(tape, name))
    return ["hidden", `${what} moves, but stop_gradient hides it: on the way back, what is behind it counts as a ` +
      "constant."];
  if (last > 50)
    return ["good", "Each step is 10 times smaller, and the error about 100 times or more: the gradient is right."];
  if (last > 5)
    return ["kink", "The error only shrinks as fast as the step. That happens at a corner, where there is no " +
      "derivative."];
  return ["rough", "The error does not shrink: too few digits for such small steps, or the function jumps."];
}

export class Nudge {
  constructor() {
    this.frame = el("div", { class: "nudge", id: "nudge" });
    this.side = 1; // -1: to the left, where a corner has another slope
    this.tracer = new Tracer((answer, asked) => this.answer(answer, asked), () => {}, evalArguments);
  }

  // Starts the test for an input of this tape; the names to choose from are those with a gradient.
  show(tape, state, name = null) {
    const names = Object.keys(tape.trace.grad ?? {}).filter(n => !tape.trace.grad[n]?.elided &&
      [tape.trace.grad[n]].flat(Infinity).length <= mostMoved);
    if (names.length === 0) return this.frame.replaceChildren();
    Object.assign(this, { tape, state, names, name: names.includes(name) ? name : names[0], lines: [] });
    this.node = tape.node(tape.trace.inputs.find(i => i.name === this.name).node);
    this.size = sizeOf(this.node.value);
    this.draw();
    this.ask();
  }

  ask() {
    const h = this.side * Number((nudges[this.lines.length] * this.size).toPrecision(1));
    this.tracer.ask({ state: this.state, name: this.name, shape: this.node.shape, h, of: this.tape });
  }

  answer(answer, asked) {
    if (asked.of !== this.tape || asked.name !== this.name || asked.h * this.side < 0) return;
    if (answer.error) return;
    this.lines.push(nudgeOf(this.tape, this.name, asked.h, answer.value));
    this.draw();
    if (this.lines.length < nudges.length) this.ask();
  }

  // The button is made anew with all else, and keeps the focus.
  turn() {
    this.side = -this.side;
    this.show(this.tape, this.state, this.name);
    this.frame.querySelector("#nudge-side").focus();
  }

  draw() {
    const { tape, name, names, lines } = this;
    const focused = document.activeElement?.id === "nudge-side" && this.frame.contains(document.activeElement);
    const place = isTensor(this.node.value) ? `[${this.node.shape.map(() => 0).join(", ")}]` : "";
    const select = el("select", { id: "nudge-input", "aria-label": "Input to nudge",
      onchange: () => this.show(this.tape, this.state, select.value) },
    names.map(n => el("option", { value: n, selected: n === name }, n)));
    const what = tape.weighted, head = ["step", `${what} really moves`, "predicted", "error"];
    const done = lines.length === nudges.length, [kind, words] = done ? judgeNudges(lines, tape, name) : [];
    this.frame.replaceChildren(
      el("h3", null, "The nudge test"),
      el("p", null, "Move ", names.length > 1 ? select : el("b", null, name), el("b", null, place),
        " by a little step. ",
        `Does ${what} move as the gradient says, step times derivative?`),
      el("div", { class: "scroll" }, el("table", { class: "cells-plain" },
        el("thead", null, el("tr", null, head.map(h => el("th", { scope: "col" }, h)))),
        el("tbody", null, lines.map(l => el("tr", { "data-error": String(l.error), "data-step": String(l.h) },
          el("th", { class: "number", scope: "row" }, show(l.h)),
          [[l.real, 5], [l.predicted, 5], [l.error, 2]].map(([v, digits]) =>
            el("td", { class: "number" }, show(v, digits)))))))),
      done ? el("p", { class: `answer ${["good", "exact"].includes(kind) ? "right" : "close"}`, "data-kind": kind },
        words) : "",
      el("p", null, el("button", { type: "button", id: "nudge-side", class: "plain", onclick: () => this.turn() },
        this.side > 0 ? "Nudge the other way" : "Nudge upward again")));
    if (focused) this.frame.querySelector("#nudge-side").focus();
  }
}
