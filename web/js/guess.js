// guess.js: predict first. Asks for the adjoint that the next step will leave in a register, and
// says how near the guess was.
import { $, bar } from "./dom.js";
import { isTensor, show, toNumber } from "./numbers.js";

// The question of the next step: {to, from, held, amount, answer, element}, or null when there is
// none.
export function questionOf(tape, step) {
  const entry = tape.sweep[step], add = entry?.adds[0];
  if (!add) return null;
  const first = v => isTensor(v) ? (v.elided ? v.grid : [v]).flat(Infinity)[0] : v;
  if (add.sum?.elided) return null;
  const register = tape.registers(step).get(add.to);
  return {
    to: add.to,
    from: entry.node,
    held: register ? toNumber(first(register.sum)) : 0,
    amount: toNumber(first(add.amount)),
    answer: toNumber(first(add.sum)),
    element: isTensor(add.sum),
    shape: tape.node(add.to).shape
  };
}

export function questionText(tape, q) {
  const place = q.element ? ` in its first place, [${q.shape.map(() => 0).join(", ")}]` : "";
  return [
    `Next is ${tape.label(q.from)} = ${tape.written(tape.node(q.from))}. What will `, bar(tape.label(q.to)),
    ` be after it${place}?`, q.held !== 0 ? ` It holds ${show(q.held)} now.` : ""
  ];
}

// A number as typed: 0.5, -1e3, 3/4, inf.
export function readGuess(text) {
  const t = text.trim().replaceAll("−", "-").replace(",", ".");
  if (/^[+-]?(inf|infinity|∞)$/i.test(t)) return t.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(t)) return NaN;
  const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const parts = t.split("/").map(p => p.trim());
  if (parts.length > 2 || !parts.every(p => number.test(p))) return null;
  return parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
}

// {verdict: "right" | "close" | "wrong", text}
export function judge(q, guess) {
  const answer = q.answer, truth = `It is ${show(answer)}.`;
  if (Object.is(guess, answer) || guess === answer)
    return { verdict: "right", text: `Exactly right: ${show(answer)}.` };
  if (!Number.isFinite(answer) || !Number.isFinite(guess)) return { verdict: "wrong", text: `Not quite. ${truth}` };
  const off = Math.abs(guess - answer), relative = off / Math.abs(answer);
  if (relative <= 0.005 || off < 1e-12)
    return { verdict: "right", text: `Right, to within ${percent(relative)}. ${truth}` };
  if (relative <= 0.1) return { verdict: "close", text: `Close: off by ${percent(relative)}. ${truth}` };
  const near = v => v !== 0 && Math.abs(guess - v) <= 0.005 * Math.abs(v);
  if (near(-answer)) return { verdict: "wrong", text: `The size is right, the sign is not. ${truth}` };
  if (q.held !== 0 && near(q.amount))
    return { verdict: "wrong",
      text: `That is what arrives now, but the register held ${show(q.held)} already: they add up. ${truth}` };
  if (answer === 0) return { verdict: "wrong", text: `Off by ${show(off)}: it is 0, nothing passes here.` };
  return { verdict: "wrong", text: `Off by ${show(off)}${relative < 10 ? ` (${percent(relative)})` : ""}. ${truth}` };
}

const percent = x => `${Number((100 * x).toPrecision(2))} %`;

export class Guesses {
  constructor(onCommit) {
    this.asked = this.right = 0;
    $("guess-form").addEventListener("submit", e => {
      e.preventDefault();
      if (!this.question) return;
      const guess = readGuess($("guess-value").value);
      if (guess === null) return this.say("wrong", "Write a number, like 0.5 or 3/4.");
      const { verdict, text } = judge(this.question, guess);
      this.asked++;
      if (verdict === "right") this.right++;
      const score = `${this.right} of ${this.asked} right so far.`;
      $("guess-value").value = "";
      onCommit();
      this.say(verdict, `${text} ${score}`);
    });
  }

  say(verdict, text) {
    $("guess-answer").className = `answer ${verdict}`;
    $("guess-answer").textContent = text;
  }

  show(tape, step, on) {
    this.question = on ? questionOf(tape, step) : null;
    $("guess-form").hidden = !this.question;
    if (this.question) $("guess-question").replaceChildren(...questionText(tape, this.question));
    const none = step < tape.sweep.length ? "The next step hands nothing on: just step." : "Nothing is left to guess.";
    this.say("", on && !this.question ? none : "");
  }
}
