// questions.js: what can be asked before a step, its three hints, and what an answer is worth. A
// question is {kind, text, choices or null, hints: [3], answer, reveal, reason(given)}; texts are
// lists of strings and elements.
import { bar, dot, el } from "./dom.js";
import { isTensor, show, toNumber } from "./numbers.js";
import { formula } from "./reverse.js";
import { movedOps, tangentParts, tangentsOf } from "./tangents.js";

const first = v => toNumber(isTensor(v) ? (v.elided ? v.grid : [v]).flat(Infinity)[0] : v);
const signs = [["positive", "+"], ["negative", "−"], ["zero", "0"]];
const signOf = x => x > 0 ? "positive" : x < 0 ? "negative" : "zero";
const percent = x => `${Number((100 * x).toPrecision(2))} %`;

// What the next step will make: {answer, ...}, or null when there is nothing to ask.
export function nextOf(tape, mode, step) {
  if (mode === "forward") return nextValue(tape, step);
  if (mode === "reverse") return nextAdjoint(tape, step);
  if (mode === "tangent") return nextTangent(tape, step);
  return null;
}

const placeIn = shape => shape.length ? ` in its first place, [${shape.map(() => 0).join(", ")}]` : "";

function nextValue(tape, step) {
  const node = tape.ops[step];
  if (!node || node.value?.elided || Number.isNaN(first(node.value))) return null;
  const numbers = tape.calculated(node), label = tape.label(node.id);
  return {
    answer: first(node.value), name: [label],
    next: [`Next is ${label} = ${tape.written(node)}.`], place: placeIn(node.shape), held: 0,
    hints: [[`The operation is ${node.formula ?? node.op}.`], [`With names: ${label} = ${tape.written(node)}.`],
      [numbers ? `With numbers: ${label} = ${numbers}.` : "Look at the numbers of its operands in the table."]],
    mistakes: []
  };
}

function nextAdjoint(tape, step) {
  const entry = tape.sweep[step], add = entry?.adds[0];
  if (!add || add.sum?.elided) return null;
  const registers = tape.registers(step), register = registers.get(add.to), held = register ? first(register.sum) : 0;
  const amount = first(add.amount), adjoint = first(entry.adjoint), name = bar(tape.label(add.to));
  const written = tape.label(entry.node), node = tape.node(entry.node);
  const scalar = !isTensor(add.sum) && !isTensor(entry.adjoint);
  const holds = held !== 0 ? [name, ` holds ${show(held)} now. After it:`] : [];
  const then = held !== 0 ? [" It is added to the ", show(held), " that is there."] : [];
  return {
    answer: first(add.sum), name: [name],
    next: [`Next is ${written} = ${tape.written(node)}. `, ...holds], held, place: placeIn(tape.node(add.to).shape),
    when: " after this step, so far",
    hints: [
      [`Each operand of ${written} gets the adjoint of ${written}, called g, times its own derivative: `,
        el("code", null, add.rule.replaceAll("z\u0304", "g")),
        add.rule === "g" ? ". The derivative is 1 here, so g goes on as it is." : "."],
      ["With names: ", ...formula(tape, entry, add, registers, "names"), ".", ...then],
      scalar ? ["With numbers: ", ...formula(tape, entry, add, registers, "numbers"), "."]
        : ["Look at the adjoint and the values in the table, place by place."]],
    // what somebody thought who came to this number
    mistakes: !scalar ? [] : [
      [held !== 0 ? amount : NaN,
        `That is what arrives now. But the register held ${show(held)} already: they add up.`],
      [held !== 0 ? held : NaN, "That is what it holds already. Something more arrives."],
      [amount !== 0 ? held - amount : NaN, "The size is right, but the sign of what arrives is not."],
      [adjoint !== 1 ? amount / adjoint : NaN, "That is the derivative of this operation alone. It is still to be " +
        "multiplied by the adjoint that came here."],
      [adjoint, "That is the adjoint that came here. It is still to be multiplied by the derivative of the operation."]]
  };
}

function nextTangent(tape, step) {
  const node = movedOps(tape)[step], value = node && tangentsOf(tape).get(node.id);
  if (!node || value?.elided || Number.isNaN(first(value))) return null;
  const list = tangentParts(tape, node), name = dot(tape.label(node.id)), answer = first(value);
  const sum = pick => list.flatMap((p, k) => [k ? " + " : "", ...pick(p)]);
  return {
    answer, name: [name], held: 0, place: placeIn(node.shape),
    next: [`Next is ${tape.label(node.id)} = ${tape.written(node)}. `],
    hints: [["Each operand that moves hands on its tangent, times the derivative by it."],
      list ? ["With names: ", name, " = ", ...sum(p => p.names), "."]
        : [`The operation is ${node.formula ?? node.op}.`],
      list ? ["With numbers: ", name, " = ", ...sum(p => [p.numbers]), "."]
        : ["Look at the tangents and values of its operands in the table."]],
    mistakes: !list ? [] : [
      [list.length > 1 ? list[0].partial * list[0].tangent : NaN,
        "That comes through one operand. The others move too."],
      [list.length === 1 && list[0].tangent !== answer ? list[0].tangent : NaN,
        "That is how fast its operand moves. It is still to be multiplied by the derivative of the operation."],
      [answer !== 0 ? -answer : NaN, "The size is right, but the sign is not."]]
  };
}

// ---- the kinds of question ----------------------------------------------------------------------

export function signQuestion(next) {
  const right = signOf(next.answer);
  return { ...next, kind: "sign",
    text: [...next.next, " Which sign will ", ...next.name, `${next.place} have${next.when ?? ""}?`],
    choices: signs, right,
    reveal: ["It is ", right, ": ", ...next.name, ` = ${show(next.answer)}.`],
    reason: given => [`Not ${given}. Look at the sign of every part`,
      next.held !== 0 ? ", and of what is there already." : "."] };
}

export function sizeQuestion(next) {
  const right = Math.abs(next.answer) > 1 ? "more" : Math.abs(next.answer) < 1 ? "less" : "one";
  return { ...next, kind: "size", 
    text: [...next.next, " How large will ", ...next.name, `${next.place} be${next.when ?? ""}, without its sign?`],
    choices: [["less", "below 1"], ["one", "exactly 1"], ["more", "above 1"]], right,
    reveal: ["Its size is ", show(Math.abs(next.answer)), "."],
    reason: () => ["Not so. Do the factors make it larger, or smaller?"] };
}

export const numberQuestion = next => ({ ...next, kind: "number", choices: null,
  text: [...next.next, " What will ", ...next.name, `${next.place} be${next.when ?? ""}?`],
  reveal: ["It is ", show(next.answer), "."] });

// A typed number against the true one: {verdict: "right" | "close" | "wrong", text}. No text tells
// the answer: there is a second try.
export function judgeNumber(q, guess) {
  const { answer } = q;
  if (Object.is(guess, answer) || guess === answer)
    return { verdict: "right", text: `Exactly right: ${show(answer)}.` };
  if (!Number.isFinite(answer) || !Number.isFinite(guess)) return { verdict: "wrong", text: "Not quite." };
  const off = Math.abs(guess - answer), relative = off / Math.abs(answer);
  if (relative <= 0.005 || off < 1e-12)
    return { verdict: "right", text: `Right, to within ${percent(relative)}: it is ${show(answer)}.` };
  if ([2, 3, 4].some(digits => Number(answer.toPrecision(digits)) === guess)) // rounded well
    return { verdict: "right", text: `Right, in the digits you gave: it is ${show(answer)}.` };
  if (relative <= 0.1) return { verdict: "close", text: `Close: off by ${percent(relative)}.` };
  const near = v => Number.isFinite(v) && v !== 0 && Math.abs(guess - v) <= 0.005 * Math.abs(v);
  if (near(-answer)) return { verdict: "wrong", text: "The size is right, the sign is not." };
  const mistake = q.mistakes.find(([v]) => near(v));
  if (mistake) return { verdict: "wrong", text: mistake[1] };
  if (guess * answer < 0) return { verdict: "wrong", text: "Not even the sign. A hint may help." };
  return { verdict: "wrong", text: Math.abs(guess) > Math.abs(answer) ? "Too large in size." : "Too small in size." };
}

// ---- a control that is moved --------------------------------------------------------------------

// "Double x2: does x̄1 grow, shrink, stay?" after: the trace with that input doubled.
export function moveQuestion(tape, after, moved, asked) {
  const before = first(tape.trace.grad[asked]), now = first(after.grad[asked]);
  if (!Number.isFinite(before) || !Number.isFinite(now)) return null;
  const least = 1e-12 * Math.max(Math.abs(before), Math.abs(now));
  const right = now - before > least ? "grows" : before - now > least ? "shrinks" : "stays";
  const id = tape.trace.inputs.find(i => i.name === asked).node, registers = tape.registers(tape.sweep.length);
  const parts = tape.sweep.flatMap(entry => entry.adds.filter(a => a.to === id).map(add =>
    formula(tape, entry, add, registers, "names")));
  return {
    kind: "move", right, choices: [["grows", "grows"], ["stays", "stays"], ["shrinks", "shrinks"]],
    text: [`Double ${moved}, and leave the rest. What does `, bar(asked), " do? (−2 is below −1: that shrinks.)"],
    hints: [["Which of the contributions to ", bar(asked), ` has ${moved} in it?`],
      [...(parts.length ? parts.flatMap((p, k) => [k ? "; " : "", ...p]) : ["Nothing arrives there"]), "."],
      [bar(asked), ` is ${show(before)} now.`]],
    reveal: [bar(asked), ` was ${show(before)} and would be ${show(now)}: it ${right}.`],
    reason: given => [`It does not ${given.replace(/s$/, "")}. Follow ${moved} through the tape: is it in a `,
      "contribution, or in a value that one is made of?"]
  };
}
