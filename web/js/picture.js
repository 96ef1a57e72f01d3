// picture.js: the graph in its frame: how much room there is, which plan suits it, and the frame
// following the steps.
import { $ } from "./dom.js";
import { Frame } from "./frame.js";
import { Graph } from "./graph.js";
import { bestPlan, holds, mostTried, scaleIn } from "./plan.js";

const readable = 0.85; // a scale at which a part of a large picture is shown

export class Picture {
  constructor(onPick, onOwn) {
    this.element = $("graph");
    this.onPick = onPick;
    this.graph = null;
    this.frame = new Frame(this.element, seen => this.graph?.look(seen, this.frame.camera.scale), onOwn);
  }

  // Draws a new tape, or the same one in another room.
  draw(tape) {
    const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    this.element.replaceChildren(); // its room is that without it
    const { plan, room } = bestPlan(tape, this.rooms(letters, tape));
    $("stage").classList.toggle("wide", room.wide);
    // the room may differ a little from what was foreseen
    const now = { ...room, width: this.element.clientWidth, ...(room.wide ? {} : { height: this.room(false) }) };
    now.narrow &&= !document.body.classList.contains("present");
    const all = scaleIn(plan, now), large = tape.nodes.length > mostTried && all < readable * letters;
    const most = (document.body.classList.contains("present") ? 2.4 : now.narrow ? 1 : 1.35) * letters;
    const scale = large ? readable * letters : Math.min(all, most);
    const height = large ? now.height : Math.ceil(Math.min(plan.height * scale, now.narrow ? Infinity : now.height));
    // as it was seen before, or as a link has it
    const part = this.wanted || (tape === this.graph?.tape ? this.frame.asText : "");
    this.graph = new Graph(tape, plan, this.onPick);
    this.element.replaceChildren(this.graph.image);
    this.frame.set(this.graph.image, plan, { width: now.width, height }, scale);
    this.frame.asText = part;
    this.height = this.element.clientHeight;
    this.still = part !== ""; // a part that was asked for stays, until the next step
    this.at = undefined;
    this.wanted = "";
  }

  // Beside the text of the step, or across the whole page, where that shows it larger.
  rooms(letters, tape) {
    const stage = $("stage"), was = stage.classList.contains("wide"), narrow = innerWidth < 640;
    const measured = [false, true].map(wide => {
      stage.classList.toggle("wide", wide);
      const width = this.element.clientWidth, height = this.room(wide);
      return { wide, narrow, letters, worth: wide ? 0.92 : 1, width, height };
    });
    stage.classList.toggle("wide", was);
    if (innerWidth < 1000 || document.body.classList.contains("present")) return measured.slice(0, 1);
    return tape.nodes.length > mostTried ? measured.slice(1) : measured;
  }

  // The height from here to the end of the screen, with room for the text of the step if that is
  // below.
  room(wide) {
    if (document.body.classList.contains("present")) return this.element.clientHeight;
    const top = this.element.getBoundingClientRect().top + scrollY, below = wide ? 26 : 76;
    if (innerWidth < 640) return 0.62 * innerHeight;
    return Math.max(innerHeight - top - below - (wide ? 165 : 0), (wide ? 0.385 : 0.42) * innerHeight);
  }

  // Only numbers differ: the boxes stay where they are, unless a number is too long for its box.
  replace(tape) {
    if (!holds(this.graph.plan, tape)) return this.draw(tape);
    this.graph.tape = tape;
  }

  look({ view }) {
    // on the whole screen what stands above may have become higher
    if (document.body.classList.contains("present") && this.element.clientHeight < this.height)
      this.draw(this.graph.tape);
    this.graph.light(view);
    const place = this.graph.place(view), moves = view.current !== this.at && !this.still;
    this.at = view.current;
    this.still = false;
    if (place && moves) this.frame.follow(place);
  }

  fields() { return { zoom: this.frame.asText }; }
  recall({ zoom }) { this.wanted = zoom ?? ""; }
}
