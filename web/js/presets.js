// presets.js: the examples to pick from. An input is its text, or [text, least, most] for the
// slider; `fixed` inputs are not differentiated.

const deep = Array.from({ length: 10 }).reduce(inner => `sigmoid(${inner})`, "x");

const logistic = Array.from({ length: 4 }, () => "s = r*s*(1 - s)").join("; ");

export const presets = [
  { group: "First steps", id: "first", title: "A product and a sine",
    about: "x1 is used twice, in the product and in the sine. So two contributions meet in its register.",
    expression: "x1*x2 + sin(x1)", inputs: { x1: ["pi/4", -4, 4], x2: ["3", -5, 5] } },
  { group: "First steps", id: "reused", title: "A variable used again",
    about: "x1 is in both factors. When it moves, it moves both at once, and f feels both moves. So even in a " +
      "product the contributions add: x1 + (x1 + x2).",
    expression: "(x1 + x2) * x1", inputs: { x1: ["3", -10, 10], x2: ["4", -10, 10] } },
  { group: "First steps", id: "product", title: "One multiplication",
    about: "The smallest tape there is: one operation. On the way back each factor gets the other one.",
    expression: "x*y", inputs: { x: ["2", -5, 5], y: ["3", -5, 5] } },
  { group: "First steps", id: "chain", title: "A square of a sum",
    about: "Two operations behind each other. Their derivatives are multiplied on the way back: the chain rule.",
    expression: "(x + y)**2", inputs: { x: ["2", -5, 5], y: ["1", -5, 5] } },
  { group: "First steps", id: "twice", title: "A value used twice",
    about: "x goes into the square and into the sum. When x moves, it moves both at once, and f feels both moves: so " +
      "both ways back add up in one register.",
    expression: "x**2 + x", inputs: { x: ["3", -5, 5] } },
  { group: "First steps", id: "paths", title: "Two inputs, two paths each",
    about: "x and y go into the product and into the sum. Each register gets one contribution for each path.",
    expression: "x*y + x + y", inputs: { x: ["2", -5, 5], y: ["3", -5, 5] } },
  { group: "First steps", id: "shared", title: "A value computed once, used twice",
    about: "The sweep waits at a until both of its users have answered. Then it passes through the product once.",
    expression: "a = x*y; a + sin(a)", inputs: { x: ["2", -5, 5], y: ["3", -5, 5] } },
  { group: "First steps", id: "valley", title: "Rosenbrock's valley",
    about: "A classic test for optimisers. At the minimum, x = y = 1, both derivatives are 0.",
    expression: "(1 - x)**2 + 100*(y - x**2)**2", inputs: { x: ["-1.2", -2, 2], y: ["1", -1, 3] } },
  { group: "Vectors", id: "ones", title: "Several results, all counted alike",
    about: "Three results need three weights: the seed. With [1, 1, 1] the sweep gives the gradient of their sum.",
    expression: "square(x)", inputs: { x: "[1, 2, 3]" }, seed: "[1, 1, 1]" },
  { group: "Vectors", id: "seeds", title: "Several results and a seed",
    about: "Three results share x. One sweep gives one weighted sum of their gradients: the seed holds weights.",
    expression: "[x*y, x + y, x]", inputs: { x: ["2", -5, 5], y: ["3", -5, 5] }, seed: "[10, 1, 0.1]" },
  { group: "Vectors", id: "dot", title: "A product of two vectors",
    about: "Three multiplications and a sum, done as two operations on vectors. Each vector gets the other one back.",
    expression: "sum(x * y)", inputs: { x: "[1, 2, 3]", y: "[4, 5, 6]" } },
  { group: "Where care is needed", id: "kink", title: "A kink at 0",
    about: "relu and abs have a corner at 0, where there is no derivative. The library takes a fixed " +
      "convention and says so.",
    expression: "relu(x) + 3*abs(y)", inputs: { x: ["0", -2, 2], y: ["0", -2, 2] } },
  { group: "Where care is needed", id: "vanishing", title: "A vanishing gradient",
    about: "Ten sigmoids in a row. Each multiplies the adjoint by at most 1/4, so little of it reaches x.",
    expression: deep, inputs: { x: ["0.5", -6, 6] } },
  { group: "Where care is needed", id: "where", title: "log behind a where, at 0",
    about: "The branch that is not taken has an infinite derivative at 0. A naive 0·∞ would be NaN; here nothing " +
      "arrives there, so 0 it stays.",
    expression: "where(x > 0, log(x), 0)", inputs: { x: ["0", -2, 2] } },
  { group: "Where care is needed", id: "teacher", title: "A teacher and a student",
    about: "The student s learns to say what the teacher t says. stop_gradient lets the value through and no " +
      "derivative, so the teacher stays as it is.",
    expression: "goal = stop_gradient(t * x)\n(goal - s * x)**2",
    inputs: { t: ["2", -3, 3], x: ["1.5", -3, 3], s: ["0.5", -3, 3] }, fixed: ["x"] },
  { group: "Where care is needed", id: "inplace", title: "A value that must not be overwritten",
    about: "exp keeps its own value for the way back. So y += 1 makes a new value and leaves the old one alone.",
    expression: "y = exp(x); y += 1; y * x", inputs: { x: ["1", -2, 2] } },
  { group: "Where care is needed", id: "precision", title: "A number with too few digits",
    about: "f16 has three digits. The 0.3 is lost beside 1000, but the derivative does not notice: it is 1.",
    expression: "y = cast(x, f16); (y + 1000) - 1000", inputs: { x: ["0.3", 0, 2] } },
  { group: "Loops", id: "newton", title: "A square root by Newton's method",
    about: "Three steps of y = (y + x/y)/2. The derivative of the loop is nearly that of the root: 1/(2√x).",
    expression: "y = x; y = (y + x/y)/2; y = (y + x/y)/2; (y + x/y)/2", inputs: { x: ["2", 0.1, 9] } },
  { group: "Loops", id: "states", title: "A loop that keeps all its states",
    about: "Four rounds of the logistic map, s = r·s·(1 − s). Every round keeps its state for the way back, so " +
      "memory grows with the number of rounds.",
    expression: `s = x; ${logistic}; s`, inputs: { x: ["0.4", 0, 1], r: ["2.9", 1, 4] } },
  { group: "Matrix tapes", id: "matrices", title: "A matrix times a vector",
    about: "The result is W times x. On the way back x gets Wᵀ times the adjoint, and W gets the adjoint times xᵀ.",
    expression: "sum(W @ x)", inputs: { W: "[[1, 2], [3, 4]]", x: "[5, 6]" } },
  { group: "Matrix tapes", id: "softmax", title: "Softmax and cross-entropy",
    about: "softmax turns scores s into probabilities p. Cross-entropy is −log p of the class that is right, which y " +
      "marks. What arrives at s is p − y: how much too sure the model was of each class.",
    expression: "-sum(y * log_softmax(s))", inputs: { s: "[2, 1, 0.1]", y: "[1, 0, 0]" }, fixed: ["y"] },
  { group: "Matrix tapes", id: "network", title: "A small network",
    about: "Four examples, two features, three hidden units; the loss is a mean of squares. Green is positive, " +
      "purple negative.",
    expression: "h = tanh(X @ W1 + b1)\ny = h @ W2 + b2\nmean((y - t)**2)",
    inputs: { X: "[[0, 0], [0, 1], [1, 0], [1, 1]]", W1: "[[0.8, -1.1, 0.5], [-0.6, 0.9, 0.7]]", b1: "[0.1, -0.2, 0]",
      W2: "[[1.2], [-0.7], [0.4]]", b2: "[0.1]", t: "[[0], [1], [1], [0]]" }, fixed: ["X", "t"] },
  { group: "Matrix tapes", id: "gcn", title: "A two-layer graph network (GCN)",
    about: "Six people, two groups of friends with one friendship between them. A mixes each person's features " +
      "with those of " +
      "friends; Y says which group the loss wants.",
    expression: "H = relu(A @ X @ W1)\nZ = A @ H @ W2\n-sum(Y * log_softmax(Z, axis=1)) / 6",
    inputs: {
      A: "[[0.3333, 0.3333, 0.2887, 0, 0, 0], [0.3333, 0.3333, 0.2887, 0, 0, 0], [0.2887, 0.2887, 0.25, 0.25, 0, 0], " +
        "[0, 0, 0.25, 0.25, 0.2887, 0.2887], [0, 0, 0, 0.2887, 0.3333, 0.3333], [0, 0, 0, 0.2887, 0.3333, 0.3333]]",
      X: "[[1, 0, 0.2], [0.9, 0.1, -0.3], [0.8, 0.3, 0.1], [0.2, 0.9, 0.4], [0.1, 1, -0.2], [0, 0.8, 0.3]]",
      W1: "[[0.9, -0.5, 0.3, 0.1], [-0.7, 0.8, 0.2, -0.4], [0.3, 0.1, -0.6, 0.5]]",
      W2: "[[0.7, -0.6], [-0.5, 0.9], [0.2, 0.1], [-0.3, 0.4]]",
      Y: "[[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]" }, fixed: ["A", "X", "Y"] },
];

export function stateOf(preset) {
  return { expression: preset.expression, seed: preset.seed ?? "1", preset: preset.id,
    inputs: Object.entries(preset.inputs).map(([name, input]) => {
      const [text, least, most] = Array.isArray(input) ? input : [input];
      return { name, text, least, most, wrt: !(preset.fixed ?? []).includes(name) };
    }) };
}
