// source.js: the text of the expression with the part marked that a node came from; and errors under their place in it.
import { el } from "./dom.js";

// span: [start, stop) in bytes of UTF-8
export function marked(expression, span, mode) {
  if (!span) return [expression];
  const bytes = new TextEncoder().encode(expression), text = part => new TextDecoder().decode(part);
  return [text(bytes.subarray(0, span[0])), el("mark", { class: mode }, text(bytes.subarray(span[0], span[1]))), text(bytes.subarray(span[1]))];
}

// The message, and below it the line of the text with a caret. column counts characters from 1 within its line.
export function errorText(expression, error) {
  const { message, column } = error, line = error.line ?? 1;
  if (!column || message.includes("^")) return message;
  const text = expression.split("\n")[line - 1] ?? "", far = 60; // a long line is shown around the place
  const characters = [...text], from = column > far ? column - far / 2 : 0;
  return `${message}\n\n${from ? "…" : ""}${characters.slice(from, from + far * 2).join("")}\n${" ".repeat(column - 1 - from + (from ? 1 : 0))}^`;
}
