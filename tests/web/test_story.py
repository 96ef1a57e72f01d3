"""Drives the story of the built page: test_story.py PAGE COMMAND chromium|firefox [NAME...].

The walks that follow each other, the lessons, the nudge test, tangents, memory, predictions and the
code beside the picture. PAGE, COMMAND and NAME are as in test_page.py."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from in_browser import main  # noqa: E402

PAGE = COMMAND = browser = None


def native(*args):
    done = subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


class StoryTest(unittest.TestCase):
    def open(self, fragment=""):
        browser.open("about:blank")
        browser.open(f"file://{PAGE}{fragment}")
        browser.wait("return document.body.dataset.ready", "the page to be ready")

    def tearDown(self):
        self.assertEqual([entry["message"] for entry in browser.log()], [], "the console is not silent")

    def set(self, selector, value, event="input"):
        browser.js("""const e = document.querySelector(arguments[0]); e.value = arguments[1];
            e.dispatchEvent(new Event(arguments[2], { bubbles: true }))""", selector, value, event)

    def click(self, selector):
        browser.js("document.querySelector(arguments[0]).click()", selector)

    def spoken(self, selector):
        """The text as it is read aloud: a bar or a dot over a name is in words."""
        return browser.js("""const copy = document.querySelector(arguments[0]).cloneNode(true);
            copy.querySelectorAll("[role=math]").forEach(e => e.replaceWith(e.getAttribute("aria-label")));
            return copy.textContent""", selector)

    def mode(self):
        return browser.js("return document.body.dataset.mode")

    # ---- one walk leads to the next --------------------------------------------------------------

    def test_the_forward_pass_leads_to_the_backward_pass_and_that_to_the_next_lesson(self):
        self.open("#p=product&mode=forward&step=1")
        self.assertEqual(browser.text("#step-text"), "Now backward")
        self.assertIn("reverse", browser.js("return document.getElementById('step').className"))
        self.assertEqual(browser.js("return document.getElementById('step').getAttribute('aria-disabled')"), "false")
        self.assertIn("That is the value", browser.text("#end"))
        self.click("#step")
        self.assertEqual(self.mode(), "reverse")
        self.assertEqual(browser.text("#scrub-label"), "Step 0 of 1")
        self.assertTrue(browser.js("return document.getElementById('end').hidden"))
        browser.press("Right")
        self.assertIn("This is backpropagation", browser.text("#end"))
        self.assertIn("when x grows by 0.01, f grows by about 0.03", browser.text("#end"))
        self.assertIn("You can now say: In a product", browser.text("#end"))
        # the next key leads to the card, and only the one after it to the next lesson
        self.assertEqual(browser.text("#step-text"), "What it means")
        browser.press("Right")
        self.assertEqual(self.mode(), "reverse")
        top = browser.js("return document.getElementById('end').getBoundingClientRect().top / innerHeight")
        self.assertTrue(0 <= top < 0.5, top)
        self.assertEqual(browser.text("#step-text"), "Next lesson")
        browser.press("Right")
        self.assertEqual(self.mode(), "forward")
        self.assertIn("Lesson 2 of", browser.text("#lessons"))

    def test_the_answer_of_a_lesson_comes_to_who_commits_to_one(self):
        self.open()
        self.assertIn("Lesson 1 of", browser.text("#lessons"))  # without a link
        self.open("#p=twice&mode=reverse&step=99")
        self.assertIn("The question was: The square gives 2x = 6. Why is the derivative 7?", browser.text("#end"))
        send = "document.querySelector('#end form').requestSubmit()"
        browser.js(send)
        self.assertIn("Write your answer first", browser.text("#end-answer"))
        self.set("#end-guess", "the sum")
        browser.js(send)
        self.assertIn("x moves both its users at once, and f feels both moves: so they add",
            browser.text("#end-answer"))
        # the keys walk on
        self.assertEqual(browser.js("return document.activeElement.id"), "end-next")

    def test_nearly_zero_is_said_to_be_zero(self):
        self.open("#e=x1*x2%2Bsin(x1)&i=x1:pi/2&i=x2:3&mode=reverse&step=2")
        self.assertIn("6.1232e−17 is 0 up to rounding", browser.text("#now"))

    def test_play_runs_through_both_walks_and_stops_at_the_end(self):
        self.open("#p=product&mode=forward&step=0&speed=4")
        self.click("#play")
        browser.wait("return document.body.dataset.mode === 'reverse'", "the backward pass")
        browser.wait("return !document.getElementById('end').hidden", "its end")
        browser.wait("return document.getElementById('play-text').textContent === 'Play'", "the end of playing")
        self.assertIn("This is backpropagation", browser.text("#end"))
        self.assertIn("Lesson 1 of", browser.text("#lessons"))

    # ---- the nudge test --------------------------------------------------------------------------

    def nudge(self):
        """Lines and verdict, read at once: a page that is asked for other numbers begins anew."""
        return browser.wait("""const done = document.querySelector("#nudge [data-kind]");
            if (!done || document.body.dataset.busy) return null;
            const lines = [...document.querySelectorAll("#nudge tbody tr")];
            return [lines.map(r => [Number(r.dataset.step), Number(r.dataset.error)]), done.dataset.kind]""",
            "the nudge test")

    def test_the_error_of_a_nudge_shrinks_with_the_square_of_the_step(self):
        self.open("#p=chain&mode=reverse&step=9")  # (x + y)²: the error of a step h is h² itself
        lines, kind = self.nudge()
        self.assertEqual(kind, "good")
        self.assertEqual(len(lines), 4)
        for h, error in lines:  # of numbers near 10, each rounded
            self.assertAlmostEqual(error, h * h, delta=1e-13)

    def test_a_corner_has_another_slope_on_its_other_side(self):
        self.open("#e=relu(x)&i=x:0&mode=reverse&step=1")  # there the convention is 0
        lines, kind = self.nudge()
        self.assertEqual(kind, "kink")
        self.assertTrue(all(h > 0 for h, _ in lines))
        self.click("#nudge-side")
        browser.wait("return document.querySelector('#nudge tbody tr')?.dataset.step < 0", "a step to the left")
        lines, kind = self.nudge()
        self.assertEqual((len(lines), kind), (4, "exact"))
        self.assertEqual(browser.js("return document.activeElement.id"), "nudge-side")

    def test_a_box_that_keeps_two_values_says_so(self):
        self.open("#p=product&mode=forward&step=1")
        kept = browser.js("return document.querySelector('.box.output .adjoint').textContent")
        self.assertEqual(kept, "keeps x, y")
        self.open("#e=rate*height&i=rate:2&i=height:3&mode=forward&step=1")
        kept = browser.js("return document.querySelector('.box.output .adjoint').textContent")
        self.assertEqual(kept, "keeps both")

    def test_a_nudge_tells_straight_lines_corners_and_lost_digits(self):
        for preset, kind in (("product", "exact"), ("kink", "kink"), ("precision", "rough"), ("seeds", "exact"),
                ("softmax", "good"), ("matrices", "exact")):
            self.open(f"#p={preset}&mode=reverse&step=99")
            self.assertEqual(self.nudge()[1], kind, preset)
        self.open("#p=first&mode=reverse&step=99")
        self.nudge()
        self.set("#nudge-input", "x2", "change")
        self.assertEqual(self.nudge()[1], "exact")  # x2 is only a factor

    def test_a_seed_is_said_wherever_the_gradient_is(self):
        self.open("#e=x1*x2%2Bsin(x1)&i=x1:pi/4&i=x2:3&seed=5&mode=reverse&step=99")
        self.assertEqual(self.nudge()[1], "good")
        words = browser.text("#end")
        self.assertIn("∂(5·f)/∂x1 = 18.536: when x1 grows by 0.01, 5·f grows by about 0.185, so f itself grows by "
            "about 0.0371", words)
        self.assertIn("5·f really moves", words)
        self.assertIn("∇(5·f)", browser.text("#answer"))
        self.set("#seed", "0")
        self.assertEqual(self.nudge()[1], "odd")
        self.assertNotIn("does not move f", browser.text("#end"))
        self.assertIn("a seed of 0 asks for nothing", browser.text("#end"))

    def test_a_corner_and_a_stopped_gradient_say_that_f_moves_all_the_same(self):
        for preset, said, kind, words in (
                ("kink", "∂f/∂x = 0: by convention. There is a corner", "kink", "at a corner"),
                ("teacher", "∂f/∂t = 0: stop_gradient cuts the way back. f does move with t", "hidden",
                "stop_gradient hides it")):
            self.open(f"#p={preset}&mode=reverse&step=99")
            self.assertEqual(self.nudge()[1], kind)
            self.assertIn(said, browser.text("#end"))
            self.assertIn(words, browser.text("#nudge"))
            self.assertNotIn("does not move f", browser.text("#end"))
        self.assertNotIn("detach", browser.text("#registers"))
        self.assertIn("stop_gradient(v₁)", browser.text("#registers"))

    # ---- lessons ---------------------------------------------------------------------------------

    def test_the_lessons_are_a_path_and_each_can_be_walked_to_its_end(self):
        self.open("#p=product&mode=forward&step=0")
        self.assertEqual(browser.js("return document.getElementById('lesson-before').getAttribute('aria-disabled')"),
            "true")
        seen = []
        while True:
            self.assertIsNone(browser.js("const e = document.getElementById('error'); return e.hidden ? null : "
                "e.innerText"), seen)
            seen.append(browser.js("return document.querySelector('#lessons b').textContent"))
            browser.js("document.querySelector('.lesson-more').open = true")
            browser.wait("return !!document.querySelector('.lesson-about p')", "the lesson")
            words = browser.text("#lessons")
            for part in ("Question.", "Show the answer", "After it you can say", "Read on"):
                self.assertIn(part, words, seen[-1])
            self.click("#tab-reverse")
            browser.js("const s = document.getElementById('scrub'); s.value = s.max; s.dispatchEvent(new "
                "Event('input'))")
            self.assertIn("This is backpropagation", browser.text("#end"), seen[-1])
            if browser.js("return document.getElementById('lesson-next').getAttribute('aria-disabled')") == "true":
                break
            self.click("#lesson-next")
        self.assertEqual(len(seen), len(set(seen)))
        self.assertIn(f"Lesson {len(seen)} of {len(seen)}", seen[-1])
        for name in ("multiplication", "Sharing", "Seeds", "Vectors", "Matrices", "Softmax", "graph network",
                "Vanishing", "Kinks", "No gradient", "in place", "Loops", "Checkpoints", "Precision"):
            self.assertTrue(any(name in title for title in seen), name)

    def test_results_that_share_an_input_and_words_at_their_first_use(self):
        self.open("#p=seeds&mode=reverse&step=99")
        self.assertIn("[v₁, v₂, x]", browser.text("#registers"))
        self.assertEqual(browser.texts("#answer dd"), ["31.1", "21"])  # 10·y + 1.1, 10·x + 1
        self.assertIn("The Jacobian is the table of all derivatives", browser.text("#end"))
        self.open("#p=seeds&mode=tangent&step=99")
        self.assertIn("A walk back gives one weighted sum of the results; all of them need 3 walks back",
            browser.text("#tangent-count"))
        self.open("#p=dot&mode=reverse&step=1")
        self.assertIn("Broadcast: one number, or a row, is copied", browser.text("#now"))
        self.assertIn("green is positive, purple negative", browser.text("#figures"))
        self.assertIn("axes=0", browser.js("return document.querySelector('.words').textContent"))
        self.open("#p=softmax&mode=forward&step=0")
        self.assertIn("softmax turns scores s into probabilities", browser.text("#about"))

    def test_cross_entropy_hands_back_probability_minus_truth(self):
        self.open("#p=softmax&mode=reverse&step=99")
        self.assertIn("p − y: probability minus truth = [0.659, 0.2424, 0.09857] − [1, 0, 0]",
            browser.text("#p-minus-y"))
        self.open("#e=-sum(y*log_softmax(s))&i=s:[2,1]&i=y:[1,-1]&fixed=y&mode=reverse&step=99")
        # these weights sum to 0
        self.assertIsNone(browser.js("return document.getElementById('p-minus-y')"))
        self.open("#p=gcn&mode=reverse&step=5")
        self.assertIn("0.16667·(p − y)", browser.text("#p-minus-y"))

    # ---- tangents --------------------------------------------------------------------------------

    def tangents(self):
        return browser.js("""return Object.fromEntries([...document.querySelectorAll("#registers tbody tr")].map(row =>
            [row.dataset.node, row.querySelector("[data-adjoint]")?.dataset.adjoint ?? null]))""")

    def test_tangents_walk_forward_for_one_input_at_a_time(self):
        self.open("#p=first&mode=tangent&step=0")
        want = native("trace", "--json", "--", "x1*x2 + sin(x1)", "x1=pi/4", "x2=3")
        self.assertEqual({k for k, v in self.tangents().items() if v}, {"0", "1"})
        self.click("#step")
        self.assertIn("tangent of x1·x2 + tangent of x2·x1 = 1·3 + 0·0.7854 = 3", self.spoken("#now"))
        self.assertIn("1 × 3 = 3", " ".join(browser.js("return [...document.querySelectorAll('#graph .flow-label')]"
            ".map(e => [...e.querySelectorAll('text')].map(t => t.textContent).join(' '))")))
        for name in ("x1", "x2"):
            browser.press("End")
            shown = self.tangents()
            self.assertEqual({int(k): float(v) for k, v in shown.items()},
                {t["node"]: t["tangent"] for t in want["tangents"][name]})
            # the last tangent is the derivative that the walk back gives
            self.assertAlmostEqual(want["tangents"][name][-1]["tangent"], want["grad"][name], delta=1e-15)
            if name == "x1":
                self.assertEqual(browser.text("#step-text"), "Now along x2")
                self.assertIn("not walked yet", browser.text("#tangent-table"))
                self.click("#step")
        self.assertIn("2 of 2 walks done", browser.text("#tangent-count"))
        self.assertNotIn("not walked yet", browser.text("#tangent-table"))
        self.assertIn("along=x2", browser.js("return location.hash"))
        self.assertEqual(browser.text("#step-text"), "Now backward")

    def test_tangents_of_matrices_and_of_what_does_not_move(self):
        self.open("#p=gcn&mode=tangent&step=99")
        self.click("#tangent-input")
        browser.js("document.getElementById('tangent-input').dispatchEvent(new Event('change'))")
        self.assertIn("along=", browser.js("return location.hash"))
        self.open("#p=teacher&mode=tangent&step=99")  # the teacher is cut off
        self.assertEqual(browser.js("return [...document.getElementById('tangent-input').options].map(o => o.value)"),
            ["t", "s"])
        self.assertIn("It does not move with t", browser.text("#now"))

    def test_a_vector_moves_in_one_place_at_a_time(self):
        self.open("#p=dot&mode=tangent&step=99&along=x[1]")
        self.assertEqual(browser.js("return [...document.getElementById('tangent-input').options].map(o => o.value)"),
            ["x[0]", "x[1]", "x[2]", "y[0]", "y[1]", "y[2]"])
        self.assertIn("That is the derivative of f by x[1]", browser.text("#now"))
        self.assertEqual(browser.texts("[data-walk='x[1]'] td"), ["5", "5"])  # in both directions
        self.assertIn("All 6 numbers of the inputs need 6 walks; the backward pass needs one", browser.text("#end"))
        self.assertIn("1 of 6 walks", browser.text("#tangent-count"))
        self.click("#tab-cost")
        self.assertEqual(browser.js("return document.querySelector('#cost-own [data-row=sweeps] td').dataset.value"),
            "6")
        many = ",".join(["1"] * 25)  # too many for a walk each
        self.open(f"#e=sum(x*x)&i=x:[{many}]&mode=tangent&step=99")
        self.assertIn("along x as a whole", browser.text("#now"))
        self.assertIn("One number at a time takes 25 walks", browser.text("#tangent-count"))

    # ---- predictions -----------------------------------------------------------------------------

    def ask(self, kind):
        self.set("#guess-kind", kind, "change")

    def choose(self, value):
        self.click(f"#guess-choices [data-choice={value}]")

    def guess(self, text):
        self.set("#guess-value", text)
        browser.js("document.getElementById('guess-form').requestSubmit()")

    def forget(self):
        browser.now("localStorage.clear()")

    def test_a_prediction_is_offered_and_commits_before_the_step(self):
        self.open("#p=first&mode=reverse&step=1")
        self.forget()
        self.open("#p=first&mode=reverse&step=1")
        self.assertIn("Which sign will adjoint of x1 have after this step, so far?", self.spoken("#guess-question"))
        self.choose("negative")
        self.assertIn("Not negative", browser.text("#guess-answer"))
        self.assertIn("Try once more", browser.text("#guess-answer"))
        self.assertEqual(browser.text("#scrub-label"), "Step 1 of 3")  # nothing is revealed yet
        self.choose("positive")
        self.assertIn("Right. It is positive: adjoint of x1 = 0.70711", self.spoken("#guess-answer"))
        self.assertEqual(browser.text("#scrub-label"), "Step 2 of 3")
        self.assertIn("1 of 1 right", browser.text("#guess-score"))
        for value in ("zero", "negative"):
            self.choose(value)
        # told after two tries
        self.assertIn("It is positive: adjoint of x1 = 3.7071", self.spoken("#guess-answer"))
        self.assertEqual(browser.text("#scrub-label"), "Step 3 of 3")
        # the score stays in the browser, and not in the link
        self.open("#p=product&mode=forward&step=0")
        score = "document.getElementById('guess-score').textContent"
        browser.wait(f"return {score}.startsWith('1 of 2 right')", "the score")
        # another page's answers count here too
        browser.js("""dispatchEvent(new StorageEvent("storage", { key: "cotangent-score", newValue: "[3,4]" }))""")
        self.assertIn("3 of 4 right", browser.text("#guess-score"))
        self.assertNotIn("score", browser.js("return location.hash"))

    def test_three_hints_come_one_by_one(self):
        self.open("#p=first&mode=reverse&step=1")
        all_words = ("times its own derivative", "adjoint of x1 gets adjoint of", "1·cos(0.7854)")
        for count, words in enumerate(all_words, 1):
            self.click("#guess-hint")
            self.assertEqual(len(browser.texts("#guess-hints li")), count)
            self.assertIn(words, self.spoken("#guess-hints li:last-child"))
        self.assertEqual(browser.text("#guess-hint"), "No more hints")
        self.click("#guess-hint")
        self.assertEqual(len(browser.texts("#guess-hints li")), 3)

    def test_a_wrong_number_gets_its_reason(self):
        self.open("#p=first&mode=reverse&step=2")
        self.ask("number")
        self.assertIn("holds 0.70711 now", browser.text("#guess-question"))
        self.guess("nonsense")
        self.assertIn("Write a number", browser.text("#guess-answer"))
        self.guess("3")
        self.assertIn("they add up", browser.text("#guess-answer"))
        self.assertEqual(browser.text("#scrub-label"), "Step 2 of 3")
        self.guess("0.7071 + 3")
        self.assertIn("Right, to within", browser.text("#guess-answer"))
        # what was right stands above what is asked next
        self.assertTrue(browser.js("return !!(document.getElementById('guess-answer').compareDocumentPosition("
            "document.getElementById('guess-question')) & Node.DOCUMENT_POSITION_FOLLOWING)"))
        for text, right in (("cos(pi/4)", True), ("0.71", True), ("sqrt(2)/2", True), ("2**-(1/2)", True),
                ("cos(pi/4", False), ("alert(1)", False), ("1 2", False)):
            self.open("#p=first&mode=reverse&step=1")
            self.ask("number")
            self.guess(text)
            self.assertIn("ight" if right else "Write a number", browser.text("#guess-answer"), text)
        for text, words in (("-0.70711", "the sign is not"), ("0.75", "Close: off by 6.1 %"), ("1", "multiplied by"),
                ("100", "Too large"), ("inf", "Not quite")):
            self.open("#p=first&mode=reverse&step=1")
            self.ask("number")
            self.guess(text)
            self.assertIn(words, browser.text("#guess-answer"), text)

    def test_values_are_asked_for_in_the_forward_pass(self):
        self.open("#p=first&mode=forward&step=0")
        self.ask("size")
        self.choose("more")  # 2.3562
        self.assertIn("Right", browser.text("#guess-answer"))
        self.assertEqual(browser.text("#scrub-label"), "Step 1 of 3")
        self.ask("number")
        self.guess("0.7071")
        self.assertIn("Right", browser.text("#guess-answer"))

    def test_a_moved_input_grows_shrinks_or_stays(self):
        # (x1 + x2)·x1: by x1 it is 2·x1 + x2, by x2 it is x1
        self.open("#p=reused&mode=reverse&step=0")
        self.ask("move")
        want = {("x1", "x2"): "grows", ("x2", "x1"): "grows", ("x1", "x1"): "grows", ("x2", "x2"): "stays"}
        seen = set()
        for _ in range(4):
            browser.wait("return !!document.querySelector('#guess-choices button')", "the question")
            words = self.spoken("#guess-question")
            pair = (words.split()[1].strip(","), words.split("adjoint of ")[1].split()[0])
            seen.add(pair)
            self.choose(want[pair])
            self.assertIn("Right", browser.text("#guess-answer"), pair)
            self.assertIn(f"it {want[pair]}", browser.text("#guess-answer"))
        self.assertEqual(seen, set(want))

    def test_on_a_phone_the_verdict_is_on_the_screen_and_buttons_cover_no_tabs(self):
        browser.size(390, 844)
        try:
            self.open("#p=reused&mode=reverse&step=1")
            self.choose("zero")
            seen = browser.js("const r = document.getElementById('verdict').getBoundingClientRect(); "
                "return r.height > 0 && r.top > 0 && r.bottom <= innerHeight")
            self.assertTrue(seen)
            self.ask("number")
            browser.js("document.getElementById('guess-value').focus()")
            for selector in ("#tab-forward", "#tab-reverse", "#tab-cost"):
                self.assertTrue(browser.js("""const r = document.querySelector(arguments[0]).getBoundingClientRect();
                    const top = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
                    return top.closest("[role=tab]") !== null""", selector), selector)
        finally:
            browser.size(1280, 800)

    def test_a_note_stays_in_the_browser(self):
        self.open("#p=product&mode=forward&step=1")
        browser.js("document.getElementById('note').open = true")
        self.set("#note-text", "the only operation")
        self.open("#p=product&mode=forward&step=1")
        self.assertEqual(browser.js("return document.getElementById('note-text').value"), "the only operation")
        self.assertNotIn("operation", browser.js("return location.hash"))
        self.open("#p=chain&mode=forward&step=1")
        self.assertEqual(browser.js("return document.getElementById('note-text').value"), "")
        self.forget()

    # ---- code ------------------------------------------------------------------------------------

    def code(self, selector="#code-text"):
        return browser.js("return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def test_the_line_of_the_step_is_lit_in_program_and_adjoint_code(self):
        self.open("#p=first&mode=forward&step=1&code=program")
        self.assertRegex(self.code("#code-text .lit"), r"cot_var v\d = cot_mul\(x1, x2\);")
        self.click("#step")
        self.assertRegex(self.code("#code-text .lit"), r"cot_var v\d = cot_sin\(x1\);")
        self.assertIn("cot_var x2 = cot_scalar(t, 3.0);", self.code())
        self.click("#tab-reverse")
        self.click("#step")
        self.click("#step")
        self.assertRegex(self.code("#code-text .lit"), r"x1_bar \+= v\d_bar \* cos\(x1\);")
        self.click("#step")
        self.assertEqual(browser.js("return document.querySelectorAll('#code-text .lit').length"), 2)
        self.assertRegex(self.code("#code-text .lit"), r"x1_bar \+= v\d_bar \* x2;")
        self.assertIn("code=adjoint", browser.js("return location.hash"))

    def test_the_adjoint_code_is_c_that_computes_the_gradient(self):
        expression, inputs = "(1 - x)**2 + 100*(y - x**2)**2 + sin(x)/y", ["x=-1.2", "y=0.7"]
        fields = [("e", expression), ("i", "x:-1.2"), ("i", "y:0.7"), ("mode", "reverse"), ("code", "adjoint")]
        self.open("#" + urllib.parse.urlencode(fields))
        trace = native("trace", "--json", "--", expression, *inputs)
        source = "#include <math.h>\n#include <stdio.h>\n" + self.code() + "int main(void) { by_hand(); return 0; }\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "adjoint")
            with open(path + ".c", "w") as f:
                f.write(source)
            subprocess.run(["cc", "-o", path, path + ".c", "-lm"], check=True, capture_output=True)
            said = subprocess.run([path], capture_output=True, text=True).stdout
            got = [float(line.split(" = ")[1]) for line in said.splitlines()]
        self.assertEqual(len(got), 3)
        self.assertAlmostEqual(got[0], trace["value"], delta=1e-14 * abs(trace["value"]))
        for name, value in zip("xy", got[1:]):  # some ten operations, each rounded
            self.assertAlmostEqual(value, trace["grad"][name], delta=1e-14 * abs(trace["grad"][name]))

    def test_the_exported_c_is_that_of_the_native_command(self):
        self.open("#p=first&mode=reverse&step=0&code=export")
        browser.wait("return document.getElementById('code-text').textContent.includes('int f(')", "the exported C")
        want = native("compile", "--json", "--libm", "--grad", "--", "x1*x2 + sin(x1)", "x1=pi/4", "x2=3")["source"]
        self.assertEqual(self.code().strip(), want.strip())

    # ---- memory ----------------------------------------------------------------------------------

    def test_memory_of_the_plans_is_that_of_the_native_command(self):
        self.open("#p=states&mode=cost&size=20,256,16,4,8")
        want = native("cost", "--json", "--depth", "20", "--width", "256", "--batch", "16", "--states", "4", "--micro",
            "8")
        shown = browser.js("""return [...document.querySelectorAll("#memory [data-plan]")].map(r => ({ name:
            r.dataset.plan, ...Object.fromEntries([...r.querySelectorAll("td")].map(c => [c.dataset.key,
            Number(c.dataset.value)])) }))""")
        self.assertEqual(shown, want["plans"])
        self.assertEqual(browser.js("return document.querySelectorAll('#memory .curves path').length"), 8)
        self.set("#memory-depth", 0)
        self.assertIn("size=2%2C256", browser.js("return location.hash"))
        self.assertEqual(browser.js("return document.querySelector('[data-plan=plain] td').dataset.value"), "2")

    def test_half_precision_and_a_limit_are_plans_of_the_native_command(self):
        self.open("#p=states&mode=cost&size=100,256,16,4,8,2,65536")
        want = native("cost", "--json", "--depth", "100", "--width", "256", "--batch", "16", "--states", "4", "--micro",
            "8", "--precision", "bf16", "--limit", "64KiB")["plans"]
        shown = browser.js("""return [...document.querySelectorAll("#memory [data-plan]")].map(r =>
            [r.dataset.plan, Number(r.querySelector("[data-key=bytes]").dataset.value)])""")
        self.assertEqual(shown, [[p["name"], p["bytes"]] for p in want])
        self.assertEqual(shown[4][0], "limit")
        self.assertLessEqual(shown[4][1], 65536)
        self.assertEqual(shown[0][1], 100 * 256 * 16 * 2)
        self.assertEqual(browser.text("[for=memory-bytes] ~ output"), "bf16")
        self.assertEqual(browser.js("return document.querySelectorAll('#memory .curves line.limit').length"), 1)

    def test_tangents_can_be_predicted(self):
        self.open("#p=first&mode=tangent&step=1&along=x1")
        self.assertFalse(browser.js("return document.getElementById('guess').hidden"))
        self.assertIn("sin(x1)", browser.text("#guess-question"))
        self.click("[data-choice=positive]")
        self.assertIn("Right", browser.text("#guess-answer"))
        self.assertIn("0.7071", browser.text("#guess-answer"))
        self.forget()

    def test_a_node_with_a_note_has_a_mark(self):
        self.forget()
        self.open("#p=first&mode=forward&step=1")
        noted = "return [...document.querySelectorAll('#graph .noted')].map(g => g.dataset.node)"
        self.assertEqual(browser.js(noted), [])
        browser.js("""const t = document.getElementById("note-text"); t.value = "why?";
            t.dispatchEvent(new Event("input"));""")
        self.assertEqual(browser.js(noted), ["2"])
        self.click("#step")
        self.assertEqual(browser.js(noted), ["2"])
        self.forget()

    def test_a_product_begins_with_small_matrices(self):
        self.open("#p=first&mode=forward&step=0")
        browser.js("""const e = document.getElementById("expression"); e.value = "A @ x";
            e.dispatchEvent(new Event("input"));""")
        browser.wait("return !document.body.dataset.busy && document.getElementById('input-A') !== null",
                     "the new inputs")
        texts = browser.js("return ['A', 'x'].map(n => document.getElementById('input-' + n).value)")
        self.assertEqual(texts, ["[[1, 2], [3, 4]]", "[5, 6]"])
        self.assertEqual(browser.js("return document.querySelectorAll('.error:not([hidden])').length"), 0)

    def test_reverse_mode_keeps_more_where_a_function_is_deeper(self):
        self.open("#p=first&mode=cost&n=100&m=1&size=10,1,1,2,1")
        kept = "return [...document.querySelectorAll('[data-row=kept] [data-value]')].map(c => Number(c.dataset.value))"
        own = [0, 16]  # of the function on the page: x1 and x2
        self.assertEqual(browser.js(kept), [0, 10 * 100 * 8, *own])
        self.set("#memory-depth", 17)
        self.assertEqual(browser.js(kept), [0, 1000 * 100 * 8, *own])

    def test_cost_has_the_colours_of_the_walks_and_explains_its_words(self):
        self.open("#p=states&mode=cost&n=1&m=1&size=16,512,64,3,8")
        green = "const c = getComputedStyle(document.querySelector(arguments[0])).color.match(/\\d+/g).map(Number); " \
            "return c[1] > c[0] && c[1] > c[2]"
        self.assertTrue(browser.js(green, ".compare thead th"))
        self.assertIn("Forward mode (tangents)", browser.text(".compare thead"))
        self.assertNotIn("0.5 output", browser.text("#cost .verdict"))  # there are no half outputs
        means = browser.js("return [...document.querySelectorAll('#memory input[aria-describedby]')].map(e => "
            "document.getElementById(e.getAttribute('aria-describedby')).textContent.length)")
        self.assertEqual(len(means), 7)
        self.assertTrue(all(length > 20 for length in means), means)
        browser.size(390, 844)
        try:  # no square is cut off
            self.set("#rewind-at", 0)
            self.assertLessEqual(browser.js("const r = document.querySelector('.rewind'); return r.scrollWidth - "
                "r.clientWidth"), 0)
        finally:
            browser.size(1280, 800)
        self.set("#rewind-at", 1)
        self.assertIn("So far 1 run, 0 of them again; 1 state is held", browser.text("#rewind-said"))
        self.set("#rewind-at", 12)  # step 10 runs, from a state that is kept
        edges = "return [...document.querySelectorAll('.rewind .kept')].map(e => getComputedStyle(e).stroke)"
        self.assertEqual(len(set(browser.js(edges))), 1)
        self.assertEqual(len(browser.js(edges)), 3)

    def test_the_checkpointed_sweep_shows_what_is_kept_and_what_runs_again(self):
        self.open("#p=states&mode=cost&size=8,1,1,2,1")
        schedule = native("cost", "--json", "--depth", "8", "--states", "2")
        last = browser.js("return Number(document.getElementById('rewind-at').max)")
        held, runs = 0, 0
        for at in range(1, last + 1):
            self.set("#rewind-at", at)
            held = max(held, browser.js("return document.querySelectorAll('.rewind .kept').length"))
        plan = schedule["plans"][2]
        self.assertIn(f"So far {plan['runs']} runs", browser.text("#rewind-said"))
        self.assertEqual(held, plan["kept"])
        self.assertEqual(browser.js("return document.querySelectorAll('.rewind .reversed').length"), 8)
        runs = sum(event[2] - event[1] for event in schedule["schedule"] if event[0] == "run")
        self.assertIn(f"{runs - 8} of them again", browser.text("#rewind-said"))

    # ---- lessons that are tried ------------------------------------------------------------------

    def test_a_lesson_lets_one_try_what_is_refused(self):
        self.open("#p=inplace&mode=forward&step=0")
        browser.js("document.querySelector('.lesson-more').open = true")
        browser.wait("return !!document.getElementById('lesson-try')", "the lesson")
        self.click("#lesson-try")
        browser.wait("return document.body.classList.contains('stale')", "the refusal")
        self.assertIn("y[0] = … would write into the array y. The tape may have kept y", browser.text("#error"))
        self.assertIn("only names can be assigned to", browser.text("#error"))
        self.assertEqual(browser.text("#lesson-back"), "Back to lesson 17")
        self.click("#lesson-back")
        self.assertIn("Lesson 17 of", browser.text("#lessons"))
        self.click("#lesson-next")
        self.open("#e=x%2Bx&i=x:1")  # nothing was tried here
        self.assertEqual(browser.text("#lesson-start"), "Start at lesson 1")

    def test_the_last_lesson_has_a_last_word(self):
        self.open("#p=precision&mode=reverse&step=99")
        self.assertIn("That was the last lesson", browser.text("#end"))


if __name__ == "__main__":
    main(StoryTest, ["PAGE", "COMMAND"])
