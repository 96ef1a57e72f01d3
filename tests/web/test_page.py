"""Drives the built page: test_page.py PAGE COMMAND chromium|firefox [NAME...].

PAGE is cotangent.html, COMMAND the native program whose numbers the page must show. One browser
serves all tests; after each the console must be silent. Names choose tests."""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from in_browser import main  # noqa: E402

PAGE = COMMAND = browser = None

# Elementwise operations have the same bits on the page, but it has no fused multiply-add for matrix
# products. Such an operation differs by a few units in the last place, and tapes here have at most
# some thirty operations.
TOLERANCE = 1e-13


def native(*args):
    done = subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def numbers(value):
    """All numbers of a value, in order."""
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in numbers(value[key])]
    if isinstance(value, list):
        return [x for item in value for x in numbers(item)]
    return [float(value)]


def nearly(a, b):
    a, b = numbers(a), numbers(b)
    scale = max([1e-300] + [abs(x) for x in b if math.isfinite(x)])
    return len(a) == len(b) and all(
        x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= TOLERANCE * scale for x, y in zip(a, b))


class PageTest(unittest.TestCase):
    def open(self, fragment="", unfold=False):
        browser.open("about:blank")
        browser.open(f"file://{PAGE}{fragment}")
        browser.wait("return document.body.dataset.ready", "the page to be ready")
        if unfold:
            self.unfold()

    def tearDown(self):
        self.assertEqual([entry["message"] for entry in browser.log()], [], "the console is not silent")

    def unfold(self):
        """The card of the function folds with the first step; who changes something opens it."""
        if browser.js("return document.body.classList.contains('folded')"):
            browser.click("#fold")

    def step(self, times=1):
        for _ in range(times):
            browser.click("#step")

    def registers(self):
        """What the table shows: {register: adjoint as a number, or None}."""
        return browser.js("""return Object.fromEntries([...document.querySelectorAll("#registers tbody tr")].map(row =>
            [row.querySelector("th").innerText, row.querySelector("[data-adjoint]")?.dataset.adjoint ?? null]))""")

    def gradient(self):
        return browser.js("""return Object.fromEntries([...document.querySelectorAll("[data-grad]")].map(e =>
            [e.dataset.grad, JSON.parse(e.dataset.value)]))""")

    def spoken(self, selector):
        """The text as it is read aloud: a bar over a name is in words."""
        return browser.js("""const copy = document.querySelector(arguments[0]).cloneNode(true);
            copy.querySelectorAll("[role=math]").forEach(e => e.replaceWith(e.getAttribute("aria-label")));
            return copy.textContent""", selector)

    def error(self):
        return browser.js("const e = document.getElementById('error'); return e.hidden ? null : e.innerText")

    def arguments(self):
        """The state of the page as arguments of the command, from the address."""
        fields = urllib.parse.parse_qs(browser.js("return location.hash").lstrip("#"), keep_blank_values=True)
        inputs = [i.split(":", 1) for i in fields.get("i", [])]
        fixed = fields.get("fixed", [""])[0].split(",")
        wanted = [name for name, _ in inputs if name not in fixed]
        options = ["--seed", fields["seed"][0]] if "seed" in fields else []
        options += ["--wrt", ",".join(wanted)] if len(wanted) < len(inputs) else []
        return [*options, "--", fields["e"][0], *(f"{name}={text}" for name, text in inputs)]

    # ---- stepping --------------------------------------------------------------------------------

    def test_example_1_steps_forward_and_lights_its_nodes_in_order(self):
        self.open("#p=first")
        self.assertEqual(browser.js("return document.querySelector('#expression').value"), "x1*x2 + sin(x1)")
        lit = "return [...document.querySelectorAll('.box.lit .what')].map(e => e.textContent)"
        self.assertEqual(len(browser.js(lit)), 2)  # the inputs
        self.step()
        self.assertIn("x1·x2 = 0.7854·3 = 2.3562", browser.text("#now"))
        self.assertIn("Keeps x1 and x2", browser.text("#now"))
        self.step()
        self.assertIn("0.70711", browser.text("#now"))
        self.assertEqual(len(browser.js(lit)), 4)
        self.step()
        self.assertEqual(browser.js(lit)[-1].split(" = ")[1], "v₁ + v₂")
        self.assertIn("3.0633", browser.text("#now"))
        self.assertEqual(browser.text("#value"), "3.0633")
        browser.click("#back")
        self.assertEqual(len(browser.js(lit)), 4)
        browser.click("#reset")
        self.assertEqual(len(browser.js(lit)), 2)

    def test_example_1_steps_backward_and_fills_the_registers(self):
        self.open("#p=first")
        browser.click("#tab-reverse")
        self.assertEqual(self.registers(), {"x1": None, "x2": None, "v₁": None, "v₂": None, "f": "1"})
        self.step()
        self.assertEqual(self.registers(), {"x1": None, "x2": None, "v₁": "1", "v₂": "1", "f": "1"})
        self.step()
        self.assertTrue(nearly(float(self.registers()["x1"]), math.cos(math.pi / 4)))
        self.assertIn("adjoint of x1 gets adjoint of v₂·cos(x1) = 1·cos(0.7854) = 0.70711", self.spoken("#now"))
        self.assertEqual(self.gradient(), {})
        self.step()
        self.assertIn("Paths meet", browser.text("#now"))
        self.assertIn("0.70711 + 3 = 3.7071", browser.text("#registers").replace("\u2212", "-"))
        self.assertTrue(nearly(self.gradient(), {"x1": 3 + math.cos(math.pi / 4), "x2": math.pi / 4}))
        self.assertEqual(browser.text("#now-title").upper(), "THIS STEP")

    def test_a_seed_scales_the_gradient(self):
        self.open("#p=first&mode=reverse")
        browser.type("#seed", "2")
        browser.now("scrollTo(0, 0)")  # from the field back to the buttons
        self.step(3)
        self.assertTrue(nearly(self.gradient()["x2"], math.pi / 2))
        browser.type("#seed", "[1, 2]")
        self.assertFalse(browser.js("return document.getElementById('error').hidden"))
        browser.type("#seed", "1")
        self.assertTrue(browser.js("return document.getElementById('error').hidden"))

    def test_keys_step_scrub_and_play(self):
        self.open("#p=first")
        at = "return document.getElementById('scrub').value"
        browser.js("document.activeElement.blur()")
        for key, want in [("Right", "1"), ("Right", "2"), ("Left", "1"), ("End", "3"), ("Home", "0")]:
            browser.press(key)
            self.assertEqual(browser.js(at), want, key)
        browser.press("p")
        browser.wait("return document.getElementById('scrub').value === '3'", "playing to the end", 10)
        browser.wait("return document.getElementById('play-text').textContent === 'Play'", "the end of playing")
        browser.js("const s = document.getElementById('scrub'); s.value = 2; s.dispatchEvent(new Event('input'))")
        self.assertIn("Step 2 of 3", browser.text("#scrub-label"))
        self.unfold()
        browser.js("document.getElementById('expression').focus()")
        browser.press("Left")  # belongs to the text now
        self.assertEqual(browser.js(at), "2")
        browser.js("document.getElementById('tab-forward').focus()")
        browser.press("Right")
        self.assertEqual(browser.js("return document.body.dataset.mode"), "reverse")
        self.assertEqual(browser.js("return document.activeElement.id"), "tab-reverse")

    # ---- inputs ----------------------------------------------------------------------------------

    def test_a_slider_moves_the_numbers(self):
        self.open("#p=first&mode=reverse&step=3", unfold=True)
        browser.js("""const s = document.querySelector(".input:nth-child(2) input[type=range]"); s.value = -2;
            s.dispatchEvent(new Event("input"))""")
        self.assertEqual(browser.js("return document.getElementById('input-x2').value"), "-2")
        self.assertTrue(nearly(self.gradient()["x1"], math.cos(math.pi / 4) - 2))
        browser.type("#input-x1", "pi")
        self.assertTrue(nearly(self.gradient()["x1"], -3))
        self.assertEqual(browser.text("#scrub-label"), "Step 3 of 3")
        browser.js("document.querySelector('.input input[type=range]').focus()")
        browser.press("Right")
        self.assertNotEqual(browser.js("return document.getElementById('input-x1').value"), "pi")

    def test_a_slider_reaches_as_far_as_its_number(self):
        self.open("#e=x*x&i=x:3")
        bounds = "const s = document.querySelector('.input input[type=range]'); return [Number(s.min), Number(s.max)]"
        for text, want in (("0.003", [-0.01, 0.01]), ("700", [-2000, 2000]), ("2", [-5, 5]),
                ("1e-4", [-0.0002, 0.0002]), ("0", [-0.0002, 0.0002])):
            browser.type("#input-x", text)
            self.assertEqual(browser.js(bounds), want, text)

    def test_names_that_are_typed_become_inputs(self):
        self.open()
        browser.type("#expression", "u**2 * v + u")
        self.assertEqual(browser.texts(".input > label:first-child"), ["u", "v"])
        browser.type("#input-u", "3")
        browser.click("#tab-reverse")
        browser.press("End")
        self.assertTrue(nearly(self.gradient(), {"u": 7, "v": 9}))
        self.assertEqual(browser.js("return document.getElementById('preset').value"), "")
        browser.js("document.querySelector('.input:nth-child(2) .wrt input').click()")
        self.assertEqual(list(self.gradient()), ["u"])
        # none is left: not all of them again
        browser.js("document.querySelector('.input:nth-child(1) .wrt input').click()")
        self.assertEqual(self.error(), "There is nothing to differentiate by: tick ∂ beside at least one input.")
        browser.js("document.querySelector('.input:nth-child(2) .wrt input').click()")
        self.assertEqual(list(self.gradient()), ["v"])
        browser.js("document.querySelector('.input:nth-child(2) .wrt input').click()")
        self.unfold()
        browser.type("#expression", "u**2")  # one alone has no box
        self.assertEqual(list(self.gradient()), ["u"])

    def test_what_is_written_in_any_way_has_the_inputs_that_the_engine_wants(self):
        self.open()
        for expression, inputs in [("sum(A.T @ v)", ["A", "v"]), ("q, r = qr(A); sum(r)", ["A"]),
                                   ("a = b = x; a*b", ["x"]), ("y += x; y*y", ["y", "x"]),
                                   ("sum(cast(v, float16), axis=0)", ["v"]), ("h = (x +\n y)\nh*x",
                                   ["x", "y"]), ("x if x == y else 1e3*x", ["x", "y"])]:
            browser.js("const e = document.getElementById('expression'); e.value = arguments[0]; e.dispatchEvent(new "
                "Event('input'))", expression)
            self.assertEqual(browser.texts(".input > label:first-child"), inputs, expression)
            self.assertNotIn("has no name", browser.text("#error") or "")

    def test_bad_expressions_say_where(self):
        self.open()
        browser.type("#expression", "x1 * sim(x1)")
        lines = browser.text("#error").split("\n")
        self.assertIn("sin", lines[0])  # the nearest name
        caret = next(i for i, line in enumerate(lines) if line.strip().startswith("^"))
        self.assertEqual(lines[caret - 1][lines[caret].index("^"):][:3], "sim")
        for bad in ["", "(", "x1 +", "x1 ^ 2", "[1,2] + [1,2,3]", "((((" * 200, "zeros([100000, 100000, 100000])"]:
            browser.js("const e = document.getElementById('expression'); e.value = arguments[0]; e.dispatchEvent(new "
                "Event('input'))", bad)
            self.assertFalse(browser.js("return document.getElementById('error').hidden"), bad)
            self.assertGreater(len(browser.text("#error")), 10, bad)
        browser.type("#expression", "x1 * 2")
        self.assertTrue(browser.js("return document.getElementById('error').hidden"))

    def test_messages_speak_of_the_page(self):
        self.open()
        for expression, inputs, seed, wants, never in [
                ("W @ v", {"W": "1", "v": "1"}, "1", ["Enter a matrix for W, for example [[1, 2], [3, 4]]",
                "a vector for v"], ["cot_"]),
                ("x*x", {"x": "@file.npy"}, "1", ["files cannot be read here; paste the numbers"], ["No such file"]),
                ("x*x", {"x": "2"}, "[1, 2]", ["The seed has shape (2,), and the result is one number"], ["--", "()"]),
                ("x*x", {"x": "2"}, "foo", ["The seed: "], ["--"]),
                ("x*x", {"x": ""}, "1", ["Enter a value for x"], []),
                ("sum(x)", {"x": "uniform(1,[3000,3000],1)"}, "1", ["9,000,000 numbers", "up to 4 million"], []),
                ("sum(zeros([3000, 3000]) + x)", {"x": "1"}, "1", ["The expression asks", "up to 4 million"], []),
                ("concat([x, y], 0)", {"x": "1", "y": "1"}, "1", [], ["cot_"]),
                ("huber(x)", {"x": "1"}, "1", ["needs y"], ["1.0"])]:
            fields = [("e", expression), *(("i", f"{name}:{text}") for name, text in inputs.items()), ("seed", seed),
                ("mode", "reverse")]
            self.open(f"#{urllib.parse.urlencode(fields)}")
            message = self.error()
            self.assertTrue(message, expression)
            for text in wants:
                self.assertIn(text, message)
            for text in never:
                self.assertNotIn(text, message)

    def test_nothing_plays_while_there_is_an_error(self):
        self.open("#p=first&mode=reverse&step=1", unfold=True)
        browser.type("#expression", "x1 * (")
        self.assertIsNotNone(self.error())
        for button in ("play", "step", "back", "reset"):
            self.assertEqual(browser.js("return document.getElementById(arguments[0]).getAttribute('aria-disabled')",
                button), "true")
        browser.js("document.getElementById('play').click(); document.getElementById('step').click()")
        self.assertEqual((browser.text("#play-text"), browser.text("#scrub-label")), ("Play", "Step 1 of 3"))
        browser.type("#expression", "x1 * x1")
        self.assertIsNone(self.error())
        self.assertEqual(browser.js("return document.getElementById('play').getAttribute('aria-disabled')"), "false")

    def test_large_inputs_leave_the_page_alive(self):
        self.open("#e=sum(x)&i=x:1")
        edit = ("const e = document.getElementById(arguments[0]); "
                "e.value = arguments[1]; e.dispatchEvent(new Event('input'))")
        browser.now(edit, "input-x", "uniform(1,[1500,1500],1)")
        browser.wait("return !document.getElementById('computing').hidden", "the word computing")
        self.assertIn("computing", browser.now("return document.getElementById('computing').textContent"))
        # the page answers while the engine works
        browser.now("document.getElementById('stop').click()")
        self.assertIn("Stopped", self.error())
        self.assertTrue(browser.js("return document.getElementById('computing').hidden"))
        browser.now(edit, "input-x", "uniform(1,[1500,1500],1)")
        browser.wait("return !document.getElementById('computing').hidden", "the word computing")
        browser.now(edit, "input-x", "3")  # newer than the one that runs
        browser.wait("return document.getElementById('value').textContent === '3'", "the newer answer", 5)
        self.assertIsNone(self.error())
        browser.now(edit, "input-x", "uniform(1,[300,300],1)")
        browser.click("#tab-reverse")
        browser.press("End")
        self.assertEqual(browser.js("return document.querySelector('[data-grad]').textContent"),
            "300×300, all 1")

    # ---- presets, links --------------------------------------------------------------------------

    def presets(self):
        return browser.js("return [...document.querySelectorAll('#preset option')].map(o => o.value).filter(v => v)")

    def test_every_preset_shows_the_numbers_of_the_native_command(self):
        self.open()
        self.assertGreaterEqual(len(self.presets()), 10)
        for preset in self.presets():
            with self.subTest(preset):
                browser.js("const s = document.getElementById('preset'); s.value = arguments[0]; s.dispatchEvent(new "
                    "Event('change'))", preset)
                self.assertTrue(browser.js("return document.getElementById('error').hidden"), browser.text("#error"))
                browser.click("#tab-reverse")
                browser.js("const s = document.getElementById('scrub'); s.value = s.max; s.dispatchEvent(new "
                    "Event('input'))")
                want = native("grad", "--json", *self.arguments())
                self.assertIn("grad", want)
                self.assertTrue(nearly(self.gradient(), want["grad"]), f"{self.gradient()} is not {want['grad']}")

    def test_no_two_boxes_overlap_and_no_text_leaves_its_box(self):
        for width in (1280, 360):
            browser.size(width, 800)
            self.open()
            for preset in self.presets():
                browser.js("const s = document.getElementById('preset'); s.value = arguments[0]; s.dispatchEvent(new "
                    "Event('change'))", preset)
                for mode in ("forward", "reverse"):
                    browser.js("document.getElementById('tab-' + arguments[0]).click()", mode)
                    browser.js("const s = document.getElementById('scrub'); s.value = s.max; s.dispatchEvent(new "
                        "Event('input'))")
                    bad = browser.js("""
                        const boxes = [...document.querySelectorAll(".box")].map(
                            g => ({ g, r: g.querySelector("rect").getBoundingClientRect() })), bad = [];
                        boxes.forEach((a, i) => boxes.slice(0, i).forEach(b => {
                            if (a.r.left < b.r.right && b.r.left < a.r.right && a.r.top < b.r.bottom &&
                                b.r.top < a.r.bottom) bad.push(a.g.textContent + " | " + b.g.textContent);
                        }));
                        for (const { g, r } of boxes) for (const t of g.querySelectorAll("text")) {
                            const b = t.getBoundingClientRect();
                            if (t.textContent && (b.left < r.left || b.right > r.right || b.bottom > r.bottom + 1))
                                bad.push("text " + t.textContent);
                        }
                        return bad""")
                    self.assertEqual(bad, [], f"{preset} {mode} at {width}")
        browser.size(1280, 800)

    def test_a_link_carries_everything(self):
        self.open("#p=shared&mode=reverse&step=0")
        browser.type("#input-x", "0.25")
        self.step(2)
        browser.click("#share")
        browser.wait("return document.getElementById('shared').textContent", "an answer")
        link, seen = browser.js("return location.hash"), (self.registers(), browser.text("#now"))
        self.open(link)
        self.assertEqual((self.registers(), browser.text("#now")), seen)
        self.assertEqual(browser.js("return document.getElementById('input-x').value"), "0.25")
        self.assertEqual(browser.js("return document.body.dataset.mode"), "reverse")
        for broken in ["#e=", "#e=x&i=x", "#e=%28&step=99", "#e=x&i=x:1&mode=nonsense&step=-4&n=1e99", "#%%%",
                "#p=none"]:
            self.open(broken)

    def test_odd_functions_have_a_page_too(self):
        self.open()
        long = "\n".join(f"x = x + {i}" for i in range(400))  # a tape too long to draw
        for expression, inputs in [("3", ""), ("x", "&i=x:2"), ("x > 0", "&i=x:2"), ("[x, 2*x]", "&i=x:[1,2,3]"),
                                   ("sum(W @ W)", "&i=W:uniform(1,[80,80],0.5)"),
                                   ("x*0 + nan", "&i=x:inf"), ("sum(x)", "&i=x:zeros([2,0,3])"), (long, "&i=x:1")]:
            for mode in ("forward", "reverse", "cost", "program"):
                browser.js("location.hash = arguments[0]",
                    f"#e={urllib.parse.quote(expression)}{inputs}&mode={mode}&step=1")
                browser.wait(f"return document.body.dataset.mode === '{mode}' && "
                    f"document.getElementById('expression').value === {json.dumps(expression)}", "the link")
                self.assertTrue(browser.js("return document.getElementById('error').hidden"),
                    f"{expression}: {browser.text('#error')}")
                if mode in ("forward", "reverse"):
                    browser.js("const s = document.getElementById('scrub'); s.value = s.max; s.dispatchEvent(new "
                        "Event('input'))")
                    self.assertGreater(len(browser.text("#now")), 10, expression)

    def test_a_name_used_again_has_a_label_for_each_use(self):
        statements = "; ".join(f"y = {'y' if i else 'x'} + {i}.5" for i in range(23))
        self.open(f"#e={urllib.parse.quote(statements)}&i=x:1&mode=reverse&step=99")
        labels = browser.texts("#registers tbody th")
        self.assertEqual(len(set(labels)), 24, labels)
        self.assertEqual(labels[:3] + labels[-2:], ["x", "y", "y₂", "y₂₂", "y₂₃"])

    def test_kinks_say_their_convention(self):
        self.open("#p=kink&mode=forward")
        self.step()
        self.assertIn("0, as on the left", browser.text("#now"))
        browser.click("#tab-reverse")
        browser.press("End")
        self.assertEqual(self.gradient(), {"x": 0, "y": 0})
        self.unfold()
        browser.type("#input-x", "1")
        browser.press("Home")
        self.assertEqual(self.gradient()["x"], 1)

    def test_rules_are_written_with_the_names_of_the_tape(self):
        self.open("#e=y/x&i=x:4&i=y:2&mode=reverse&step=1")
        text = self.spoken("#now")
        self.assertIn("adjoint of y gets adjoint of f/x = 1/4 = 0.25", text)
        self.assertIn("adjoint of x gets −adjoint of f·f/x = −1·0.5/4 = −0.125", text)
        self.assertIn("adjoint of y says how much the result changes when y changes", self.spoken("#intro"))
        self.assertEqual(self.spoken("#brief"), "adjoint of y gets adjoint of f/x = 1/4 = 0.25;  "
                         "adjoint of x gets −adjoint of f·f/x = −1·0.5/4 = −0.125")
        for preset in self.presets():  # no letter of a rule beside names: g is nobody's name here
            self.open(f"#p={preset}&mode=reverse&step=0")
            for _ in range(browser.js("return Number(document.getElementById('scrub').max)")):
                browser.press("Right")
                self.assertNotRegex(self.spoken("#now"), r"\bg\b|\bz\b|adj\(", preset)
        self.open("#p=where&mode=reverse&step=1")
        self.assertIn("A condition in brackets counts as 1 where it holds", browser.text("#now"))
        self.open("#e=log(u)&i=u:0&mode=reverse&step=1")
        self.assertIn("f = log(u) sits at the edge of its domain, u = 0", browser.text("#now"))
        self.assertIn("by convention ∞", browser.text("#now"))
        self.assertNotIn("kink", browser.text("#now"))

    def test_a_range_does_not_hide_what_is_not_finite(self):
        for inputs, words in (("[-1,0,1,2,3,4]", "[6], 0 to 1.39, and 2 ∞ or NaN"),
                ("uniform(1,[100,100],1)", "and some ∞ or NaN")):
            self.open(f"#e=sum(log(x))&i=x:{inputs}&mode=forward&step=1")
            self.assertIn(words, browser.text("#registers tr.current .value"))

    def test_zeros_have_no_sign(self):
        self.open("#e=-x&i=x:[0,1]&mode=forward&step=1")
        self.assertEqual(browser.texts("#figures .cells td"), ["0", "−1"])

    def test_where_at_0_is_not_nan_and_ten_sigmoids_vanish(self):
        self.open("#p=where&mode=reverse&step=99")
        self.assertEqual(self.gradient(), {"x": 0})
        self.open("#p=vanishing&mode=reverse&step=99")
        self.assertLess(abs(self.gradient()["x"]), 0.25 ** 10 * 1.0001)

    # ---- cost ------------------------------------------------------------------------------------

    def test_cost_is_that_of_the_native_command_and_crosses(self):
        self.open("#p=first&mode=cost&n=1000&m=1")
        cells = "return Object.fromEntries([...document.querySelectorAll(arguments[0] + ' [data-row]')].map(r => " \
                "[r.dataset.row, [...r.querySelectorAll('[data-value]')].map(c => Number(c.dataset.value))])" \
                ".filter(([row]) => row !== 'kept'))"

        def want(cost):
            return {row: [cost["forward"][row], cost["reverse"][row]] for row in ("sweeps", "operations", "bytes")}
        self.assertEqual(browser.js(cells, "#cost section:first-child"),
            want(native("cost", "--json", "--inputs", "1000", "--outputs", "1")))
        self.assertIn("Reverse mode is cheaper", browser.text("#cost .verdict"))
        for slider, value in (("n", 0), ("m", 120)):
            browser.js("const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new "
                "Event('input'))", f"cost-{slider}", value)
        self.assertEqual(browser.js(cells, "#cost section:first-child"),
            want(native("cost", "--json", "--inputs", "1", "--outputs", "1000000")))
        self.assertIn("Forward mode is cheaper", browser.text("#cost .verdict"))
        self.assertTrue(nearly(browser.js(cells, "#cost-own"),
            want(native("trace", "--json", "--", "x1*x2 + sin(x1)", "x1=pi/4", "x2=3")["cost"])))

    # ---- matrices --------------------------------------------------------------------------------

    # ---- the program -----------------------------------------------------------------------------

    def shown_program(self, of):
        browser.wait(f"return document.querySelector('#program').dataset.shows === '{of}'", "the program")
        return browser.text("#program-text pre")

    def test_the_program_is_that_of_the_native_command(self):
        self.open("#e=sum(exp(x)*x%2B2*y)&i=x:[1,2,3]&i=y:0.5&mode=program")
        args = ["--", "sum(exp(x)*x+2*y)", "x=[1,2,3]", "y=0.5"]
        for of, options in (("function", []), ("gradient", ["--grad"])):
            browser.click(f"#program [data-of={of}]")
            shown = self.shown_program(of)
            want = native("compile", "--json", "--print", "--report", *options, *args)
            self.assertEqual(shown.strip(), want["text"].strip())
            boxes = browser.js("return [...document.querySelectorAll('#program .box')].map(b => "
                "[...b.querySelectorAll('text:not(.title)')].map(t => t.textContent))")
            self.assertEqual(sum(len(lines) for lines in boxes), len(want["values"]) + len(want["outputs"]))
            groups = browser.js("return document.querySelectorAll('#program .box.group').length")
            self.assertEqual(groups, want["facts"]["groups"])
            self.assertIn(f"{want['facts']['fused']} in {want['facts']['groups']}", browser.text("#program-facts"))
            self.assertIn("run together:", browser.text("#program-together"))
        self.assertIn("of=gradient", browser.js("return location.hash"))

    def test_the_program_follows_the_function_and_says_why_there_is_none(self):
        self.open("#e=x*y&i=x:2&i=y:3&mode=program&of=gradient")
        self.assertIn("mul(%0, %1)", self.shown_program("gradient"))
        browser.js("const e = document.querySelector('#expression'); e.value = 'sin(x)'; "
            "e.dispatchEvent(new Event('input'))")
        browser.wait("return document.querySelector('#program-text pre')?.textContent.includes('sin(%0)')", "a new one")
        browser.js("const e = document.querySelector('#expression'); e.value = 'x +'; "
            "e.dispatchEvent(new Event('input'))")
        browser.wait("return document.body.classList.contains('stale')", "the error")

    def test_the_graph_network_is_a_tape_of_matrices_with_numbers_to_read(self):
        self.open("#p=gcn&mode=forward&step=1")
        self.assertGreater(browser.js("return document.querySelectorAll('.box image[href]').length"), 4)
        self.assertIn("X 6×3", browser.js("return [...document.querySelectorAll('.box .label')].map(e => "
            "e.textContent)"))
        self.assertEqual(len(browser.texts("#figures .cells td")), 18)
        browser.click("#tab-reverse")
        browser.press("End")
        self.assertEqual(set(self.gradient()), {"W1", "W2"})

    def test_matrices_are_folded_until_someone_edits_them(self):
        self.open("#p=gcn&mode=reverse&step=3", unfold=True)
        self.assertIn("6×6", browser.text(".input.long"))
        self.assertFalse(browser.js("return document.getElementById('input-W2').checkVisibility()"))
        browser.js("document.querySelector('.input.long button[aria-controls=input-W2]').click()")
        browser.type("#input-W2", "[[1, 0], [0, 1], [0, 0], [0, 0]]")
        self.assertIsNone(self.error())
        self.assertTrue(nearly(numbers(browser.js("return Number(document.getElementById('value').textContent)")),
            [round(
            native("eval", "--json", *self.arguments()[self.arguments().index("--"):])["value"], 5)]))

    def test_at_1280_by_800_buttons_text_and_graph_are_seen_together(self):
        for preset in self.presets_of_a_new_page():
            self.open(f"#p={preset}&mode=reverse&step=3")
            low = browser.js("""return ["graph", "now", "step"].filter(id => {
                const r = document.getElementById(id).getBoundingClientRect();
                return r.top < 0 || (id === "step" ? r.bottom : r.top + (id === "now" ? 90 : 150)) > innerHeight; })""")
            self.assertEqual(low, [], preset)

    def presets_of_a_new_page(self):
        self.open()
        return self.presets()

    # ---- reading it ------------------------------------------------------------------------------

    def test_nothing_sticks_out_at_360_pixels(self):
        browser.size(360, 740)
        self.open()
        for preset in self.presets():
            for mode in ("forward", "reverse", "cost", "program"):
                browser.js("const s = document.getElementById('preset'); s.value = arguments[0]; s.dispatchEvent(new "
                    "Event('change'))", preset)
                browser.js("document.getElementById('tab-' + arguments[0]).click()", mode)
                browser.js("const s = document.getElementById('scrub'); s.value = s.max; s.dispatchEvent(new "
                    "Event('input'))")
                self.assertLessEqual(browser.js("return document.documentElement.scrollWidth"), 360, f"{preset} {mode}")
                out = browser.js("""return [...document.querySelectorAll("button, input, select, textarea, h2, p")]
                    .filter(e => e.offsetParent &&
                    !e.closest(".hidden, .scroll, .graph") && e.getBoundingClientRect().right > 360.5)
                    .map(e => e.outerHTML.slice(0, 80))""")
                self.assertEqual(out, [], f"{preset} {mode}")
        browser.size(1280, 800)

    def test_everything_has_a_name_for_screen_readers(self):
        for preset in ("first", "network"):
            for mode in ("reverse", "cost", "program"):
                self.open(f"#p={preset}&mode={mode}&step=3")
                nameless = browser.js("""
                    const named = e => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") ||
                        e.labels?.length || e.innerText?.trim();
                    const all = "button, input, select, textarea, output, [role=region], [role=tabpanel]";
                    return [...document.querySelectorAll(all)]
                        .filter(e => !e.closest("[hidden]") && !named(e)).map(e => e.outerHTML)""")
                self.assertEqual(nameless, [])
        self.open("#p=network&mode=reverse&step=3")
        self.assertEqual(browser.js("return document.querySelector('#graph svg[role=img] > title').textContent"),
            "The tape as a graph, 3 of 11 nodes swept")
        self.assertEqual(browser.js("return document.getElementById('now').getAttribute('aria-live')"), "polite")
        self.assertEqual(browser.js("return [...document.querySelectorAll('#registers thead th')].every(t => t.scope "
            "=== 'col')"), True)

    # ---- trace --html
    # ----------------------------------------------------------------------------------------------

    def test_a_recorded_tape_steps_both_ways(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tape.html")
            hostile = "# </script><b>&\na = x1*x2; a + sin(x1)"
            done = subprocess.run([COMMAND, "trace", "--html", path, "--", hostile, "x1=pi/4", "x2=3"],
                capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            browser.open(f"file://{path}")
            browser.wait("return document.body.dataset.ready", "the recorded tape")
            self.assertIn("</script><b>&", browser.text("#source"))
            self.assertFalse(browser.js("return document.getElementById('expression').checkVisibility()"))
            self.step(3)
            self.assertIn("3.0633", browser.text("#now"))
            browser.click("#tab-reverse")
            self.step(3)
            self.assertTrue(nearly(self.gradient(), {"x1": 3 + math.cos(math.pi / 4), "x2": math.pi / 4}))
            browser.click("#tab-cost")
            self.assertIn("Passes", browser.text("#cost-own"))


if __name__ == "__main__":
    main(PageTest, ["PAGE", "COMMAND"])
