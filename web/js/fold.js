// fold.js: the card of the function folds into a line with the first step, so that the graph has
// the screen; who opens it again keeps it open.
import { $ } from "./dom.js";
import { isTensor, show, showShape } from "./numbers.js";

// Of an array its numbers where they are few, else its size, without an "=".
const inLine = node => isTensor(node.value) && (node.shape.length > 1 || node.shape[0] > 6)
  ? `${node.name}: ${showShape(node.shape)}` : `${node.name} = ${show(node.value)}`;

export class Fold {
  // onFold(): there is more room now, or less
  constructor(onFold) {
    Object.assign(this, { onFold, folded: false, open: false });
    $("fold").addEventListener("click", () => {
      this.open = this.folded;
      this.set(!this.folded);
    });
  }

  set(folded) {
    if (this.folded === folded) return;
    this.folded = folded;
    document.body.classList.toggle("folded", folded);
    $("fold").setAttribute("aria-expanded", String(!folded));
    $("fold-text").textContent = folded ? "Change" : "Fold";
    this.onFold();
  }

  look({ tape, steps }) {
    if (tape !== this.tape) {
      this.tape = tape;
      $("folded").textContent = tape.trace.expression.slice(0, 400).replaceAll("\n", "; ");
      $("given").textContent = tape.trace.inputs.map(i => inLine(tape.node(i.node))).join(", ");
    }
    // on a phone at once: the first screen has room for the card or for the picture
    if (!this.open && (innerWidth < 640 || Object.values(steps).some(step => step > 0))) this.set(true);
  }

  // A link to a first step shows the function; "open" is kept.
  recall({ card }) {
    this.open = card === "open";
    this.set(false);
  }

  fields() { return { card: this.open ? "open" : "" }; }
}
