// registers.js: the table of the tape. Rows are kept from step to step and only texts that differ
// are written, since a tape may be long; of a very long one the rows around the step are there.
import { el } from "./dom.js";
import { inTable } from "./numbers.js";

const near = 150; // rows before and behind the step

export class RegistersTable {
  constructor(table) {
    this.head = el("tr");
    this.body = el("tbody");
    this.rows = new Map();
    table.replaceChildren(el("thead", null, this.head), this.body);
  }

  look({ tape, walk, view, step }) {
    if (tape !== this.tape || walk !== this.walk) this.begin(tape, walk);
    const at = Math.max(0, tape.place.get(view.current) ?? 0), first = Math.max(0, at - near);
    const shown = tape.nodes.slice(first, at + near), ids = new Set(shown.map(n => n.id));
    for (const [id, row] of this.rows)
      if (!ids.has(id)) {
        row.element.remove();
        this.rows.delete(id);
      }
    let before = null;
    for (const node of shown) {
      let row = this.rows.get(node.id);
      if (!row) {
        row = this.row(node);
        this.rows.set(node.id, row);
        before ? before.after(row.element) : this.body.prepend(row.element);
      }
      before = row.element;
      this.fill(row, node, view, step);
    }
  }

  begin(tape, walk) {
    Object.assign(this, { tape, walk });
    this.rows.clear();
    this.body.replaceChildren();
    const titles = ["Register", "Made by", "Value", walk.column.title];
    this.head.replaceChildren(...titles.map((title, k) =>
      el("th", { scope: "col", class: k === 2 ? "value" : null }, title)));
  }

  row(node) {
    const value = el("td", { class: "number value" }), last = el("td", { class: "number adjoint" });
    const element = el("tr", { "data-node": node.id }, el("th", { scope: "row" }, this.tape.label(node.id)),
      el("td", null, this.tape.written(node)), value, last);
    return { element, value, last, seen: "" };
  }

  fill(row, node, view, step) {
    const value = view.lit(node) ? inTable(node.value, node.shape) : "";
    const { text, number, done } = this.walk.column.of(this.tape, node, view);
    const current = node.id === view.current && (step > 0 || view.mode === "reverse");
    const seen = `${value}|${text}|${number}|${done}|${current}`;
    if (seen === row.seen) return;
    row.seen = seen;
    row.value.textContent = value;
    row.last.textContent = text;
    row.last.classList.toggle("done", !!done);
    row.element.classList.toggle("current", current);
    if (number === null || number === undefined) delete row.last.dataset.adjoint;
    else row.last.dataset.adjoint = number;
  }
}
