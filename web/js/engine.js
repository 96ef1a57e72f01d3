// engine.js: the command, called from the page. It prints one JSON object; a failure is an object
// with an error in it. Functions that visitors write run in a worker, which can be ended, so that
// the page never stands still.
import { runModule } from "./wasi.js";

export const mostElements = 4e6; // numbers in one array; more would take the browser too long

let module = null;

// The module travels inside the page, compressed and as text.
export async function loadEngine(base64) {
  const packed = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
}

export const engineReady = () => module !== null;

// The answer of one run. This too travels into the worker as text: it uses nothing but its
// arguments.
function answerOf(run, module, args) {
  let ran;
  try {
    ran = run(module, ["cotangent", ...args]);
  } catch { // a trap, or no memory left: the next call starts anew
    return { error: { code: "memory" } };
  }
  let answer;
  try {
    answer = JSON.parse(ran.out);
  } catch {
    return { error: { message: ran.err.trim() || `The engine ended with status ${ran.status}.` } };
  }
  // Of large arrays the page shows summaries, which nodes and sums have; the numbers themselves
  // would only be heavy to hand over.
  if (!answer.nodes) return answer;
  const summary = new Map(answer.nodes.filter(n => n.value?.elided).map(n => [n.id, n.value]));
  if (summary.has(answer.output)) answer.value = summary.get(answer.output);
  for (const { name, node } of answer.inputs) {
    const sum = answer.sweep.flatMap(s => s.adds).findLast(a => a.to === node)?.sum;
    if (sum?.elided && answer.grad[name]) answer.grad[name] = sum;
  }
  return answer;
}

export function costOf(inputs, outputs) {
  return answerOf(runModule, module, ["cost", "--json", "--inputs", String(inputs), "--outputs", String(outputs)]);
}

// sizes: {depth, width, batch, states, micro, bytes of a number, limit in bytes or 0}
export function costOfDepth({ bytes, limit, ...sizes }) {
  const more = [...(bytes === 2 ? ["--precision", "bf16"] : bytes === 4 ? ["--dtype", "f32"] : []),
    ...(limit ? ["--limit", String(limit)] : [])];
  const options = Object.entries(sizes).flatMap(([name, n]) => [`--${name}`, String(n)]);
  return answerOf(runModule, module, ["cost", "--json", ...more, ...options]);
}

// state: {expression, inputs: [{name, text, wrt}], seed}
export function traceArguments(state) {
  // one number goes for every element of the result
  const args = ["trace", "--json", "--seed", state.seed.trim() || "1"];
  const wanted = state.inputs.filter(i => i.wrt).map(i => i.name);
  if (wanted.length > 0 && wanted.length < state.inputs.length) args.push("--wrt", wanted.join(","));
  return [...args, "--", state.expression, ...state.inputs.map(i => `${i.name}=${i.text}`)];
}

let address = null;

const workerText = () => `const run = ${runModule}; const answer = ${answerOf}; let module; onmessage = ({ data }) => {
  if (data instanceof WebAssembly.Module) module = data; else postMessage(answer(run, module, data)); };`;

// Traces one after the other, always of the newest state. A run that takes long is ended when
// something newer is asked.
export class Tracer {
  // onAnswer(trace, state); onBusy(true or false); argumentsOf(state): what the command is given
  constructor(onAnswer, onBusy, argumentsOf = traceArguments) {
    this.onAnswer = onAnswer;
    this.onBusy = onBusy;
    this.argumentsOf = argumentsOf;
    this.worker = this.running = this.next = null;
    this.direct = false; // without a worker
  }

  ask(state) {
    this.next = { state, args: this.argumentsOf(state) };
    if (this.running && performance.now() - this.running.since > 300) this.end();
    if (!this.running) this.start();
    else this.patience ??= setTimeout(() => { // a slow one, and a newer waits
      this.end();
      this.start();
    }, 300);
  }

  stop() {
    this.next = null;
    this.end();
    this.onBusy(false);
  }

  end() {
    clearTimeout(this.patience);
    this.patience = undefined;
    this.worker?.terminate();
    this.worker = this.running = null;
  }

  start() {
    if (!this.next) return;
    const { state, args } = this.next;
    this.next = null;
    this.running = { state, args, since: performance.now() };
    this.onBusy(true);
    try {
      if (!this.direct) this.worker ??= this.hire();
    } catch {
      this.direct = true;
    }
    if (this.direct) this.done(answerOf(runModule, module, args));
    else this.worker.postMessage(args);
  }

  hire() {
    address ??= URL.createObjectURL(new Blob([workerText()], { type: "text/javascript" }));
    const worker = new Worker(address);
    let spoke = false;
    worker.onmessage = ({ data }) => {
      spoke = true;
      this.done(data);
    };
    worker.onerror = e => {
      e.preventDefault();
      const args = this.running?.args;
      if (!args) return;
      this.worker?.terminate();
      this.worker = null;
      // it could not even start: some browsers refuse workers to pages from disk
      if (!spoke) this.direct = true;
      this.done(spoke ? { error: { code: "memory" } } : answerOf(runModule, module, args));
    };
    worker.postMessage(module);
    return worker;
  }

  done(trace) {
    const state = this.running?.state ?? null;
    clearTimeout(this.patience);
    this.patience = undefined;
    this.running = null;
    if (this.next) { // shown all the same, so that a slider in motion has its picture
      this.onAnswer(trace, state);
      this.start();
    } else {
      this.onBusy(false);
      this.onAnswer(trace, state);
    }
  }
}
