// notes.js: a note on any node, kept in this browser. It belongs to the node of this text: another
// function has notes of its own.
import { $, el } from "./dom.js";
import { keepHere, recallHere } from "./store.js";

export class Notes {
  // onMark(ids): these nodes have a note
  constructor(onMark) {
    this.onMark = onMark;
    this.all = recallHere("notes", {});
    $("note-node").addEventListener("change", () => this.show(Number($("note-node").value)));
    $("note-text").addEventListener("input", () => {
      const key = this.keyOf(this.node), text = $("note-text").value;
      if (text.trim()) this.all[key] = text;
      else delete this.all[key];
      keepHere("notes", this.all);
      this.list();
    });
  }

  keyOf(id) { return `${this.tape.trace.expression}\n${this.tape.label(id)}`; }

  look({ tape, view }) {
    if (tape !== this.tape) {
      this.tape = tape;
      $("note-node").replaceChildren(...tape.nodes.slice(0, 400).map(n => el("option", { value: n.id },
        tape.isSource(n) ? tape.label(n.id) : `${tape.label(n.id)} = ${tape.written(n, true)}`)));
    }
    this.show(view.current ?? tape.nodes[0].id);
  }

  show(id) {
    this.node = id;
    $("note-node").value = String(id);
    $("note-text").value = this.all[this.keyOf(id)] ?? "";
    this.list();
  }

  // Which nodes of this tape have one.
  list() {
    // by the few notes, not by the nodes: every key has the whole text in it
    const start = `${this.tape.trace.expression}\n`;
    const labels = new Set(Object.keys(this.all).filter(k => k.startsWith(start)).map(k => k.slice(start.length)));
    const noted = labels.size ? this.tape.nodes.filter(n => labels.has(this.tape.label(n.id))) : [];
    $("note-list").textContent = noted.length ? `Notes on ${noted.map(n => this.tape.label(n.id)).join(", ")}.` : "";
    $("note").classList.toggle("noted", noted.length > 0);
    this.onMark(new Set(noted.map(n => n.id)));
  }
}
