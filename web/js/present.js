// present.js: for a projector: the graph, the step and the buttons, on the whole screen and large;
// keys walk and go on to the next example.
import { $, isForOthers } from "./dom.js";

export class Present {
  // onChange(): the room is another one
  constructor(onChange) {
    Object.assign(this, { onChange, on: false, asked: false });
    $("present").addEventListener("click", () => this.set(true, true));
    $("present-end").addEventListener("click", () => this.set(false, true));
    document.addEventListener("keydown", e => this.key(e));
    // A browser takes Escape for itself, and may leave the whole screen before it has said that it
    // is there: so what counts is that it was asked for.
    document.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement && this.on && this.asked) this.set(false, false);
    });
  }

  // whole: the whole screen too, which a browser grants to a click or a key only
  set(on, whole) {
    if (this.on === on) return;
    this.on = on;
    document.body.classList.toggle("present", on);
    $("present-bar").hidden = !on;
    if (whole && on) this.fill();
    if (whole && !on && document.fullscreenElement) document.exitFullscreen().catch(() => {});
    this.onChange();
    (on ? $("step") : $("present")).focus({ preventScroll: true });
  }

  // The whole screen, where the browser grants it. Who leaves meanwhile leaves both.
  async fill() {
    try {
      this.asked = true;
      await document.documentElement.requestFullscreen();
      if (!this.on) await document.exitFullscreen();
    } catch {
      this.asked = false;
    }
  }

  key(e) {
    if (isForOthers(e) || $("stage").hidden) return;
    const always = { f: () => this.set(!this.on, true) };
    const there = { Escape: () => this.set(false, true), n: () => this.example(1), b: () => this.example(-1) };
    const action = always[e.key] ?? (this.on ? there[e.key] : null);
    if (!action) return;
    e.preventDefault();
    action();
  }

  // The next example of the list, or the one before.
  example(by) {
    const list = $("preset"), options = [...list.options].filter(o => o.value);
    const at = options.findIndex(o => o.value === list.value);
    list.value = options[(at + by + options.length) % options.length].value;
    list.dispatchEvent(new Event("change"));
  }

  look() {
    const list = $("preset");
    $("present-title").textContent = list.value ? list.selectedOptions[0]?.textContent ?? "" : "";
  }

  fields() { return { present: this.on ? "1" : "" }; }
  recall({ present }, isLink) { if (isLink) this.set(present === "1", false); }
}
