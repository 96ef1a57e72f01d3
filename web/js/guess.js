// guess.js: predict first. A question about the next step, or about an input that is moved, stands
// beside the walk; nobody has to answer. Who answers commits before anything is revealed, may ask
// for three hints, and has a second try.
import { $, el } from "./dom.js";
import { Tracer, traceArguments } from "./engine.js";
import { calculated } from "./calculate.js";
import { judgeNumber, moveQuestion, nextOf } from "./questions.js";
import { numberQuestion, signQuestion, sizeQuestion } from "./questions.js";
import { keepHere, recallHere, whenKept } from "./store.js";

const kinds = { sign: signQuestion, size: sizeQuestion, number: numberQuestion };

// An element stands in one place only; a name may be said in several.
const copies = words => words.map(w => w.cloneNode ? w.cloneNode(true) : w);

export class Guesses {
  // onReveal(): the step that was asked about may be taken now
  constructor(onReveal) {
    Object.assign(this, { onReveal, question: null, tries: 0, hints: 0, turn: 0, score: recallHere("score", [0, 0]) });
    whenKept("score", score => this.showScore(score));
    $("predict").checked = recallHere("predict", true);
    $("predict").addEventListener("change", () => {
      keepHere("predict", $("predict").checked);
      this.look(this.at);
    });
    $("guess-kind").addEventListener("change", () => this.look(this.at));
    $("guess-form").addEventListener("submit", e => {
      e.preventDefault();
      this.typed();
    });
    $("guess-hint").addEventListener("click", () => this.hint());
    this.tracer = new Tracer((after, asked) => this.moved(after, asked), () => {}, traceArguments);
  }

  look(at) {
    if (!at) return;
    this.at = at;
    const on = $("predict").checked, asks = ["forward", "reverse", "tangent"].includes(at.mode);
    $("guess").hidden = !asks;
    if (!asks) return;
    const kind = $("guess-kind").value, next = on && kind !== "move" ? nextOf(at.tape, at.mode, at.step) : null;
    this.ask(next ? kinds[kind](next) : null);
    $("guess-kind").hidden = !on;
    const none = at.step < at.last ? "There is nothing to ask about the next step: just step."
      : "The walk is done: nothing is left to ask.";
    this.say("", !on || this.question || kind === "move" ? "" : none);
    if (on && kind === "move") this.askMove(at);
  }

  ask(question) {
    Object.assign(this, { question, tries: 0, hints: 0 });
    $("guess-body").hidden = !question;
    $("guess-form").hidden = !question || question.choices !== null;
    $("guess-hints").replaceChildren();
    this.showHint();
    $("guess-choices").replaceChildren(...(question?.choices ?? []).map(([value, text]) =>
      el("button", { type: "button", class: "plain", "data-choice": value, onclick: () => this.chosen(value) }, text)));
    $("guess-question").replaceChildren(...copies(question?.text ?? []));
    this.showScore(this.score);
  }

  showScore(score) {
    const [right, asked] = this.score = score;
    $("guess-score").textContent = asked ? `${right} of ${asked} right so far, in this browser.` : "";
  }

  // Pairs of inputs in turn: one is doubled, the adjoint of one is asked for.
  askMove({ tape, state }) {
    const names = Object.entries(tape.trace.grad ?? {}).filter(([, v]) => typeof v === "number").map(([name]) => name);
    if (RECORDED || names.length === 0) return this.say("", "There is no input that is a number and can be moved.");
    const n = names.length, moved = names[this.turn % n], round = Math.floor(this.turn / n);
    const asked = names[(this.turn + round + 1) % n];
    const inputs = state.inputs.map(i => i.name === moved ? { ...i, text: `2*(${i.text})` } : { ...i });
    this.tracer.ask({ ...state, inputs, of: tape, moved, asked });
  }

  moved(after, { of, moved, asked }) {
    if (after.error || of !== this.at.tape || $("guess-kind").value !== "move") return;
    this.ask(moveQuestion(of, after, moved, asked));
  }

  hint() {
    if (!this.question || this.hints === 3) return;
    $("guess-hints").append(el("li", null, ...copies(this.question.hints[this.hints++])));
    this.showHint();
  }

  showHint() {
    $("guess-hint").textContent = this.hints < 3 ? `Hint ${this.hints + 1} of 3` : "No more hints";
    $("guess-hint").setAttribute("aria-disabled", String(this.hints === 3));
  }

  typed() {
    if (!this.question) return;
    const guess = calculated($("guess-value").value);
    if (guess === null) return this.say("wrong", "Write a number, like 0.5, 3/4 or cos(pi/4).");
    const { verdict, text } = judgeNumber(this.question, guess);
    $("guess-value").value = "";
    this.settle(verdict, [text]);
  }

  chosen(value) {
    const right = value === this.question.right;
    this.settle(right ? "right" : "wrong", right ? ["Right. ", ...this.question.reveal] : this.question.reason(value));
  }

  // The first wrong answer gets its reason and another try; then the truth is told.
  settle(verdict, text) {
    const { question } = this;
    this.tries++;
    if (verdict !== "right" && this.tries === 1) return this.say(verdict, ...text, " Try once more.");
    this.score = [this.score[0] + (verdict === "right"), this.score[1] + 1];
    keepHere("score", this.score);
    const rule = question.kind === "move" ? [] : [" ", ...question.hints[2]];
    const words = verdict === "right" ? text : [...text, " ", ...question.reveal, ...rule];
    if (question.kind === "move") {
      this.turn++;
      this.ask(null);
      this.askMove(this.at);
    } else
      this.onReveal();
    this.say(verdict, ...words);
  }

  // On a phone the line above the buttons says it too: that is always on the screen.
  say(verdict, ...words) {
    $("guess-answer").className = $("verdict").className = `answer ${verdict}`;
    $("guess-answer").replaceChildren(...copies(words));
    $("verdict").replaceChildren(...(verdict ? copies(words) : []));
  }
}
