// link.js: the whole state in the part of the address behind the #, so that a link shows the same
// thing to whoever opens it.
import { presets, stateOf } from "./presets.js";
import { isWalk } from "./walks.js";

// #e=EXPRESSION&i=x1:pi/4&i=x2:3&fixed=A,X&seed=1&mode=reverse&step=2   or  #p=PRESET&mode=…&step=…
// more: further fields, of the panels, as texts; those that are null or empty are left out.
export function fragmentOf(state, view, more = {}) {
  const fields = new URLSearchParams();
  fields.set("e", state.expression);
  for (const input of state.inputs) fields.append("i", `${input.name}:${input.text}`);
  const fixed = state.inputs.filter(i => !i.wrt).map(i => i.name);
  if (fixed.length) fields.set("fixed", fixed.join(","));
  if (state.seed !== "1") fields.set("seed", state.seed);
  fields.set("mode", view.mode);
  if (view.mode === "cost") {
    fields.set("n", view.n);
    fields.set("m", view.m);
  } else if (view.mode === "program") fields.set("of", view.of);
  else fields.set("step", view.step);
  for (const [name, text] of Object.entries(more)) if (text !== null && text !== "") fields.set(name, text);
  return `#${fields}`;
}

// {state, view, more}, or null when the fragment holds nothing of ours. Numbers that make no sense
// are left out.
export function readFragment(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const preset = presets.find(p => p.id === fields.get("p"));
  if (!fields.has("e") && !preset) return null;
  const fixed = (fields.get("fixed") ?? "").split(",");
  const state = preset ? stateOf(preset) : { expression: fields.get("e"), seed: fields.get("seed") ?? "1", preset: null,
    inputs: fields.getAll("i").filter(i => i.includes(":")).map(i => {
      const [name, ...text] = i.split(":");
      return { name, text: text.join(":"), wrt: !fixed.includes(name) };
    }) };
  const whole = (name, least, most, otherwise) => {
    const n = Number(fields.get(name) ?? NaN);
    return Number.isInteger(n) && n >= least && n <= most ? n : otherwise;
  };
  const asked = fields.get("mode"), mode = isWalk(asked) || ["cost", "program"].includes(asked) ? asked : "forward";
  return {
    state,
    view: { mode, step: whole("step", 0, 1e6, 0), n: whole("n", 1, 1e6, 1000), m: whole("m", 1, 1e6, 1),
      of: fields.get("of") },
    more: Object.fromEntries(fields)
  };
}
