// page.js: the page itself: a state (what to compute), a view (what to look at), and everything
// redrawn from the two.
import { Answer } from "./answer.js";
import { Code } from "./code.js";
import { CostPanel } from "./cost.js";
import { $, calm, el } from "./dom.js";
import { End } from "./end.js";
import { loadEngine, Tracer } from "./engine.js";
import { offerFiles } from "./export.js";
import { Fold } from "./fold.js";
import { Guesses } from "./guess.js";
import { defaultInput, InputForm } from "./inputs.js";
import { Lessons, lessons, placeOf } from "./lessons.js";
import { fragmentOf, readFragment } from "./link.js";
import { inputNames, productInputs } from "./names.js";
import { Notes } from "./notes.js";
import { Picture } from "./picture.js";
import { Present } from "./present.js";
import { presets, stateOf } from "./presets.js";
import { ProgramPanel } from "./program.js";
import { RegistersTable } from "./registers.js";
import { inPageWords, refusal } from "./refuse.js";
import { errorParts, marked } from "./source.js";
import { Stepper } from "./stepper.js";
import { Tape } from "./tape.js";
import { nextMoving, setMoving, Tangents } from "./tangents.js";
import { isWalk, walks } from "./walks.js";

// Who comes without a link begins with the first lesson.
const atFirst = () => ({ state: stateOf(presets.find(p => p.id === lessons[0].id)),
  view: { mode: "forward", step: 0 } });

const firstSteps = () => Object.fromEntries(Object.keys(walks).map(name => [name, 0]));

const page = {
  state: null,
  tape: null,
  view: { mode: "forward", step: firstSteps() },

  start() {
    this.stepper = new Stepper(at => {
      if (!isWalk(this.view.mode)) return;
      this.view.step[this.view.mode] = at;
      this.look();
      this.bringIntoView();
    }, () => this.remember());
    // A panel has look(at), called after every step: {tape, state, mode, walk, step, last, steps,
    // view}; one with `everywhere` also where there is no walk. It may have fields(), texts to be
    // kept in the address, and recall(fields, isLink), called for every new function.
    this.picture = new Picture(id => this.pick(id), () => this.remember());
    const redraw = () => {
      this.fit(); // a field that was hidden has no height
      this.unsized = $("stage").hidden; // then it has no room, and is drawn when it is seen
      if (this.tape && !this.unsized) this.picture.draw(this.tape);
    };
    const present = new Present(() => {
      redraw();
      if (this.tape && isWalk(this.view.mode)) this.look();
    });
    this.panels = [new Fold(redraw), new Answer(), new RegistersTable($("registers")), present, this.picture,
      this.end = new End(mode => this.walk(mode), id => this.openPreset(id))];
    if (!RECORDED)
      this.panels.unshift(this.lessons = new Lessons(id => this.openPreset(id), text => this.rewrite(text)));
    offerFiles(() => this.picture.graph.image,
      () => `${$("preset").value || "tape"}-${this.view.mode}-${this.stepper.at}`);
    this.panels.push(new Guesses(() => this.stepper.to(this.stepper.at + 1)),
      new Notes(ids => this.picture.graph?.note(ids)),
      new Tangents(name => this.walkAlong(name)), new Code());
    this.cost = new CostPanel($("cost"), () => this.remember());
    this.panels.push(this.cost);
    this.program = new ProgramPanel($("program"), () => this.remember());
    this.form = new InputForm($("inputs"), typed => this.change(typed));
    for (const tab of document.querySelectorAll("[role=tab]"))
      tab.addEventListener("click", e => {
        this.choose(tab.dataset.mode);
        // by mouse: arrow keys step then
        if (e.detail > 0 && isWalk(tab.dataset.mode)) $("step").focus({ preventScroll: true });
      });
    document.querySelector("[role=tablist]").addEventListener("keydown", e => this.tabKey(e));
    let width = innerWidth;
    addEventListener("resize", () => { // phones resize in height while they scroll
      if (innerWidth === width) return;
      width = innerWidth;
      this.fit();
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  },

  // ---- with the engine --------------------------------------------------------------------------

  async startLive() {
    this.start();
    const groups = new Map();
    for (const p of presets)
      groups.set(p.group, [...(groups.get(p.group) ?? []), el("option", { value: p.id }, p.title)]);
    $("preset").append(...[...groups].map(([label, options]) => el("optgroup", { label }, options)),
      el("option", { value: "" }, "Your own"));
    $("preset").addEventListener("change", () => {
      const mode = this.view.mode === "cost" ? "forward" : this.view.mode;
      if ($("preset").value) this.openPreset($("preset").value, mode);
    });
    $("expression").addEventListener("input", () => this.edited());
    $("seed").addEventListener("input", () => {
      this.state.seed = $("seed").value;
      this.change(true);
    });
    $("share").addEventListener("click", () => this.share());
    this.tracer = new Tracer((trace, state) => this.answer(trace, state), busy => this.waiting(busy));
    $("stop").addEventListener("click", () => {
      this.tracer.stop();
      this.fail({ message: "Stopped. Change the function or an input to compute again." });
    });
    addEventListener("hashchange", () => {
      if (location.hash !== this.written) this.open(readFragment(location.hash) ?? atFirst());
    });
    await loadEngine(WASM);
    this.open(readFragment(location.hash) ?? atFirst());
  },

  // more: the further fields of a link; none where only another function is chosen.
  open({ state, view, more }) {
    this.state = state;
    const preset = presets.find(p => p.id === state.preset) ?? presets.find(p => p.expression === state.expression);
    if (preset && !state.preset) // a link to an example with other numbers: sliders as there
      for (const input of state.inputs) [, input.least, input.most] = [preset.inputs[input.name]].flat();
    $("preset").value = preset?.id ?? "";
    $("about").textContent = preset?.about ?? "";
    $("expression").value = state.expression;
    $("seed").value = state.seed;
    this.addInputs();
    this.form.set(state.inputs);
    this.view.mode = view.mode;
    this.view.step = { ...firstSteps(), [view.mode]: view.step };
    if (more) this.stepper.player.setSpeed(more.speed);
    for (const panel of this.panels) panel.recall?.(more ?? {}, more !== undefined);
    this.program.set(view.of);
    if (view.n) this.cost.set({ n: view.n, m: view.m });
    this.compute();
  },

  // An example from its beginning.
  openPreset(id, mode = "forward") {
    this.open({ state: stateOf(presets.find(p => p.id === id)), view: { mode, step: 0 } });
    scrollTo({ top: 0 });
  },

  // Another text for the function, as if somebody had typed it.
  rewrite(text) {
    $("expression").value = text;
    this.edited();
  },

  edited() {
    this.state.expression = $("expression").value;
    this.state.preset = null;
    $("preset").value = "";
    $("about").textContent = "";
    this.addInputs(true);
    this.change(true);
  },

  // A row for each name in the expression; texts of those that were there stay.
  addInputs(redraw) {
    const names = inputNames(this.state.expression);
    const had = new Map([...(this.forgotten ?? []), ...this.state.inputs].map(i => [i.name, i]));
    // a product begins with small matrices, where nothing else was typed
    const made = productInputs(this.state.expression), untouched = i => i.fresh && !i.typed && i.text === "1";
    const stays = n => had.has(n) && !(made.has(n) && untouched(had.get(n)));
    const inputs = names.map(n => stays(n) ? had.get(n) : defaultInput(n, made.get(n)));
    if (inputs.length === this.state.inputs.length && inputs.every((i, k) => i === this.state.inputs[k])) return;
    this.forgotten = [...had.values()];
    this.state.inputs = inputs;
    if (redraw) this.form.set(this.state.inputs);
  },

  // Something changed; what is typed may not be finished.
  change(typed) {
    clearTimeout(this.typing);
    this.typing = undefined;
    if (!typed) return this.compute();
    document.body.dataset.busy = "true";
    this.typing = setTimeout(() => this.compute(), 120);
  },

  compute() {
    clearTimeout(this.typing);
    this.typing = undefined;
    const refused = refusal(this.state);
    this.fit();
    if (refused) {
      this.tracer.stop();
      this.fail({ message: refused });
    } else
      this.tracer.ask({...this.state, inputs: this.state.inputs.map(i => ({...i })) });
  },

  fit() {
    const area = $("expression");
    if (!area.checkVisibility()) return;
    area.style.height = "auto"; // as tall as its text
    area.style.height = `${area.scrollHeight + 2}px`;
  },

  // Soon enough that nobody wonders, not so soon that it flickers.
  waiting(busy) {
    clearTimeout(this.patience);
    if (busy) {
      document.body.dataset.busy = "true";
      this.patience = setTimeout(() => { $("computing").hidden = false; }, 250);
    } else {
      $("computing").hidden = true;
      if (this.typing === undefined) delete document.body.dataset.busy;
    }
  },

  fail(error, state = this.state) {
    $("error").hidden = false;
    $("error").replaceChildren(...errorParts(state.expression, error));
    document.body.classList.add("stale");
    document.body.classList.toggle("empty", !this.tape);
    document.body.dataset.ready = "true";
    this.stepper.enable(false);
    this.lessons?.look({ state: this.state });
    this.remember();
  },

  answer(trace, state) {
    if (state.expression !== this.state.expression) return; // a newer one is on its way
    if (trace.error) return this.fail(inPageWords(trace.error, state), state);
    $("error").hidden = true;
    document.body.classList.remove("stale", "empty");
    const before = this.tape;
    this.tape = new Tape(trace);
    this.stepper.enable(true);
    this.form.follow(this.tape);
    $("ticks").hidden = this.state.inputs.length < 2;
    // only numbers changed: keep the picture
    if (before && sameShape(before, this.tape)) {
      this.picture.replace(this.tape);
      this.mode();
    } else
      this.draw();
    document.body.dataset.ready = "true";
  },

  share() {
    this.remember();
    this.writeAddress();
    const say = start => { $("shared").textContent = `${start} It carries the function, the inputs and this step.`; };
    const done = () => say("The link is in your clipboard."), failed = () => say("Copy the address of this page.");
    if (navigator.clipboard)
      navigator.clipboard.writeText(location.href).then(done, failed);
    else
      failed();
  },

  remember() {
    if (RECORDED) return;
    const { n, m } = this.cost.sizes;
    const { speed } = this.stepper.player, more = speed === 1 ? {} : { speed: String(speed) };
    for (const panel of this.panels) Object.assign(more, panel.fields?.());
    this.written = fragmentOf(this.state, { mode: this.view.mode, step: this.view.step[this.view.mode], n, m,
      of: this.program.of }, more);
    // A very long address takes a browser long, and some limit how often it may change: then it is
    // written when nothing moves.
    clearTimeout(this.writing);
    this.writes = (this.writes ?? []).filter(at => performance.now() - at < 10000);
    if (this.written.length > 4000 || this.writes.length >= 100)
      this.writing = setTimeout(() => this.writeAddress(), 300);
    else this.writeAddress();
  },

  writeAddress() {
    if (location.hash === this.written) return;
    this.writes.push(performance.now());
    try {
      history.replaceState(null, "", this.written);
    } catch {
    }  // some browsers limit how often; the next step tells the address
  },

  // ---- around a recorded tape -------------------------------------------------------------------

  startRecorded(trace) {
    document.body.classList.add("recorded");
    this.start();
    this.state = { expression: trace.expression, seed: "", inputs: [] };
    $("footer").textContent = "A recorded tape: written by cotangent trace --html.";
    this.tape = new Tape(trace);
    InputForm.recorded($("inputs"), this.tape);
    this.draw();
    document.body.dataset.ready = "true";
  },

  // ---- looking ----------------------------------------------------------------------------------

  // A walk from its start.
  walk(mode) {
    this.view.step[mode] = 0;
    this.choose(mode);
    $("step").focus({ preventScroll: true });
  },

  walkAlong(name) {
    setMoving(name);
    this.walk("tangent");
  },

  // What follows the last step of a walk: forward leads to backward, and that to the next lesson.
  beyond(mode) {
    const next = placeOf(this.state.preset)?.next;
    if (mode === "forward" && this.tape.trace.sweep.length)
      return { word: "Now backward", name: "reverse", plays: true, go: () => this.walk("reverse") };
    const { end, stepper } = this;
    if (mode === "reverse" && next)
      return { get word() { return end.unread ? "What it means" : "Next lesson"; }, name: "forward", plays: false,
        go: () => {
          if (!end.unread) return this.openPreset(next.id);
          end.read();
          stepper.show();
        } };
    const other = mode === "tangent" ? nextMoving(this.tape) : null;
    if (other) return { word: `Now along ${other}`, name: "tangent", plays: true, go: () => this.walkAlong(other) };
    if (mode === "tangent" && this.tape.trace.sweep.length)
      return { word: "Now backward", name: "reverse", plays: false, go: () => this.walk("reverse") };
    return null;
  },

  choose(mode) {
    if (!this.tape) return;
    this.view.mode = mode;
    this.mode();
    if (isWalk(mode)) this.bringIntoView();
  },

  // On a phone the buttons are always there; what they move should be seen too.
  bringIntoView() {
    if (innerWidth >= 640) return;
    const { top, bottom } = ($("graph").querySelector(".current rect") ?? $("source")).getBoundingClientRect();
    const high = document.querySelector(".stick").offsetHeight + 8;
    const low = innerHeight - document.querySelector(".bar").offsetHeight - 8;
    if (top >= high && bottom <= low) return;
    scrollBy({ top: (top + bottom - high - low) / 2, behavior: calm() ? "auto" : "smooth" });
  },

  tabKey(e) {
    const tabs = [...document.querySelectorAll("[role=tab]")].filter(t => t.offsetParent);
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length];
    next.focus();
    next.click();
  },

  draw() {
    if (!this.tape) return;
    this.lessons?.look({ state: this.state }); // the picture has the room below
    $("stage").hidden = false;
    $("intro").hidden = true; // as it is after the first step
    $("source").textContent ||= " ";
    this.unsized = false;
    this.picture.draw(this.tape);
    this.mode();
  },

  // A click on a node goes to the step in which it acts.
  pick(id) {
    const nodes = walks[this.view.mode].nodes(this.tape), at = nodes.indexOf(id);
    this.stepper.to(at >= 0 ? at + 1 : this.view.mode === "reverse" ? nodes.length : 0);
  },

  mode() {
    const { mode } = this.view;
    document.body.dataset.mode = mode;
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.setAttribute("aria-selected", String(tab.dataset.mode === mode));
      tab.tabIndex = tab.dataset.mode === mode ? 0 : -1;
    }
    $("stage").hidden = !isWalk(mode);
    $("cost").hidden = mode !== "cost";
    $("program").hidden = mode !== "program";
    if (!isWalk(mode)) {
      this.stepper.pause();
      if (mode === "cost") this.cost.show(this.tape);
      else this.program.show(this.state, Array.isArray(this.tape.trace.value));
      const at = { tape: this.tape, state: this.state, mode, steps: this.view.step };
      for (const panel of this.panels) if (panel.everywhere) panel.look(at);
      this.remember();
      return;
    }
    if (this.unsized) {
      this.unsized = false;
      this.picture.draw(this.tape);
    }
    const walk = walks[mode];
    $("stage").setAttribute("aria-labelledby", `tab-${mode}`);
    $("intro").replaceChildren(...walk.intro(this.tape));
    $("registers-title").textContent = walk.table;
    $("step").className = `step ${mode}`;
    $("seed-card").hidden = mode !== "reverse" || RECORDED !== null;
    this.stepper.set(walk.nodes(this.tape).length, this.view.step[mode], walk.word, this.beyond(mode));
    this.view.step[mode] = this.stepper.at;
    this.look();
  },

  look() {
    const { tape, state, view: { mode, step: steps } } = this, step = steps[mode], walk = walks[mode];
    const view = walk.view(tape, step);
    $("now").replaceChildren(...walk.text(tape, step).filter(x => x));
    $("brief").replaceChildren(...walk.brief(tape, step));
    $("figures").replaceChildren(...walk.figures(tape, step));
    const span = view.current === null ? null : tape.node(view.current).span;
    $("source").replaceChildren(...marked(tape.trace.expression, span, mode, RECORDED !== null));
    const mark = $("source").querySelector("mark"); // of a long text two lines are shown
    if (mark) $("source").scrollTop = mark.offsetTop - 2;
    $("intro").hidden = step > 0; // read once; then the graph has the room
    $("bar-hint").replaceChildren(...(step > 0 ? walk.hint(tape) : []));
    const at = { tape, state, mode, walk, step, last: this.stepper.count, steps, view };
    for (const panel of this.panels) panel.look(at);
    this.remember();
  },
};

const sameShape = (a, b) => a.nodes.length === b.nodes.length && a.matrix === b.matrix &&
  a.nodes.every((n, i) => n.op === b.nodes[i].op && n.name === b.nodes[i].name &&
      n.args.join() === b.nodes[i].args.join() && n.shape.join() === b.nodes[i].shape.join() &&
      a.written(n) === b.written(b.nodes[i]));

if (RECORDED) page.startRecorded(RECORDED);
else page.startLive();
