// stepper.js: the bar of buttons: step, back, reset, play, scrub, and their keys. It knows a
// position and a number of steps, nothing else.
import { $, isForOthers } from "./dom.js";
import { Player } from "./play.js";

export class Stepper {
  constructor(onMove, onSpeed) {
    this.at = 0;
    this.count = 0;
    this.off = false;
    this.onMove = onMove;
    this.player = new Player(() => this.advance(), onSpeed);
    $("step").addEventListener("click", () => this.next());
    $("back").addEventListener("click", () => this.to(this.at - 1));
    $("reset").addEventListener("click", () => this.to(0));
    $("play").addEventListener("click", () => this.play());
    $("scrub").addEventListener("input", () => this.to(Number($("scrub").value)));
    document.addEventListener("keydown", e => this.key(e));
  }

  // A new tape or mode; the position is kept within bounds. word: what the button says; beyond:
  // what it does after the last step, {word, name, go(), plays}, or null: `name` is the class of
  // the button then, `plays` says whether playing goes on there.
  set(count, at, word, beyond = null) {
    this.pause();
    this.word = word;
    this.beyond = beyond;
    this.name = $("step").className;
    this.count = count;
    this.at = Math.max(0, Math.min(at, count));
    $("scrub").max = count;
    this.show();
  }

  // While there is an error, what is shown is old: nothing moves.
  enable(on) {
    this.off = !on;
    if (this.off) this.pause();
    $("scrub").disabled = this.off;
    this.show();
  }

  to(at) {
    this.pause();
    if (this.off) return;
    this.move(at);
  }

  move(at) {
    at = Math.max(0, Math.min(at, this.count));
    if (at === this.at) return this.show();
    this.at = at;
    this.show();
    this.onMove(at);
  }

  next() {
    if (this.at < this.count || !this.beyond || this.off) return this.to(this.at + 1);
    this.pause();
    this.beyond.go();
  }

  // One step of playing; whether there is more to play.
  advance() {
    if (this.at < this.count) this.move(this.at + 1);
    else if (this.beyond?.plays) {
      this.beyond.go();
      this.player.start();
    }
    return this.at < this.count || !!this.beyond?.plays;
  }

  show() {
    const ended = this.at === this.count && this.count > 0 && this.beyond ? this.beyond : null;
    $("step-text").textContent = ended ? ended.word : this.word ?? "Step";
    $("step").className = ended ? `step ${ended.name}` : this.name;
    $("scrub").value = this.at;
    $("scrub").setAttribute("aria-valuetext", `step ${this.at} of ${this.count}`);
    $("scrub-label").textContent = `Step ${this.at} of ${this.count}`;
    // Not disabled: that would take the focus away from who steps by keyboard.
    const atStart = this.at === 0,
          ends = { step: this.at === this.count && !ended, back: atStart, reset: atStart, play: this.count === 0 };
    for (const [id, off] of Object.entries(ends))
      $(id).setAttribute("aria-disabled", String(off || this.off));
  }

  pause() { this.player.stop(); }

  play() {
    if (this.player.playing) return this.pause();
    if (this.off || this.count === 0) return;
    if (this.at === this.count && !this.beyond?.plays) this.move(0);
    this.player.start();
  }

  key(e) {
    if (isForOthers(e) || e.shiftKey || $("stage").hidden) return;
    const action = {
      ArrowRight: () => this.next(),
      ArrowLeft: () => this.to(this.at - 1),
      Home: () => this.to(0),
      End: () => this.to(this.count),
      p: () => this.play()
    }[e.key];
    if (!action || (e.key.startsWith("Arrow") && e.target.closest("[role=tab]"))) return;
    e.preventDefault();
    action();
  }
}
