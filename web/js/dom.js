// dom.js: making elements.

export const $ = id => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
  return element;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// An adjoint is written as the name of its value under a bar, and read aloud in words.
export const bar = label => el("span", { class: "over", role: "math", "aria-label": `adjoint of ${label}` }, label);
// A tangent has a dot over the first letter of the name.
export const dotted = label => `${label[0]}\u0307${label.slice(1)}`;
export const dot = label => el("span", { role: "math", "aria-label": `tangent of ${label}` }, dotted(label));
export const svgBar = label => svg("tspan", { class: "over" }, label);

// Does a key belong to a field that is typed into, or to the browser?
export const isForOthers = e => e.altKey || e.ctrlKey || e.metaKey || e.target.closest("input, textarea, select");

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
export const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
