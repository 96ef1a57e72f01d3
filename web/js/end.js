// end.js: what stands where a walk has ended. No walk is a dead end: the forward pass leads to the
// backward pass, and that one to what the gradient means, a test of it, and the next lesson.
import { $, calm, el } from "./dom.js";
import { engineReady } from "./engine.js";
import { placeOf } from "./lessons.js";
import { Nudge } from "./nudge.js";
import { isTensor, show, toNumber } from "./numbers.js";
import { meetsKink, meetsStop } from "./reach.js";
import { allWalks } from "./tangents.js";

const moves = (whose, d) => `${whose} ${d > 0 ? "grows" : "shrinks"} by about ${show(Math.abs(d) * 0.01, 3)}`;

function saying(tape, name, g) {
  const what = tape.weighted, seed = what === "f" || isTensor(tape.trace.value) ? null : toNumber(tape.seed());
  if (seed === 0) return "a seed of 0 asks for nothing, so this says nothing about f.";
  if (!Number.isFinite(g)) return "no finite number tells how f moves.";
  if (meetsKink(tape, name)) return "by convention. There is a corner here, so f need not move like this: see below.";
  if (g === 0 && meetsStop(tape, name))
    return `stop_gradient cuts the way back. f does move with ${name}, but no derivative says so: see below.`;
  if (g === 0) return `a small change of ${name} does not move f, or by much less than the change.`;
  return `when ${name} grows by 0.01, ${moves(what, g)}${seed === null ? "" : `, so ${moves("f itself", g / seed)}`}.`;
}

// "∂f/∂x1 = 3.71: when x1 grows by 0.01, f grows by about 0.0371."
function meaning(tape, name, v) {
  const so = saying(tape, name, toNumber(v));
  return el("li", null, el("b", { class: "r" }, `${tape.partial(name)} = ${show(v)}`), `: ${so}`);
}

// The question of the lesson, now that the walk is done. Its answer comes to who has written one.
function question({ ask, answer }) {
  const own = el("input", { type: "text", id: "end-guess", autocomplete: "off", "aria-label": "Your answer",
    placeholder: "Your answer, in a few words" });
  const said = el("p", { id: "end-answer", role: "status" });
  return [el("p", null, el("b", null, "The question was: "), ask),
    el("form", { class: "row", onsubmit: e => {
      e.preventDefault();
      const answered = own.value.trim() !== "";
      said.textContent = answered ? `The answer: ${answer}` : "Write your answer first. A guess is enough.";
      if (answered) document.getElementById("end-next")?.focus(); // so that the keys walk on
    } }, own, el("button", { type: "submit", class: "plain" }, "Commit")), said];
}

export class End {
  // onWalk(mode): another walk, from its start; onLesson(id)
  constructor(onWalk, onLesson) {
    Object.assign(this, { onWalk, onLesson, nudge: new Nudge(), key: null, seen: false });
  }

  // Nobody was led to the card yet: the key for the next step does that before it leaves.
  get unread() { return !this.seen && !document.body.classList.contains("present"); }

  read() {
    this.seen = true;
    $("end").scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
  }

  look({ tape, state, mode, step, last }) {
    const at = step === last && last > 0 ? mode : null, key = at === null ? null : [tape, mode];
    if (key === null || this.key === null || key.some((k, i) => k !== this.key[i])) this.draw(at, tape, state);
    this.key = key;
  }

  draw(at, tape, state) {
    const swept = tape.trace.sweep.length > 0, parts = at === "forward" ? (swept ? this.forward() : []) :
      at === "reverse" ? this.reverse(tape, state) : at === "tangent" ? this.tangent(tape) : [];
    this.seen = false;
    $("end").hidden = parts.length === 0;
    $("end").replaceChildren(...parts);
  }

  walk(mode, text, id) {
    return el("button", { type: "button", class: `step ${mode}`, id, onclick: () => this.onWalk(mode) }, text);
  }

  forward() {
    return [el("h3", null, "That is the value"),
      el("p", null, "But how much did each input matter? One walk back answers that for all of them."),
      this.walk("reverse", "Now backward →", "end-backward")];
  }

  reverse(tape, state) {
    const grad = Object.entries(tape.trace.grad ?? {}), single = !Array.isArray(tape.trace.value);
    const numbers = grad.filter(([, v]) => !isTensor(v)), arrays = grad.filter(([, v]) => isTensor(v));
    const place = placeOf(state.preset);
    if (engineReady()) this.nudge.show(tape, state, this.nudge.name);
    return [el("h3", null, "This is backpropagation"),
      el("p", null, "One walk forward, one walk back, and the derivative by every input is there. ",
        !single ? "There are several results. seed·f is their sum, each weighted by its number in the seed."
          : tape.weighted === "f" ? "" : `The seed is ${show(tape.seed())}: this is the gradient of ${tape.weighted}.`),
      numbers.length ? el("ul", { class: "meaning" }, numbers.map(([name, v]) => meaning(tape, name, v))) : "",
      arrays.length ? el("p", null, `${arrays.map(([name]) => name).join(" and ")}: one derivative for each number, ` +
        `in the same shape. Each says how ${tape.weighted} moves with that number alone.`) : "",
      engineReady() ? this.nudge.frame : "",
      ...(place ? question(place.lesson) : []),
      place ? el("p", null, el("b", null, "You can now say: "), place.lesson.say) : "",
      place && !place.next ? el("p", { id: "end-last" }, "That was the last lesson. Forward, backward, sums over " +
        "paths, seeds, conventions, memory: you have seen it all. Now write a function of your own above, and walk " +
        "it.") : "",
      el("div", { class: "row wrap" }, place?.next ? el("button", { type: "button", class: "step forward",
        id: "end-next", onclick: () => this.onLesson(place.next.id) }, `Next lesson: ${place.next.name} →`) : "",
      place?.lesson.cost ? el("button", { type: "button", class: "plain", id: "end-cost",
        onclick: () => $("tab-cost").click() }, "Memory and depth →") : "",
      this.walk("tangent", "The same with tangents →", "end-tangent"))];
  }

  tangent(tape) {
    const n = allWalks(tape), sweeps = tape.trace.cost?.reverse.sweeps ?? 1;
    return [el("h3", null, "One walk, one number"),
      el("p", null, n > 1 ? `Tangents tell about one number at a time. All ${n} numbers of the inputs need ${n} ` +
        `walks; the backward pass needs ${sweeps > 1 ? `${sweeps}, one for each number of the result` : "one"}.`
        : "There is one input number, so one walk of tangents tells as much as one sweep."),
      this.walk("reverse", sweeps > 1 ? "Compare: a walk back, for a weighted sum of the results →"
        : "Compare: one walk back →", "end-compare")];
  }
}
