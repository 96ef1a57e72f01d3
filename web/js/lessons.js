// lessons.js: the examples as a path. A lesson is an example with a question to carry along, what
// one can say after it, and where to read on; the path says what comes before and what comes next.
import { $, el } from "./dom.js";
import { presets } from "./presets.js";

const griewank = "A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008";
const baydin = "A. G. Baydin et al., Automatic Differentiation in Machine Learning: a Survey, JMLR 18, 2018";
const goodfellow = "I. Goodfellow, Y. Bengio, A. Courville, Deep Learning, MIT Press 2016";

// id: the example; ask, answer: the question; say: what one should be able to say then; try:
// another text for the function, and what to look at; cost: it goes on under Cost.
export const lessons = [
  { id: "product", name: "One multiplication",
    ask: "x is 2 and y is 3. Which of them changes the result more?",
    answer: "x: its derivative is y = 3. The derivative by y is x = 2.",
    say: "In a product each factor gets the other factor, times the adjoint of the product.",
    source: `${baydin}, section 2` },
  { id: "chain", name: "The chain rule",
    ask: "Why do x and y get the same number?",
    answer: "Both pass through the sum, which hands its adjoint on unchanged.",
    say: "Derivatives along a path are multiplied: that is the chain rule.",
    source: `${goodfellow}, section 6.5.2` },
  { id: "twice", name: "Sharing: one value, two users",
    ask: "The square gives 2x = 6. Why is the derivative 7?",
    answer: "x is also an operand of the sum, which gives 1 more. x moves both its users at once, and f feels both " +
      "moves: so they add.",
    say: "A value that is used twice gets two contributions, and its adjoint is their sum.",
    source: `${griewank}, section 3.2` },
  { id: "paths", name: "Every path counts",
    ask: "How many paths lead from x to the result?",
    answer: "Two: through the product (y = 3) and through the sum (1). The derivative is 3 + 1 = 4.",
    say: "The derivative is a sum over paths, and one sweep visits every box once.",
    source: `${griewank}, section 3.2` },
  { id: "first", name: "A product and a sine",
    ask: "At which x1 would the contribution of the sine be 0?",
    answer: "At π/2: cos(π/2) = 0. Move x1 there and look.",
    say: "Each operation needs only its own rule; the sweep does the rest.",
    source: `${baydin}, section 3.2; it goes back to S. Linnainmaa, 1970` },
  { id: "reused", name: "A variable used again",
    ask: "Double x2. Does the derivative by x2 change?",
    answer: "No: it is x1. But the derivative by x1 grows, because x2 is in it.",
    say: "Contributions add, also where f is a product: f feels every move of x1. And a derivative depends on the " +
      "point: move x2, and the derivative by x1 moves.",
    source: `${goodfellow}, section 6.5` },
  { id: "shared", name: "A value computed once",
    ask: "Why does the sweep not go through the product twice?",
    answer: "It waits until the register of a is complete. Then one pass carries both contributions.",
    say: "Reverse mode passes every box once, however many paths there are. That is why it is cheap.",
    source: `${griewank}, section 4.3` },
  { id: "ones", name: "Seeds: all results alike",
    ask: "The seed is [1, 1, 1]. Of which single number is this the gradient?",
    answer: "Of the sum of the three results.",
    say: "A sweep starts from a seed: one weight for each result.",
    source: `${griewank}, section 3.2` },
  { id: "seeds", name: "Seeds: weights",
    ask: "Which seed would give the derivative of the second result alone?",
    answer: "[0, 1, 0]. Then x and y get 1 each: the derivatives of x + y.",
    say: "The Jacobian is the table of all derivatives, a row for each result. One sweep gives the sum of its rows, " +
      "weighted by the seed: seedᵀ · Jacobian. The whole table needs one sweep for each result.",
    source: `${baydin}, section 3.2` },
  { id: "dot", name: "Vectors",
    ask: "What does sum hand back to its three operands?",
    answer: "Its own adjoint, to each: sum has derivative 1 everywhere.",
    say: "Rules for vectors are the rules for numbers, place by place.",
    source: `${goodfellow}, section 6.5.2` },
  { id: "matrices", name: "Matrices",
    ask: "W is 2×2. Which shape does its adjoint have?",
    answer: "2×2: an adjoint always has the shape of its value.",
    say: "For y = W·x: x gets Wᵀ·ȳ, and W gets ȳ·xᵀ.",
    source: "M. Giles, Collected Matrix Derivative Results, 2008" },
  { id: "softmax", name: "Softmax and cross-entropy",
    ask: "When is the gradient at s zero?",
    answer: "When p = y: the model says exactly what is right.",
    say: "Softmax with cross-entropy hands back p − y, probability minus truth.",
    source: `${goodfellow}, section 6.2.2` },
  { id: "gcn", name: "A graph network",
    ask: "Does the matrix A of friendships get a gradient?",
    answer: "No: its ∂ is not ticked, so it counts as a constant. W1 and W2 do.",
    say: "A network is only a longer tape: products with matrices, and a nonlinear step between.",
    source: "T. Kipf and M. Welling, Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017" },
  { id: "vanishing", name: "Vanishing gradients",
    ask: "The derivative of a sigmoid is at most 1/4. What is left after ten?",
    answer: "At most (1/4)¹⁰, about one millionth.",
    say: "Along a chain adjoints are multiplied, so many factors below 1 leave almost nothing.",
    source: "Y. Bengio, P. Simard, P. Frasconi, Learning Long-Term Dependencies, 1994" },
  { id: "kink", name: "Kinks",
    ask: "What is the slope of |y| at 0?",
    answer: "There is none: −1 from the left, 1 from the right. The library takes 0 and says so.",
    say: "At a corner there is no derivative. What one gets is a convention.",
    source: `${griewank}, chapter 14` },
  { id: "teacher", name: "No gradient: teacher and student",
    ask: "What would happen without stop_gradient?",
    answer: "The teacher would move towards the student too. Take it out of the text and look at t.",
    say: "stop_gradient keeps the value and cuts the derivative: what is behind it counts as a constant.",
    source: "G. Hinton, O. Vinyals, J. Dean, Distilling the Knowledge in a Neural Network, 2015",
    try: { text: "goal = t * x\n(goal - s * x)**2", what: "Without stop_gradient" } },
  { id: "inplace", name: "Writing in place",
    ask: "Could y[0] = 3 simply write into the array?",
    answer: "No: a value that the way back still needs would be gone. So it is refused.",
    say: "The tape keeps values for the way back. Nobody may overwrite a value that is kept.",
    source: `${griewank}, section 4.2`,
    try: { text: "y = exp(x); y[0] = 3; y * x", what: "Try to write into y" } },
  { id: "newton", name: "Loops",
    ask: "Three rounds of a loop: how many boxes does one round add?",
    answer: "Three: a division, an addition, a division. The tape does not know that it was a loop.",
    say: "A loop becomes a long tape, one copy of its body for each round.",
    source: `${griewank}, section 2.2` },
  { id: "states", name: "Checkpoints",
    ask: "The state of every round is kept. Could one keep fewer?",
    answer: "Yes: keep some, and run the steps between them again. See “Memory and depth” under Cost.",
    say: "Checkpoints trade time for memory: fewer states are kept, some steps run again.",
    source: "A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26, 2000", cost: true },
  { id: "precision", name: "Precision",
    ask: "The derivative is 1. Is the nudge test content?",
    answer: "No: a small nudge is lost in rounding, so f moves in jumps or not at all.",
    say: "Derivatives are those of the formula. Rounding has none, so few digits can hide what happens.",
    source: "N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002" },
];

const presetOf = lesson => presets.find(p => p.id === lesson.id);

// Where an example stands in the path: {lesson, number, before, next}, or null.
export function placeOf(id) {
  const at = lessons.findIndex(l => l.id === id);
  return at < 0 ? null : { lesson: lessons[at], number: at + 1, before: lessons[at - 1] ?? null,
    next: lessons[at + 1] ?? null };
}

// The line above everything: which lesson this is, the way to its neighbours, and all of them.
export class Lessons {
  // onOpen(id): the example of a lesson is wanted; onTry(text): another text for the function
  constructor(onOpen, onTry) {
    Object.assign(this, { onOpen, onTry, shown: undefined, everywhere: true });
    $("lessons").hidden = false;
  }

  look({ state }) {
    const id = presets.find(p => p.id === state.preset)?.id ??
      presets.find(p => p.expression === state.expression && p.seed === (state.seed === "1" ? undefined : state.seed))
        ?.id ?? null;
    if (id === this.shown) return;
    if (id !== null) this.tried = null;
    this.shown = id;
    const place = placeOf(id);
    $("lessons").replaceChildren(this.line(place, id), this.details(place));
  }

  attempt(lesson) {
    this.tried = lesson.id;
    this.onTry(lesson.try.text);
  }

  line(place, id) {
    const go = (lesson, text, label, key) => el("button", { type: "button", class: "plain small", id: `lesson-${key}`,
      "aria-label": lesson ? `${label}: ${lesson.name}` : label, title: lesson?.name, "aria-disabled": String(!lesson),
      onclick: () => lesson && this.onOpen(lesson.id) }, text);
    const where = id ? "An example beside the path of lessons. " : "Your own function. ";
    const from = placeOf(this.tried); // what is tried belongs to a lesson
    if (!place) return el("p", { class: "lesson-line" }, el("span", null, where),
      from ? go(from.lesson, `Back to lesson ${from.number}`, "Back", "back")
        : go(lessons[0], "Start at lesson 1", "Start", "start"));
    const { lesson, number, before, next } = place;
    return el("div", { class: "lesson-line" }, go(before, "←", "Lesson before", "before"),
      el("p", null, el("b", null, `Lesson ${number} of ${lessons.length}: ${lesson.name}`),
        el("span", { class: "lesson-ask" }, lesson.ask)),
      go(next, "→", "Next lesson", "next"));
  }

  details(place) {
    const { lesson, before, next } = place ?? {};
    const about = () => !lesson ? [] : [
      el("p", null, presetOf(lesson).about),
      el("p", null, el("b", null, "Question. "), lesson.ask),
      el("details", { class: "reveal" }, el("summary", null, "Show the answer"), el("p", null, lesson.answer)),
      lesson.try && el("button", { type: "button", class: "plain small", id: "lesson-try",
        onclick: () => this.attempt(lesson) }, lesson.try.what),
      el("p", null, el("b", null, "After it you can say: "), lesson.say),
      el("p", { class: "hint" }, before ? `Before: ${before.name}. ` : "This is the first lesson. ",
        next ? `Next: ${next.name}.` : "This is the last lesson."),
      el("p", { class: "hint" }, `Read on: ${lesson.source}.`)].filter(x => x);
    const list = () => el("ol", { class: "lesson-list" }, lessons.map(l => el("li", null,
      el("button", { type: "button", class: "link", "data-lesson": l.id,
        "aria-current": l === lesson ? "step" : null, onclick: () => this.onOpen(l.id) }, l.name))));
    const body = el("div", { class: "lesson-body" });
    const fill = () => body.replaceChildren(el("div", { class: "lesson-about" }, ...about()), list());
    return el("details", { class: "lesson-more", ontoggle: fill },
      el("summary", null, lesson ? "About this lesson, and all lessons" : "All lessons"), body);
  }
}
