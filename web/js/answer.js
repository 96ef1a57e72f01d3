// answer.js: result and gradient, side by side in the strip that stays on the screen. The gradient
// is there once its sweep is done, in whatever walk one is then.
import { $, el } from "./dom.js";
import { inTable, isTensor, show } from "./numbers.js";
import { inBrackets } from "./tape.js";

export class Answer {
  everywhere = true;

  look({ tape, steps }) {
    $("value").textContent = show(tape.trace.value);
    const swept = tape.trace.sweep.length > 0 && steps.reverse >= tape.sweep.length;
    const entries = swept ? Object.entries(tape.trace.grad ?? {}) : [];
    const none = tape.trace.sweep.length ? "comes with the sweep" : "none: the result depends on no input";
    $("nabla").textContent = `∇${inBrackets(tape.weighted)}`;
    $("nabla").setAttribute("aria-label", `gradient of ${tape.weighted}`);
    $("gradient").replaceChildren(entries.length ? el("dl", null, entries.map(([name, v]) => entry(tape, name, v)))
      : el("p", { class: "hint" }, none));
  }
}

function entry(tape, name, v) {
  const { shape } = tape.node(tape.trace.inputs.find(i => i.name === name).node);
  return el("div", null, el("dt", null, tape.partial(name)),
    el("dd", { "data-grad": name, "data-value": JSON.stringify(v), title: isTensor(v) ? null : String(v) },
      inTable(v, shape)));
}
