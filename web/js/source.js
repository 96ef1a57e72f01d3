// source.js: the text of the expression with the part marked that a node came from; and errors
// under their place in it.
import { el } from "./dom.js";

let encoded = { text: null, bytes: null }; // the last one: a long text is asked about at each step

function bytesOf(text) {
  if (encoded.text !== text) encoded = { text, bytes: new TextEncoder().encode(text) };
  return encoded.bytes;
}

// span: [start, stop) in bytes of UTF-8. Of a text of many lines those are shown that the span
// touches, or all.
export function marked(expression, span, mode, all) {
  const bytes = bytesOf(expression), [start, stop] = span ?? [bytes.length, bytes.length], newline = 10;
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const first = all || start === 0 ? 0 : bytes.lastIndexOf(newline, start - 1) + 1, end = bytes.indexOf(newline, stop);
  return [text(first, start), el("mark", { class: mode }, text(start, stop)),
    text(stop, all || end < 0 ? bytes.length : end)];
}

// The message, and below it the line of the text with a caret. column counts characters from 1
// within its line.
export function errorParts(expression, error) {
  const { message, column } = error, line = error.line ?? 1;
  if (!column) return [el("p", null, message)];
  // a long line is shown around the place
  const characters = [...expression.split("\n")[line - 1] ?? ""], reach = 40;
  const from = Math.max(0, column - reach), shown = characters.slice(from, column + reach).join("");
  const before = from > 0 ? "…" : "", after = column + reach < characters.length ? "…" : "";
  return [
    el("p", null, message),
    el("pre", null, `${before}${shown}${after}\n${" ".repeat(column - 1 - from + before.length)}^`)
  ];
}
