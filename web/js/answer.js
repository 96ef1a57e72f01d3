// answer.js: result and gradient, side by side in the strip that stays on the screen. The gradient
// is there once its sweep is done, in whatever walk one is then.
import { $, el } from "./dom.js";
import { isTensor, show } from "./numbers.js";

export class Answer {
  everywhere = true;

  look({ tape, steps }) {
    $("value").textContent = show(tape.trace.value);
    const swept = tape.trace.sweep.length > 0 && steps.reverse >= tape.sweep.length;
    const entries = swept ? Object.entries(tape.trace.grad ?? {}) : [];
    $("gradient").replaceChildren(...(entries.length ? [el("dl", null, entries.map(entry))] :
      tape.trace.sweep.length ? [el("p", { class: "hint" }, "comes with the sweep")] :
        [el("p", { class: "hint" }, "none: the result depends on no input")]));
  }
}

const entry = ([name, v]) => el("div", null, el("dt", null, `∂f/∂${name}`),
  el("dd", { "data-grad": name, "data-value": JSON.stringify(v), title: isTensor(v) ? null : String(v) }, show(v)));
