// numbers.js: values as the engine prints them, and as people read them. A value is a number, a
// boolean, one of "nan" "inf" "-inf", or nested lists of those; a large one comes as a summary with
// `elided`.

export const isTensor = v => Array.isArray(v) || (v !== null && typeof v === "object");

export function toNumber(v) {
  if (typeof v === "string") return v === "inf" ? Infinity : v === "-inf" ? -Infinity : NaN;
  return Number(v);
}

// Five significant digits, a real minus sign; exact where that is as short.
export function show(v, digits = 5) {
  if (v === null || v === undefined) return "";
  if (typeof v === "boolean") return v ? "true" : "false";
  if (Array.isArray(v)) return showList(v, digits);
  if (typeof v === "object") return `${v.count} numbers, ${show(v.min)} to ${show(v.max)}`;
  const x = toNumber(v);
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0"; // of either sign
  let [mantissa, exponent] = Number(x.toPrecision(digits)).toString().split("e");
  const size = Math.abs(x);
  if (!exponent && (size < 1e-4 || size >= 1e7))
    [mantissa, exponent] = x.toExponential(Math.min(3, digits - 1)).split("e");
  if (mantissa.includes(".")) mantissa = mantissa.replace(/0+$/, "").replace(/\.$/, "");
  return (mantissa + (exponent ? `e${Number(exponent)}` : "")).replaceAll("-", "−");
}

function showList(v, digits) {
  const flat = v.flat(Infinity);
  if (flat.length > 6) return `[${flat.slice(0, 4).map(x => show(x, 3)).join(", ")}, … ${flat.length} numbers]`;
  return `[${v.map(x => show(x, Math.min(digits, 4))).join(", ")}]`;
}

// As a factor in a formula: a negative number in parentheses.
export function showFactor(v, digits = 5) {
  const text = show(v, digits);
  return text.startsWith("−") ? `(${text})` : text;
}

export const showShape = shape => shape.length === 0 ? "number"
  : shape.length === 1 ? `${shape[0]} number${shape[0] === 1 ? "" : "s"}` : shape.join("×");

// Any value as rows of numbers: all axes but the last become rows.
export function asMatrix(v, shape) {
  if (v && v.elided) return v.grid.map(row => row.map(toNumber));
  const columns = shape.length === 0 ? 1 : shape[shape.length - 1];
  const flat = [v].flat(Infinity), rows = [];
  for (let i = 0; i < flat.length; i += Math.max(columns, 1))
    rows.push(flat.slice(i, i + Math.max(columns, 1)).map(toNumber));
  return rows;
}

// What a range of finite numbers leaves out: "", ", and 2 ∞ or NaN".
export function leftOut(v, rows) {
  const odd = rows.flat().filter(x => !Number.isFinite(x)).length;
  return odd === 0 ? "" : `, and ${v.elided ? "some" : odd} ∞ or NaN`;
}

// For a table: numbers as they are; of arrays the shape and the range.
export function inTable(v, shape) {
  if (!isTensor(v) || shape.length === 0) return show(v);
  const rows = asMatrix(v, shape), flat = rows.flat().filter(Number.isFinite);
  const least = v.elided ? v.min : Math.min(...flat), most = v.elided ? v.max : Math.max(...flat);
  const size = shape.length === 1 ? `[${shape[0]}]` : showShape(shape);
  if (flat.length <= 3 && !v.elided) return show(v);
  const range = least === most ? `all ${show(least, 3)}` : `${show(least, 3)} to ${show(most, 3)}`;
  return `${size}, ${range}${leftOut(v, rows)}`;
}

// 2.5, 12000 -> "12,000", 4.2e9 -> "4.2 billion"
export function showCount(n) {
  if (n < 1e6) return (n < 100 ? Number(n.toFixed(1)) : Math.round(n)).toLocaleString("en");
  for (const [size, word] of [
         [1e18, "quintillion"], [1e15, "quadrillion"], [1e12, "trillion"], [1e9, "billion"], [1e6, "million"]])
    if (n >= size) return `${Number((n / size).toPrecision(3))} ${word}`;
  return String(n);
}

export function showBytes(n) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return `${Number(n.toPrecision(3))} ${units[i]}`;
}
