// reach.js: what lies between an input and the result, where a derivative is not all there is to
// say: a corner, where it is a convention, or stop_gradient, which hides that the result moves.
import { onKink } from "./kinks.js";

// The boxes that an input reaches, the result with it.
export function reached(tape, name) {
  const ids = new Set([tape.trace.inputs.find(i => i.name === name).node]);
  for (const node of tape.ops) if (node.args.some(a => ids.has(a))) ids.add(node.id);
  return tape.ops.filter(node => ids.has(node.id));
}

export const meetsKink = (tape, name) => reached(tape, name).some(node => onKink(tape, node));
export const meetsStop = (tape, name) => reached(tape, name).some(node => node.op === "detach");
