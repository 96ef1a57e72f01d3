// names.js: which names of an expression are its inputs. A rough reading for the form only; the
// engine reads properly, and its word counts.

const known = new Set(("pi e inf nan True False None and or not if else in is newaxis " +
  "f64 f32 f16 bf16 i64 i32 u8 float64 float32 float16 bfloat16 int64 int32 uint8 bool float int").split(" "));

const isName = token => /^[A-Za-z_]/.test(token);

function statementsOf(expression) {
  const tokens = expression.replace(/#[^\n]*/g, "").replace(/\\\n/g, " ").replace(/"[^"\n]*"|'[^'\n]*'/g, " ")
    .match(/\d[\w.]*(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|[=!<>]=|./gsu) ?? [];
  const statements = [[]];
  let depth = 0;
  for (const token of tokens) {
    if ("([{".includes(token)) depth++;
    if (")]}".includes(token)) depth--;
    if (depth <= 0 && (token === ";" || token === "\n")) statements.push([]);
    else if (token.trim() !== "") statements.at(-1).push({ token, depth });
  }
  return statements;
}

// Names that stand beside @, and what a product can begin with: W @ x is a matrix times a vector,
// A @ B a product of two matrices.
export function productInputs(expression) {
  const found = new Map(), text = expression.replace(/#[^\n]*/g, "");
  for (const [, left, right] of text.matchAll(/([A-Za-z_]\w*)(?:\.T)?\s*@\s*(?=([A-Za-z_]\w*))/g)) {
    found.set(left, "[[1, 2], [3, 4]]");
    found.set(right, /^[a-z]/.test(right) && !found.has(right) ? "[5, 6]" : "[[1, 2], [3, 4]]");
  }
  return found;
}

export function inputNames(expression) {
  const names = new Set(), assigned = new Set();
  for (const statement of statementsOf(expression)) {
    // behind a, b = …
    const equals = statement.findLastIndex(({ token, depth }) => token === "=" && depth <= 0);
    // a += … reads a
    const updates = equals > 0 && /[-+*/%@]/.test(statement[equals - 1].token);
    statement.forEach(({ token }, i) => {
      const next = statement[i + 1]?.token, before = statement[i - 1]?.token;
      if (i < equals && !updates) return;
      // x.T, calls, their keywords
      if (!isName(token) || known.has(token) || before === "." || next === "(" || next === "=") return;
      if (!assigned.has(token)) names.add(token);
    });
    statement.slice(0, Math.max(equals, 0)).forEach(({ token }) => isName(token) && assigned.add(token));
  }
  return [...names];
}
