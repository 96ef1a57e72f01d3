// calculate.js: a number as a person types it: 0.5, −1e3, 3/4, pi/4, 0.7071 + 3, cos(pi/4).
// Nothing but arithmetic is read.

const functions = { sin: Math.sin, cos: Math.cos, tan: Math.tan, exp: Math.exp, log: Math.log, sqrt: Math.sqrt,
  abs: Math.abs };

const names = { pi: Math.PI, "π": Math.PI, e: Math.E, inf: Infinity, infinity: Infinity, "∞": Infinity, nan: NaN };

// The value of a text, or null where it is no such number.
export function calculated(text) {
  const plain = text.trim().toLowerCase().replaceAll("−", "-").replaceAll("·", "*").replaceAll("^", "**")
    .replace(/^([^,(]*),([^,]*)$/, "$1.$2"); // a decimal comma
  const tokens = plain.match(/\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|[a-z]+|[π∞]|\*\*|\S/g) ?? [];
  let at = 0;
  const take = token => tokens[at] === token && ++at > 0;
  const atom = () => {
    const token = tokens[at++] ?? "";
    if (/^[\d.]/.test(token)) return Number(token);
    if (Object.hasOwn(names, token)) return names[token];
    const f = Object.hasOwn(functions, token) ? functions[token] : null;
    if (!(f ? take("(") : token === "(")) throw new SyntaxError(token);
    const value = sum();
    if (!take(")")) throw new SyntaxError(token);
    return f ? f(value) : value;
  };
  const power = () => {
    const base = atom();
    return take("**") ? base ** signed() : base;
  };
  const signed = () => take("-") ? -signed() : take("+") ? signed() : power();
  const product = () => {
    let value = signed();
    while (tokens[at] === "*" || tokens[at] === "/")
      value = tokens[at++] === "*" ? value * signed() : value / signed();
    return value;
  };
  const sum = () => {
    let value = product();
    while (tokens[at] === "+" || tokens[at] === "-")
      value = tokens[at++] === "+" ? value + product() : value - product();
    return value;
  };
  try {
    const value = sum();
    return at === tokens.length ? value : null;
  } catch {
    return null; // no arithmetic, or too deep
  }
}
