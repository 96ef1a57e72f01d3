// engine.js: the command, called from the page. It prints one JSON object; a failure is an object with an error in it.
import { runModule } from "./wasi.js";

let module = null;

// The module travels inside the page, compressed and as text.
export async function loadEngine(base64) {
  const packed = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
}

export const engineReady = () => module !== null;

function call(args) {
  let ran;
  try {
    ran = runModule(module, ["cotangent", ...args]);
  } catch (e) { // a trap, or no memory left: the next call starts anew
    return { error: { message: `This is too large for the page: ${e.message}.` } };
  }
  try {
    return JSON.parse(ran.out);
  } catch {
    return { error: { message: ran.err.trim() || `The engine ended with status ${ran.status}.` } };
  }
}

// state: {expression, inputs: [{name, text, wrt}], seed}
export function traceOf(state) {
  const args = ["trace", "--json", "--seed", state.seed.trim() || "1"]; // one number goes for every element of the result
  const wanted = state.inputs.filter(i => i.wrt).map(i => i.name);
  if (wanted.length > 0 && wanted.length < state.inputs.length) args.push("--wrt", wanted.join(","));
  return call([...args, "--", state.expression, ...state.inputs.map(i => `${i.name}=${i.text}`)]);
}

export function costOf(inputs, outputs) {
  return call(["cost", "--json", "--inputs", String(inputs), "--outputs", String(outputs)]);
}
