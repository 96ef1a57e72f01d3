// walks.js: the ways to walk along a tape, and all that differs between them. The page knows no
// walk by name: another one is another record here, and a tab with its name.
import { forwardBrief, forwardFigures, forwardIntro } from "./forward.js";
import { forwardText, forwardView, keepsColumn } from "./forward.js";
import { adjointColumn, barHint, reverseBrief, reverseFigures } from "./reverse.js";
import { reverseIntro, reverseText, reverseView } from "./reverse.js";
import { tangentBrief, tangentColumn, tangentFigures, tangentHint } from "./tangents.js";
import { tangentIntro, tangentNodes, tangentText, tangentView } from "./tangents.js";

// word: on the button of a step; table: title of the table; nodes(tape): the node that acts in each
// step; intro(tape): before the first step; hint(tape): below the text of a later one; column: the
// last one of the table; view(tape, step): what the graph shows; text, brief, figures: what is said
// about a step.
export const walks = {
  forward: {
    word: "Next step", table: "The tape", nodes: tape => tape.ops.map(n => n.id),
    intro: () => [forwardIntro], hint: () => [], column: keepsColumn,
    view: forwardView, text: forwardText, brief: (tape, step) => [forwardBrief(tape, step)], figures: forwardFigures
  },
  reverse: {
    word: "Sweep step", table: "Adjoint registers", nodes: tape => tape.sweep.map(s => s.node),
    intro: reverseIntro, hint: barHint, column: adjointColumn,
    view: reverseView, text: reverseText, brief: reverseBrief, figures: reverseFigures
  },
  tangent: {
    word: "Tangent step", table: "Tangents", nodes: tangentNodes, intro: tangentIntro, hint: tangentHint,
    column: tangentColumn, view: tangentView, text: tangentText, brief: tangentBrief, figures: tangentFigures
  },
};

export const isWalk = mode => mode in walks;
