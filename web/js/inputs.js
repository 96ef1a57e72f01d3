// inputs.js: the form of the inputs: a slider and a field for a number, a field for anything else, and whether to differentiate
// by it.
import { el } from "./dom.js";
import { isTensor, show } from "./numbers.js";

function rangeFor(value) {
  const reach = Math.max(5, 2 * Math.ceil(Math.abs(value)));
  return [-reach, reach];
}

export class InputForm {
  constructor(frame, onChange) {
    this.frame = frame;
    this.onChange = onChange;
    this.rows = new Map();
  }

  // Rows for these inputs; kept when the names are the same, so that a slider in use is not replaced.
  set(inputs) {
    this.rows.clear();
    this.frame.replaceChildren(...inputs.map(input => this.row(input, inputs.length > 1)));
  }

  row(input, choice) {
    const id = `input-${input.name}`, long = input.text.length > 24;
    const field = el(long ? "textarea" : "input", { type: long ? null : "text", id, rows: long ? 1 : null, spellcheck: "false",
      autocomplete: "off", autocapitalize: "off", oninput: () => {
        input.text = field.value;
        this.onChange();
      } });
    field.value = input.text;
    const slider = el("input", { type: "range", "aria-label": `${input.name}, slider`, step: "any", hidden: true, oninput: () => {
      input.text = String(Number(Number(slider.value).toFixed(2)));
      field.value = input.text;
      this.onChange();
    } });
    slider.addEventListener("keydown", e => { // step "any" has no useful keyboard step
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[e.key];
      if (!by) return;
      e.preventDefault();
      slider.value = Number(slider.value) + by * (slider.max - slider.min) / 100;
      slider.dispatchEvent(new Event("input"));
    });
    const wrt = el("input", { type: "checkbox", "aria-label": `differentiate by ${input.name}`, onchange: () => {
      input.wrt = wrt.checked;
      this.onChange();
    } });
    wrt.checked = input.wrt;
    this.rows.set(input.name, { input, slider, field });
    const tick = el("label", { class: "wrt", title: "Differentiate by this input?" }, wrt, el("span", { "aria-hidden": "true" }, "∂"));
    return el("div", { class: `input${long ? " long" : ""}` }, el("label", { for: id }, input.name), field, slider, choice ? tick : null);
  }

  // What the engine made of the texts: sliders follow, for numbers.
  follow(tape) {
    for (const { node, name } of tape.trace.inputs) {
      const row = this.rows.get(name), value = tape.node(node)?.value;
      if (!row) continue;
      const scalar = typeof value === "number";
      row.slider.hidden = !scalar;
      if (!scalar || document.activeElement === row.slider) continue;
      const { input, slider } = row;
      if (input.least === undefined || value < input.least || value > input.most) [input.least, input.most] = rangeFor(value);
      slider.min = input.least;
      slider.max = input.most;
      slider.value = value;
      slider.setAttribute("aria-valuetext", show(value));
    }
  }

  // Where there is no engine: the values as they were.
  static recorded(frame, tape) {
    frame.replaceChildren(el("dl", { class: "gradient" }, tape.trace.inputs.map(({ node, name }) => {
      const value = tape.node(node).value;
      return [el("dt", null, name), el("dd", null, isTensor(value) ? tape.node(node).shape.join("×") + " " : "", show(value))];
    })));
  }
}

export const defaultInput = name => ({ name, text: "1", wrt: true });
