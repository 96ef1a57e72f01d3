// inputs.js: the form of the inputs: a slider and a field for a number, a field for anything else,
// and whether to differentiate by it.
import { el } from "./dom.js";
import { isTensor, show } from "./numbers.js";

const shapeText = shape => shape.length === 1 ? `list of ${shape[0]}` : shape.join("×");

// Round numbers at least twice as far out as the value: 700 -> ±2000, 0.003 -> ±0.01.
function rangeFor(value) {
  const size = Math.abs(value);
  if (size === 0 || (size >= 0.5 && size <= 5)) return [-5, 5];
  const power = 10 ** Math.floor(Math.log10(2 * size)),
        round = [1, 2, 5, 10].map(m => Number((m * power).toPrecision(1)));
  const reach = round.find(r => r >= 2 * size) ?? 20 * power;
  return [-reach, reach];
}

// Is the value outside of the slider's range, or so near 0 that the slider could not tell?
const misfits = (input, value) => input.least === undefined || value < input.least || value > input.most ||
  (input.typed && value !== 0 && Math.abs(value) < (input.most - input.least) / 200);

// rather its shape than its text
const isLong = text => text.length > (text.trim().startsWith("[[") ? 14 : 24);

export class InputForm {
  constructor(frame, onChange) {
    this.frame = frame;
    this.onChange = onChange;
    this.rows = new Map();
  }

  // Rows for these inputs; kept when the names are the same, so that a slider in use is not
  // replaced.
  set(inputs) {
    this.rows.clear();
    this.frame.replaceChildren(...inputs.map(input => this.row(input, inputs.length > 1)));
  }

  row(input, choice) {
    const id = `input-${input.name}`, long = isLong(input.text);
    const field = el(long ? "textarea" : "input", {
      type: long ? null : "text",
      id,
      rows: long ? 4 : null,
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      oninput: () => {
        input.text = field.value;
        input.typed = true;
        this.onChange(true);
      }
    });
    field.value = input.text;
    const slider = el("input", {
      type: "range",
      "aria-label": `${input.name}, slider`,
      step: "any",
      hidden: true,
      oninput: () => {
        const digits = Math.max(2, 2 - Math.floor(Math.log10((slider.max - slider.min) / 4)));
        input.text = String(Number(Number(slider.value).toFixed(digits)));
        input.typed = false;
        field.value = input.text;
        this.onChange();
      }
    });
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
    const tick = el("label", { class: "wrt", title: "Differentiate by this input?" }, wrt,
      el("span", { "aria-hidden": "true" }, "∂"));
    const row = { input, slider, field };
    this.rows.set(input.name, row);
    const label = el("label", { for: id }, input.name);
    if (!long) return el("div", { class: "input" }, label, field, slider, choice ? tick : null);
    // Many numbers: only what they are, until someone wants to change them.
    row.summary = el("span", { class: "summary" });
    const edit = el("button", {
      type: "button",
      class: "plain small",
      "aria-expanded": "false",
      "aria-controls": id,
      onclick: () => {
        field.hidden = !field.hidden;
        edit.textContent = field.hidden ? "Edit" : "Done";
        edit.setAttribute("aria-expanded", String(!field.hidden));
        frame.classList.toggle("open", !field.hidden);
        if (!field.hidden) field.focus();
      }
    },
      "Edit");
    edit.setAttribute("aria-label", `Edit ${input.name}`);
    field.hidden = true;
    const frame = el("div", { class: "input long" }, label, row.summary, edit, choice ? tick : null, field);
    return frame;
  }

  // What the engine made of the texts: sliders follow, for numbers.
  follow(tape) {
    for (const { node, name } of tape.trace.inputs) {
      const row = this.rows.get(name), value = tape.node(node)?.value;
      if (!row) continue;
      if (row.summary) row.summary.textContent = isTensor(value) ? shapeText(tape.node(node).shape) : show(value);
      const scalar = typeof value === "number";
      row.slider.hidden = !scalar;
      if (!scalar || document.activeElement === row.slider) continue;
      const { input, slider } = row;
      if (misfits(input, value)) [input.least, input.most] = rangeFor(value);
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
      return [
        el("dt", null, name),
        el("dd", null, isTensor(value) ? tape.node(node).shape.join("×") + " " : "", show(value))
      ];
    })));
  }
}

// fresh: nobody has said what it is
export const defaultInput = (name, text = "1") => ({ name, text, wrt: true, fresh: true });
