// frame.js: a window on a picture: all of it, or a part, chosen by wheel, keys, fingers and
// buttons. It knows sizes and a camera, nothing of what is drawn.
import { $, isForOthers } from "./dom.js";

const largestScale = 4; // times as large as written
const finest = 1.25; // a step of zooming

export class Frame {
  // onMove(seen): another part is seen; onOwn(): somebody chose it
  constructor(element, onMove, onOwn) {
    Object.assign(this, { element, onMove, onOwn, picture: { width: 1, height: 1 }, own: false, fitScale: 1 });
    this.camera = { x: 0, y: 0, scale: 1 };
    this.fingers = new Map();
    element.addEventListener("wheel", e => this.wheel(e), { passive: false });
    element.addEventListener("pointerdown", e => this.down(e));
    element.addEventListener("pointermove", e => this.drag(e));
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      element.addEventListener(end, e => this.fingers.delete(e.pointerId));
    element.addEventListener("click", e => { if (this.dragged) e.stopPropagation(); }, { capture: true });
    document.addEventListener("keydown", e => this.key(e));
    $("zoom-in").addEventListener("click", () => this.zoom(finest));
    $("zoom-out").addEventListener("click", () => this.zoom(1 / finest));
    $("zoom-fit").addEventListener("click", () => this.fit(true));
  }

  // A picture of this size, in a window of that size, in pixels; scale: that of the whole picture,
  // or of as much as can be read.
  set(image, picture, size, scale) {
    Object.assign(this, { image, picture, size, fitScale: scale });
    image.setAttribute("width", size.width);
    image.setAttribute("height", size.height);
    this.fit(false);
  }

  fit(byHand) {
    this.own = false;
    this.camera = { x: this.picture.width / 2, y: this.picture.height / 2, scale: this.fitScale };
    this.moved(byHand);
  }

  // What is seen, in the picture's coordinates.
  get seen() {
    const { x, y, scale } = this.camera, width = this.size.width / scale, height = this.size.height / scale;
    return { left: x - width / 2, top: y - height / 2, right: x + width / 2, bottom: y + height / 2, width, height };
  }

  get seesAll() {
    const { width, height } = this.seen;
    return width >= this.picture.width - 1 && height >= this.picture.height - 1;
  }

  moved(byHand) {
    const keep = (middle, seen, whole) =>
      seen >= whole ? whole / 2 : Math.max(seen / 2, Math.min(middle, whole - seen / 2));
    this.camera.x = keep(this.camera.x, this.size.width / this.camera.scale, this.picture.width);
    this.camera.y = keep(this.camera.y, this.size.height / this.camera.scale, this.picture.height);
    const { left, top, width, height } = this.seen;
    this.image.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
    this.element.classList.toggle("part", !this.seesAll);
    $("zoom-level").textContent = `${Math.round(100 * this.camera.scale)} %`;
    this.onMove(this.seen);
    if (byHand) this.onOwn();
  }

  // around a place of the window, its middle unless told
  zoom(factor, px = this.size.width / 2, py = this.size.height / 2) {
    const { x, y, scale } = this.camera, least = Math.min(this.fitScale, 0.3);
    const next = Math.max(least, Math.min(scale * factor, largestScale));
    const dx = px - this.size.width / 2, dy = py - this.size.height / 2;
    this.camera = { x: x + dx / scale - dx / next, y: y + dy / scale - dy / next, scale: next };
    this.own = Math.abs(next / this.fitScale - 1) > 0.01;
    this.moved(true);
  }

  pan(dx, dy) {
    this.camera.x += dx / this.camera.scale;
    this.camera.y += dy / this.camera.scale;
    this.own = true;
    this.moved(true);
  }

  // Moves only when the place is not well inside.
  follow({ left, top, right, bottom }) {
    const seen = this.seen, room = 0.08;
    const inside = left >= seen.left + room * seen.width && right <= seen.right - room * seen.width &&
      top >= seen.top + room * seen.height && bottom <= seen.bottom - room * seen.height;
    if (inside || this.seesAll) return;
    this.camera.x = (left + right) / 2;
    this.camera.y = (top + bottom) / 2;
    this.moved(false);
  }

  wheel(e) {
    const still = document.body.classList.contains("present"); // nothing to scroll there
    if (e.ctrlKey || e.metaKey || still) {
      const { left, top } = this.image.getBoundingClientRect();
      const by = Math.max(-100, Math.min(e.deltaY, 100)); // wheels differ much
      this.zoom(Math.exp(-by / 400), e.clientX - left, e.clientY - top);
    } else if (!this.seesAll && this.own)
      this.pan(e.shiftKey ? e.deltaY : e.deltaX, e.shiftKey ? 0 : e.deltaY);
    else return;
    e.preventDefault();
  }

  down(e) {
    this.fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.dragged = false;
  }

  drag(e) {
    const from = this.fingers.get(e.pointerId);
    if (!from) return;
    const to = { x: e.clientX, y: e.clientY }, [other] = [...this.fingers].filter(([id]) => id !== e.pointerId);
    if (!this.dragged && Math.hypot(to.x - from.x, to.y - from.y) < 5 && !other) return;
    this.fingers.set(e.pointerId, to);
    if (other) { // two fingers: apart is larger
      const still = other[1], apart = p => Math.max(1, Math.hypot(p.x - still.x, p.y - still.y));
      const { left, top } = this.image.getBoundingClientRect();
      this.zoom(apart(to) / apart(from), (to.x + still.x) / 2 - left, (to.y + still.y) / 2 - top);
    } else if (!this.seesAll && (e.pointerType === "mouse" || this.own))
      this.pan(from.x - to.x, from.y - to.y);
    this.dragged = true;
  }

  key(e) {
    if (isForOthers(e) || $("stage").hidden) return;
    const by = 80, arrows = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] };
    const action = { "+": () => this.zoom(finest), "=": () => this.zoom(finest), "-": () => this.zoom(1 / finest),
      "0": () => this.fit(true) }[e.key] ?? (e.shiftKey && arrows[e.key] ? () => this.pan(...arrows[e.key]) : null);
    if (!action) return;
    e.preventDefault();
    action();
  }

  // Zoom and place as a text, or "" for all; and back. Places are parts of the picture.
  get asText() {
    const { x, y, scale } = this.camera, part = v => String(Number(v.toFixed(3)));
    return this.own ? [scale / this.fitScale, x / this.picture.width, y / this.picture.height].map(part).join(",") : "";
  }

  set asText(text) {
    const [zoom, x, y] = (text ?? "").split(",").map(Number);
    if (!(zoom > 0 && x >= 0 && x <= 1 && y >= 0 && y <= 1)) return;
    this.camera = { x: x * this.picture.width, y: y * this.picture.height,
      scale: Math.max(0.05, Math.min(zoom * this.fitScale, largestScale)) };
    this.own = true;
    this.moved(false);
  }
}
