// store.js: what is kept in this browser and never in a link: the score of predictions, notes on
// nodes. Where a browser keeps nothing (private windows, pages from disk), it lasts as long as the
// page.

const prefix = "cotangent-", here = new Map();

export function recallHere(name, otherwise) {
  try {
    const text = localStorage.getItem(prefix + name) ?? here.get(name);
    return text === undefined || text === null ? otherwise : JSON.parse(text);
  } catch {
    return here.has(name) ? JSON.parse(here.get(name)) : otherwise;
  }
}

export function keepHere(name, value) {
  here.set(name, JSON.stringify(value));
  try {
    localStorage.setItem(prefix + name, JSON.stringify(value));
  } catch {
  }  // no room, or not allowed: the map has it
}

// Another page of this browser has kept it, or the one before on its way out: heard(value).
export function whenKept(name, heard) {
  addEventListener("storage", e => {
    if (e.key === prefix + name && e.newValue !== null) heard(JSON.parse(e.newValue));
  });
}
