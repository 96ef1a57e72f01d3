// rewind.js: the sweep of a checkpointed loop, event by event: which states are kept, which steps
// run again, which are reversed. The schedule is the engine's.
import { el, svg } from "./dom.js";

const mostShown = 64; // steps: more would be too small to see

// The schedule, a step at a time: [{what, step, again}], with the states that are kept after each.
export function eventsOf(schedule) {
  const events = [], seen = new Set();
  let kept = new Set([0]);
  for (const [what, from, end] of schedule) {
    for (let step = from; step < (what === "run" ? end : from + 1); step++) {
      const again = what === "run" && seen.has(step);
      if (what === "run") seen.add(step);
      if (what === "keep") kept = new Set([...kept, step]);
      if (what === "back") kept = new Set([...kept].filter(k => k < step));
      events.push({ what, step, again, kept });
    }
  }
  return events;
}

const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

const words = {
  run: e => `Step ${e.step + 1} runs${e.again ? " again, to get back a state that was not kept" : ""}.`,
  keep: e => `The state before step ${e.step + 1} is kept.`,
  back: e => `Step ${e.step + 1} is played once more and reversed. Its state is not needed any longer.`,
};

export class Rewind {
  constructor() {
    this.at = 0;
    this.events = [];
    this.timer = null;
    this.picture = el("div", { class: "scroll rewind", tabindex: 0, role: "region",
      "aria-label": "States of the loop" });
    this.said = el("p", { id: "rewind-said", role: "status" });
    this.range = el("input", { type: "range", id: "rewind-at", min: 0, step: 1, "aria-label": "Event of the schedule",
      oninput: () => this.go(Number(this.range.value)) });
    const button = (id, text, go) => el("button", { type: "button", class: "plain small", id, onclick: go }, text);
    this.playButton = button("rewind-play", "Play", () => this.play());
    this.frame = el("div", { class: "rewinding" }, el("h3", null, "The binomial schedule at work"),
      el("p", { class: "about" }, "A square is the state before a step, with a green edge while it is kept. Blue " +
        "runs, orange is reversed."), this.picture, this.said,
      el("div", { class: "row" }, button("rewind-reset", "Reset", () => this.go(0)),
        button("rewind-step", "Step", () => this.go(this.at + 1)), this.playButton, this.range));
  }

  set(cost) {
    this.stop();
    this.depth = cost.depth;
    this.states = cost.states;
    const shown = cost.schedule && cost.depth <= mostShown;
    this.frame.hidden = !shown;
    this.events = shown ? eventsOf(cost.schedule) : [];
    this.range.max = this.events.length;
    this.at = Math.min(this.at, this.events.length);
    this.draw();
  }

  go(at) {
    this.stop();
    this.move(at);
  }

  move(at) {
    this.at = Math.max(0, Math.min(at, this.events.length));
    this.draw();
  }

  play() {
    if (this.timer) return this.stop();
    if (this.at === this.events.length) this.at = 0;
    this.playButton.textContent = "Pause";
    this.timer = setInterval(() => {
      this.move(this.at + 1);
      if (this.at === this.events.length || !this.frame.checkVisibility()) this.stop();
    }, 350);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = "Play";
  }

  draw() {
    const { depth, events, at } = this, size = 26, gap = 6, done = events.slice(0, at), last = done.at(-1);
    const kept = last?.kept ?? new Set([0]);
    const runs = done.filter(e => e.what !== "keep").length, again = done.filter(e => e.again).length;
    const reversed = new Set(done.filter(e => e.what === "back").map(e => e.step));
    // as many in a row as there is room for
    const across = Math.max(4, Math.floor((this.picture.clientWidth || 800) / (size + gap)) - 1), line = 58;
    const x = k => k % across * (size + gap) + 2, y = k => Math.floor(k / across) * line;
    const boxes = Array.from({ length: depth }, (_, k) => {
      const acts = last && last.step === k ? last.what : "";
      const name = ["state", kept.has(k) && "kept", reversed.has(k) && "reversed", acts && `acts ${acts}`]
        .filter(x => x).join(" ");
      return [svg("rect", { class: name, x: x(k), y: y(k) + 8, width: size, height: size, rx: 5, "data-step": k }),
        svg("text", { x: x(k) + size / 2, y: y(k) + 52, "text-anchor": "middle" }, String(k + 1))];
    });
    const width = Math.min(depth, across) * (size + gap) + 4, height = y(depth - 1) + line;
    this.picture.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" },
      svg("title", null, `${depth} states, ${kept.size} kept`), boxes));
    this.range.value = at;
    this.range.setAttribute("aria-valuetext", `event ${at} of ${events.length}`);
    this.said.textContent = last ? `${words[last.what](last)} So far ${counted(runs, "run")}, ${again} of them ` +
      `again; ${counted(kept.size, "state")} ${kept.size === 1 ? "is" : "are"} held.`
      : "Nothing has run yet. The first state is given.";
  }
}
