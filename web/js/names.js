// names.js: which names of an expression are its inputs. A rough reading for the form only; the engine reads properly, and its
// word counts.

const known = new Set(("pi e inf nan True False None true false and or not if else in is " +
  "f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool float64 float32 int64 int32").split(" "));

export function inputNames(expression) {
  const tokens = expression.replace(/#[^\n]*/g, "").replace(/"[^"\n]*"|'[^'\n]*'/g, " ")
    .match(/\d[\w.]*(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|[=!<>]=|./gsu) ?? [];
  const solid = tokens.filter(t => t.trim() !== "" || t === "\n");
  const names = [], assigned = new Set();
  let pending = [], depth = 0;
  solid.forEach((token, i) => {
    const next = solid[i + 1];
    if ("([{".includes(token)) depth++;
    if (")]}".includes(token)) depth--;
    if (depth <= 0 && (token === ";" || token === "\n")) { // what a statement assigns is known after it
      pending.forEach(n => assigned.add(n));
      pending = [];
    }
    if (!/^[A-Za-z_]/.test(token) || known.has(token) || next === "(") return;
    if (next === "=") { // an assignment, or a keyword of a call
      if (depth <= 0) pending.push(token);
      return;
    }
    if (!assigned.has(token) && !names.includes(token)) names.push(token);
  });
  return names;
}
