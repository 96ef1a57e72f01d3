// refuse.js: what the page says instead of the engine, and the engine's sentences in the words of
// the page: there are no files, no options and no C functions here.
import { mostElements } from "./engine.js";
import { showCount } from "./numbers.js";

const makers = "zeros|ones|full|uniform|normal|randn|rand|eye|identity|broadcast_to|tile|repeat|arange|linspace";
const sized = new RegExp(`\\b(?:${makers})\\(([^()]*)`, "g");

// The elements of the largest array that a text asks for in so many words.
export function elementsIn(text) {
  let most = text.split(",").length;
  for (const [, inside] of text.matchAll(sized)) {
    const shapes =
      [...inside.matchAll(/[[(]\s*(\d+(?:\s*,\s*\d+)*)\s*,?\s*(?:\]|\)|$)/g)].map(m => m[1].split(",").map(Number));
    const plain = inside.match(/^\s*(\d+)(?:\s*,\s*(\d+))?/)?.slice(1).filter(n => n !== undefined).map(Number) ?? [];
    for (const shape of shapes.length ? shapes : [plain.slice(0, 1)])
      most = Math.max(most, shape.reduce((a, b) => a * b, 1));
  }
  return most;
}

// Why this state is not computed at all, or null.
export function refusal(state) {
  if (state.expression.trim() === "") return "Write an expression, or pick an example.";
  const texts = [...state.inputs.map(i => [i.name, i.text]), ["The seed", state.seed]];
  for (const [name, text] of texts)
    if (text.trim().startsWith("@"))
      return `${name}: files cannot be read here; paste the numbers, for example [[1, 2], [3, 4]].`;
  const empty = state.inputs.find(i => i.text.trim() === "");
  if (state.inputs.length > 1 && state.inputs.every(i => !i.wrt)) // a single one has no box
    return "There is nothing to differentiate by: tick ∂ beside at least one input.";
  if (empty) return `Enter a value for ${empty.name}, for example 1 or [1, 2, 3].`;
  for (const [name, text] of [...texts, ["The expression", state.expression]]) {
    const n = elementsIn(text);
    if (n > mostElements)
      return `${name.startsWith("The ") ? name : `The value of ${name}`} asks for an array of ` +
        `${n.toLocaleString("en")} numbers. This page takes up to ${
          showCount(mostElements)}, so that nobody waits too long; ` +
        "choose a smaller one here, or use the command on your own machine.";
  }
  return null;
}

const operators = { mul: "*", add: "+", sub: "-", div: "/", matmul: "@", pow: "**" };

// An error of the engine for a visitor: {message, column, line}.
export function inPageWords(error, state) {
  if (error.code === "memory")
    return { message: "This needs more memory than a page can have. Try smaller arrays." };
  const message = error.message.replace(/^--seed:\s*/, "The seed: ")
                    .replace(/^--seed\b/, "The seed")
                    .replace(/--seed V?/g, "a seed ")
                    .replace(/--wrt\b/g, "∂")
                    .replace(/\bcot_(\w+)/g, (_, name) => operators[name] ?? name)
                    .replace(/(\d)\.0\b/g, "$1")
                    .replace(/^\[(\w+)\] /, "$1: ");
  return { ...error, message: singleNumbers(error, state) ?? inPlace(message, state) ?? oneSeed(message) };
}

// y[0] = 3 is refused because a tape may not forget what it keeps; the sentence says so.
function inPlace(message, state) {
  const written = state.expression.match(/([A-Za-z_]\w*)\s*\[[^\]]*\]\s*[-+*/]?=(?!=)/);
  if (!written || !message.includes("only names can be assigned to")) return null;
  const [what, name] = written;
  return `${what.trim()} … would write into the array ${name}. The tape may have kept ${name} for the way back, and ` +
    `the derivative would be wrong. So it is refused, and only names can be assigned to: ${name} = … makes a new one.`;
}

// "(2,), and the value has ()": the result is one number.
const oneSeed = message =>
  message.replace(/,? and the value has \(\);.*$/, ", and the result is one number. Write one number, like 1.");

// Names begin as the number 1. Where that has the wrong shape, say what to enter.
function singleNumbers(error, state) {
  if (error.code !== "shape") return null;
  const beside = pattern => new Set([...state.expression.matchAll(pattern)].map(m => m[1]));
  const left = beside(/([A-Za-z_]\w*)\s*@/g), right = beside(/@\s*([A-Za-z_]\w*)/g);
  const numbers = state.inputs.filter(i => /^[-+.\deE]+$/.test(i.text.trim())).map(i => i.name);
  const factors = error.message.startsWith("[matmul] a scalar") ? numbers.filter(n => left.has(n) || right.has(n)) : [];
  if (factors.length === 0) return null;
  const example = n =>
    left.has(n) ? `a matrix for ${n}, for example [[1, 2], [3, 4]]` : `a vector for ${n}, for example [1, 2]`;
  const are = factors.length > 1 ? "are single numbers" : "is a single number";
  return `@ multiplies matrices and vectors, and ${factors.join(" and ")} ${are}. ` +
    `Enter ${factors.map(example).join(", and ")}.`;
}
