// presets.js: the examples to pick from. An input is its text, or [text, least, most] for the
// slider; `fixed` inputs are not differentiated.

const deep = Array.from({ length: 10 }).reduce(inner => `sigmoid(${inner})`, "x");

export const presets = [
  { group: "First steps", id: "first", title: "A product and a sine",
    about: "x1 is used twice, in the product and in the sine, so two contributions meet in its register.",
    expression: "x1*x2 + sin(x1)", inputs: { x1: ["pi/4", -4, 4], x2: ["3", -5, 5] } },
  { group: "First steps", id: "reused", title: "A variable used again",
    about: "x1 reaches the result twice, by way of the sum and as a factor: its derivative is x1 + (x1 + x2).",
    expression: "(x1 + x2) * x1", inputs: { x1: ["3", -10, 10], x2: ["4", -10, 10] } },
  { group: "First steps", id: "shared", title: "A value computed once, used twice",
    about: "The sweep waits at a until both of its users have answered, then passes through the product once.",
    expression: "a = x*y; a + sin(a)", inputs: { x: ["2", -5, 5], y: ["3", -5, 5] } },
  { group: "First steps", id: "valley", title: "Rosenbrock's valley",
    about: "A classic test for optimisers. At the minimum, x = y = 1, both derivatives are 0.",
    expression: "(1 - x)**2 + 100*(y - x**2)**2", inputs: { x: ["-1.2", -2, 2], y: ["1", -1, 3] } },
  { group: "First steps", id: "seeds", title: "Several results and a seed",
    about: "Three results, so one sweep gives one weighted sum of their gradients. The seed holds the weights.",
    expression: "square(x)", inputs: { x: "[1, 2, 3]" }, seed: "[10, 1, 0.1]" },
  { group: "Where care is needed", id: "kink", title: "A kink at 0",
    about: "relu and abs have a corner at 0, where there is no derivative. The library takes a fixed " +
      "convention and says so.",
    expression: "relu(x) + 3*abs(y)", inputs: { x: ["0", -2, 2], y: ["0", -2, 2] } },
  { group: "Where care is needed", id: "vanishing", title: "A vanishing gradient",
    about: "Ten sigmoids in a row. Each multiplies the adjoint by at most 1/4, so little of it reaches x.",
    expression: deep, inputs: { x: ["0.5", -6, 6] } },
  { group: "Where care is needed", id: "where", title: "log behind a where, at 0",
    about: "The branch that is not taken has an infinite derivative at 0. A naive 0·∞ would be NaN; here nothing " +
      "arrives there, " +
      "so 0 it stays.",
    expression: "where(x > 0, log(x), 0)", inputs: { x: ["0", -2, 2] } },
  { group: "Where care is needed", id: "newton", title: "A square root by Newton's method",
    about: "Three steps of y = (y + x/y)/2. The derivative of the loop is nearly that of the root: 1/(2√x).",
    expression: "y = x; y = (y + x/y)/2; y = (y + x/y)/2; (y + x/y)/2", inputs: { x: ["2", 0.1, 9] } },
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
