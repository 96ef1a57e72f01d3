// play.js: steps that follow each other by themselves, at a speed to choose.
import { $ } from "./dom.js";

const pause = 1100; // milliseconds of a step at speed 1

export class Player {
  // advance(): takes a step, and says whether there is another one behind it
  constructor(advance, onSpeed = () => {}) {
    this.advance = advance;
    this.timer = null;
    this.speed = 1;
    $("speed").addEventListener("change", () => {
      this.setSpeed($("speed").value);
      onSpeed();
    });
  }

  setSpeed(text) {
    this.speed = [...$("speed").options].some(o => o.value === text) ? Number(text) : 1;
    $("speed").value = String(this.speed);
    if (this.playing) this.start();
  }

  get playing() { return this.timer !== null; }

  start() {
    this.stop();
    $("play-text").textContent = "Pause";
    this.timer = setInterval(() => { if (!this.advance()) this.stop(); }, pause / this.speed);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    $("play-text").textContent = "Play";
  }
}
