"""The picture and what is around it: test_picture.py PAGE chromium|firefox [NAME...].

At every width every example fits its frame and no two texts overlap, at each step of each walk;
arrows point the way things flow; zoom, present mode, files and keys do what they say."""
import base64
import os
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from in_browser import main  # noqa: E402

SIZES = [(360, 740), (390, 844), (1280, 800), (1440, 900), (1920, 1080)]
WALKS = ["forward", "reverse", "tangent"]
PAGE = Kind = browser = None

# What is wrong with the picture now, as sentences. A text may touch nothing: not its box (2 pixels
# are left at least), not another text. Bounding boxes of letters have empty edges above and below,
# so texts count as overlapping by more than two pixels.
FAULTS = """
    const faults = [], frame = document.getElementById("graph").getBoundingClientRect(), rect = e =>
        e.getBoundingClientRect(), over = (a, b, by) => a.left < b.right - by && b.left < a.right - by &&
        a.top < b.bottom - by && b.top < a.bottom - by, inside = (a, b, by) => a.left >= b.left + by &&
        a.right <= b.right - by && a.top >= b.top + by && a.bottom <= b.bottom - by;
    const boxes = [...document.querySelectorAll("#graph .box")].map(g => ({ g, r: rect(g.querySelector("rect")) }));
    const texts = [...document.querySelectorAll("#graph text")].filter(t => t.textContent.trim())
        .map(t => ({ t, r: rect(t) }));
    const rows = document.querySelectorAll("#registers tbody tr").length;
    if (boxes.length !== rows) faults.push(`${boxes.length} of ${rows} boxes are drawn`);
    for (const { g, r } of boxes) {
        if (!inside(r, frame, -0.5)) faults.push(`a box leaves the frame: ${g.textContent}`);
        for (const t of g.querySelectorAll("text"))
            if (t.textContent.trim() && !inside(rect(t), { left: r.left + 2, right: r.right - 2, top: r.top,
                bottom: r.bottom + 1 }, 0)) faults.push(`a text touches its box: ${t.textContent}`);
    }
    boxes.forEach((a, i) => boxes.slice(0, i).forEach(b => {
        if (over(a.r, b.r, 0)) faults.push(`two boxes overlap: ${a.g.textContent} | ${b.g.textContent}`); }));
    texts.forEach((a, i) => texts.slice(0, i).forEach(b => {
        if (over(a.r, b.r, 2)) faults.push(`two texts overlap: ${a.t.textContent} | ${b.t.textContent}`); }));
    for (const label of document.querySelectorAll("#graph .flow-label")) {
        const r = rect(label.querySelector("rect"));
        if (!inside(r, frame, -0.5)) faults.push(`a label leaves the frame: ${label.textContent}`);
        for (const b of boxes) if (over(r, b.r, 0)) faults.push(`a label covers a box: ${label.textContent}`);
    }
    const labels = document.querySelectorAll("#graph .flow-label").length;
    const arrows = document.querySelectorAll("#graph .wire.now").length;
    if (labels !== arrows) faults.push(`${arrows} arrows have ${labels} labels`);
    const scale = document.querySelector("#graph svg").getScreenCTM().a;
    if (scale < 0.55) faults.push(`letters are too small, at ${scale}`);"""

# The texts of the page around it that overlap, as they are clipped, where nothing is scrolled.
PAGE_FAULTS = """
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range =
        document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!node.data.trim() || !e.checkVisibility({ opacityProperty: true }) ||
            e.closest("svg, .hidden, script, style, option, kbd") || (innerWidth < 640 && e.closest(".bar"))) continue;
        range.selectNodeContents(node);
        for (const r of range.getClientRects()) {
            let box = { left: r.left, right: r.right, top: r.top, bottom: r.bottom };
            for (let up = e; up; up = up.parentElement) {
                if (getComputedStyle(up).overflow === "visible" || up === document.body) continue;
                const clip = up.getBoundingClientRect();
                box = { left: Math.max(box.left, clip.left), right: Math.min(box.right, clip.right),
                    top: Math.max(box.top, clip.top), bottom: Math.min(box.bottom, clip.bottom) };
            }
            if (box.right - box.left > 2 && box.bottom - box.top > 2) found.push({ text: node.data.trim(), node, box });
        }
    }
    const faults = [];
    found.forEach((a, i) => found.slice(0, i).forEach(b => {
        if (a.node !== b.node && a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 &&
            a.box.top < b.box.bottom - 5 && b.box.top < a.box.bottom - 5) faults.push(`${a.text} | ${b.text}`); }));
    return faults"""


class PictureTest(unittest.TestCase):
    def open(self, fragment=""):
        browser.open("about:blank")
        browser.open(f"file://{PAGE}{fragment}")
        browser.wait("return document.body.dataset.ready", "the page to be ready")

    def tearDown(self):
        self.assertEqual([entry["message"] for entry in browser.log()], [], "the console is not silent")

    def presets(self):
        return browser.js("return [...document.querySelectorAll('#preset option')].map(o => o.value).filter(v => v)")

    def choose(self, preset):
        browser.js("const s = document.getElementById('preset'); s.value = arguments[0]; "
            "s.dispatchEvent(new Event('change'))", preset)
        self.assertEqual(browser.js("return document.getElementById('error').innerText"), "")

    def classes(self):
        return browser.js("return document.body.className").split()

    # ---- it fits ---------------------------------------------------------------------------------

    def test_every_preset_fits_its_frame_and_no_two_texts_overlap(self):
        for width, height in SIZES:
            browser.size(width, height)
            self.open()
            for preset in self.presets():
                self.choose(preset)
                for walk in WALKS:
                    faults = browser.js("document.getElementById('tab-' + arguments[0]).click(); const s = "
                        "document.getElementById('scrub'), all = []; for (let k = 0; k <= Number(s.max); k++) { "
                        "s.value = k; s.dispatchEvent(new Event('input'));" + FAULTS +
                        "all.push(...faults.map(f => `step ${k}: ${f}`)); } return all", walk)
                    self.assertEqual(faults, [], f"{preset} {walk} at {width}")
                browser.now("scrollTo(0, 0)")
                self.assertEqual(browser.js(PAGE_FAULTS), [], f"{preset} at {width}")
                self.assertLessEqual(browser.js("return document.documentElement.scrollWidth - innerWidth"), 0,
                    f"{preset} at {width} is wider than the page")
        browser.size(1280, 800)

    def test_a_long_tape_draws_what_is_seen_and_follows_the_step(self):
        text = "\n".join(f"x = sin(x) + {i}" for i in range(600))
        self.open(f"#e={urllib.parse.quote(text)}&i=x:1&mode=reverse&step=0")
        seen = """const c = document.querySelector('#graph .box.current rect').getBoundingClientRect(),
            f = document.getElementById('graph').getBoundingClientRect();
            return [document.querySelectorAll('#graph .box').length,
            c.left >= f.left && c.right <= f.right && c.top >= f.top && c.bottom <= f.bottom]"""
        for step in (1, 2, 600, 1200):
            browser.js("const s = document.getElementById('scrub'); s.value = arguments[0]; "
                "s.dispatchEvent(new Event('input'))", step)
            drawn, there = browser.js(seen)
            self.assertLess(drawn, 100)
            self.assertGreater(drawn, 3)
            self.assertTrue(there, f"step {step} is not seen")

    # ---- arrows ----------------------------------------------------------------------------------

    def arrows(self):
        """Of each arrow of this step: where its head is, and what is written."""
        return browser.js("""
            const near = (r, tip) => Math.abs(r.left - tip.right) < 3 || Math.abs(r.right - tip.left) < 3;
            const boxes = [...document.querySelectorAll("#graph .box")];
            const heads = [...document.querySelectorAll("#graph .wire.now .tip")].map(tip => {
                const t = tip.getBoundingClientRect(), y = (t.top + t.bottom) / 2;
                return boxes.filter(b => { const r = b.querySelector("rect").getBoundingClientRect();
                    return near(r, t) && y > r.top && y < r.bottom }).map(b => b.className.baseVal) });
            return { heads, colour: getComputedStyle(document.querySelector("#graph .wire.now path")).stroke,
                labels: [...document.querySelectorAll("#graph .flow-label")].map(l =>
                    [...l.querySelectorAll("text")].map(t => t.textContent).join(" ")) }""")

    def test_arrows_point_the_way_things_flow_and_say_what(self):
        self.open("#p=first&mode=forward&step=1")
        forward = self.arrows()
        self.assertEqual(sorted(forward["labels"]), ["0.7854", "3"])
        for classes in forward["heads"]:
            self.assertTrue(any("current" in c for c in classes), classes)
        self.open("#p=first&mode=reverse&step=3")
        reverse = self.arrows()
        self.assertEqual(sorted(reverse["labels"]), ["1 × 0.7854 = 0.7854", "1 × 3 = 3"])
        self.assertEqual(len(reverse["heads"]), 2)
        for classes in reverse["heads"]:
            self.assertTrue(any("receives" in c for c in classes), classes)
        self.assertNotEqual(forward["colour"], reverse["colour"])
        self.open("#p=gcn&mode=reverse&step=6")  # matrices: the rule
        self.assertTrue(all(any(letter in label for letter in "@ᵀ") for label in self.arrows()["labels"]))

    def test_what_is_written_at_an_arrow_is_near_it_and_on_no_other(self):
        # how far labels are from their arrows, and how many other lines run under them
        near = """const rect = e => e.getBoundingClientRect(), under = (r, w) => { const path = w.querySelector("path"),
                m = path.getScreenCTM(), n = path.getTotalLength();
            return Array.from({ length: 60 }, (_, k) => path.getPointAtLength(n * k / 59).matrixTransform(m)).some(p =>
                p.x > r.left && p.x < r.right && p.y > r.top && p.y < r.bottom); };
            const labels = [...document.querySelectorAll("#graph .flow-label")];
            return [Math.max(0, ...labels.map(l => l.querySelector(".leader")?.getTotalLength() ?? 0)),
                labels.map(l => [...document.querySelectorAll("#graph .wire:not(.now)")].filter(w =>
                    under(rect(l.querySelector("rect")), w)).length).reduce((a, b) => a + b, 0)]"""
        for width, height, link in ((390, 844, "#p=first&mode=reverse&step=3"), (1280, 800,
                "#p=states&mode=reverse&step=9")):
            browser.size(width, height)
            self.open(link)
            far, crossing = browser.js(near)
            self.assertLess(far, 30, link)
            self.assertEqual(crossing, 0, link)
        browser.size(1280, 800)

    def test_on_a_phone_the_first_screen_has_the_picture(self):
        browser.size(390, 844)
        self.open()
        seen = browser.js("return document.querySelector('.bar').getBoundingClientRect().top - "
            "Math.max(...[...document.querySelectorAll('#graph .box')].map(b => b.getBoundingClientRect().bottom))")
        self.assertGreater(seen, 0)
        browser.size(1280, 800)

    def test_nothing_moves_for_those_who_want_it_still(self):
        self.open("#p=first&mode=reverse&step=1")
        still = "return [...document.querySelectorAll('#graph .wire.now path, #graph .box rect')].every(e => " \
            "getComputedStyle(e).animationName === 'none' && getComputedStyle(e).transitionDuration === '0s')"
        self.assertTrue(browser.js(still))

    def test_boxes_show_the_numbers_of_a_moved_input(self):
        seen = "return [[...document.querySelectorAll('#graph .box .value')].map(e => e.textContent), " \
            "[...document.querySelectorAll('#registers .value')].slice(1).map(e => e.textContent)]"
        move = "const e = document.getElementById('input-' + arguments[0]); e.value = arguments[1]; " \
            "e.dispatchEvent(new Event('input'))"
        self.open("#p=first&mode=reverse&step=3&card=open")
        # the second needs a wider box
        for text, x1 in (("pi/2", "1.5708"), ("-1.23456e-7*pi", "−3.8785e−7")):
            browser.js(move, "x1", text)
            boxes, table = browser.js(seen)
            self.assertEqual(boxes, table)
            self.assertEqual(boxes[0], x1)
            self.assertEqual(browser.js(FAULTS + "return faults"), [])
        self.open("#p=kink&mode=forward&step=1&card=open")
        corners = "return [...document.querySelectorAll('#graph .kinky')].filter(e => e.checkVisibility()).length"
        self.assertEqual(browser.js(corners), 2)
        browser.js(move, "x", "1")
        self.assertEqual(browser.js(corners), 1)

    # ---- the frame -------------------------------------------------------------------------------

    def zoom(self):
        return int(browser.js("return parseInt(document.getElementById('zoom-level').textContent)"))

    def test_wheel_and_keys_zoom_and_pan_and_a_link_keeps_them(self):
        self.open("#p=gcn&mode=reverse&step=3")
        whole, place = self.zoom(), "return document.querySelector('#graph svg').getAttribute('viewBox')"
        middle = browser.js("const r = document.getElementById('graph').getBoundingClientRect(); "
            "return [Math.round(r.left + r.width / 2), Math.round(r.top + r.height / 2)]")
        browser.wheel(*middle, -200, held="Control")
        self.assertGreater(self.zoom(), whole)
        browser.press("0")
        self.assertEqual(self.zoom(), whole)
        browser.press("+")
        browser.press("+")
        larger, before = self.zoom(), browser.js(place)
        self.assertGreater(larger, whole * 1.4)
        browser.press("Shift+Left")
        self.assertNotEqual(browser.js(place), before)
        self.assertEqual(browser.text("#scrub-label"), "Step 3 of 9")  # panned, not stepped
        browser.wheel(*middle, 60)
        link, seen = browser.js("return location.hash"), browser.js(place)
        self.open(link)
        self.assertEqual(self.zoom(), larger)
        for a, b in zip(browser.js(place).split(), seen.split()):
            # the link has places in thousandths
            self.assertAlmostEqual(float(a), float(b), delta=2)
        browser.click("#zoom-fit")
        self.assertEqual(self.zoom(), whole)
        for broken in ("zoom=", "zoom=9e9,1,1", "zoom=-1,0,0", "zoom=1,2,3", "zoom=x", "speed=1e9", "present=2"):
            self.open(f"#p=first&mode=reverse&step=1&{broken}")

    # ---- the first screen ------------------------------------------------------------------------

    def test_the_card_folds_with_the_first_step_and_opens_again(self):
        self.open("#p=first")
        self.assertNotIn("folded", self.classes())
        top = "return document.getElementById('graph').getBoundingClientRect().top"
        before = browser.js(top)
        browser.click("#step")
        self.assertIn("folded", self.classes())
        self.assertLess(browser.js(top), before - 100)
        self.assertIn("x1*x2 + sin(x1)", browser.text("#function"))
        browser.click("#tab-program")
        self.assertLess(browser.js("return document.querySelector('#program .choose').clientHeight"), 60)
        browser.click("#tab-forward")
        self.choose("dot")
        self.assertIn("x = [1, 2, 3]", browser.js("return document.getElementById('given').textContent"))
        self.choose("first")
        browser.click("#step")
        browser.click("#fold")
        browser.click("#step")
        self.assertNotIn("folded", self.classes())  # who opened it keeps it
        self.assertIn("card=open", browser.js("return location.hash"))

    def test_result_and_gradient_stand_together_and_stay(self):
        for width, height in ((1280, 800), (390, 844)):
            browser.size(width, height)
            self.open("#p=first&mode=reverse&step=3")
            browser.now("scrollTo(0, document.body.scrollHeight)")
            place = browser.js("""const r = document.getElementById("answer").getBoundingClientRect();
                return [r.top, r.bottom, innerHeight, scrollY]""")
            self.assertGreaterEqual(place[0], -1)
            self.assertLessEqual(place[1], place[2])
            self.assertEqual(browser.text("#value"), "3.0633")
            self.assertEqual(browser.texts("#answer dd"), ["3.7071", "0.7854"])
            browser.js("document.getElementById('tab-forward').click()")
            self.assertEqual(browser.texts("#answer dd"), ["3.7071", "0.7854"])
        browser.size(1280, 800)

    def test_a_wide_screen_is_used(self):
        browser.size(1920, 1080)
        self.open("#p=gcn&mode=reverse&step=1")
        self.assertGreater(browser.js("return document.getElementById('graph').clientWidth"), 1750)
        browser.size(1280, 800)

    # ---- present ---------------------------------------------------------------------------------

    def test_present_mode_has_graph_step_and_bar_and_its_keys(self):
        for width, height in ((1280, 720), (1920, 1080)):
            browser.size(width, height)
            self.open("#p=first&mode=forward&step=0")
            browser.press("f")
            self.assertIn("present", self.classes())
            browser.press("Right")
            chosen, at = "return document.getElementById('preset').value", self.presets().index("first")
            for preset in self.presets()[at:at + 2]:
                self.assertEqual(browser.js(chosen), preset)
                out = browser.js("""return ["graph", "now", "step", "answer", "source"].filter(id => {
                    const r = document.getElementById(id).getBoundingClientRect();
                    return r.height < 10 || r.top < 0 || r.bottom > innerHeight + 1 || r.right > innerWidth + 1 })""")
                self.assertEqual(out, [], f"{preset} at {width}")
                faults = browser.js(FAULTS + "return faults")
                self.assertEqual(faults, [])
                browser.press("n")
            browser.press("b")
            self.assertEqual(browser.js(chosen), preset)
            letters = "return parseFloat(getComputedStyle(document.getElementById('now')).fontSize)"
            large = browser.js(letters)
            self.assertIn("present=1", browser.js("return location.hash"))
            browser.press("Escape")
            browser.wait("return !document.body.classList.contains('present')", "the end")
            self.assertGreater(large, browser.js(letters))
        browser.size(1280, 800)
        browser.size(1280, 720)
        self.open("#p=first&mode=reverse&step=3&present=1")
        self.assertEqual(browser.js("const n = document.querySelector('.now'); return [n.scrollHeight - "
            "n.clientHeight, document.getElementById('note').checkVisibility()]"), [0, False])
        browser.size(1280, 800)
        browser.press("n")  # a text that is set while it is hidden
        browser.press("Escape")
        self.assertGreater(browser.js("return document.getElementById('expression').clientHeight"), 30)
        self.open("#p=valley&mode=reverse&step=2&present=1")
        self.assertIn("present", self.classes())
        browser.click("#present-end")
        self.assertNotIn("present", self.classes())
        browser.size(390, 844)
        self.open("#p=first&mode=reverse&step=3&present=1")
        self.assertEqual(browser.js(FAULTS + "return faults"), [])
        covered = browser.js("""const [now, bar, end] = [".now", ".bar", "#present-bar"].map(s =>
            document.querySelector(s).getBoundingClientRect());
            return [now.bottom <= bar.top + 1, bar.bottom <= end.top + 1, end.bottom <= innerHeight + 1]""")
        self.assertEqual(covered, [True, True, True])
        browser.size(1280, 800)

    # ---- files, speed ----------------------------------------------------------------------------

    def saved(self, button):
        """The file that a button saves: its name and bytes."""
        browser.js("""window.saved = null; HTMLAnchorElement.prototype.click = function () {
            const name = this.download; fetch(this.href).then(r => r.arrayBuffer()).then(b => { window.saved =
                [name, btoa(String.fromCharCode(...new Uint8Array(b)))]; }); }""")
        browser.click(button)
        name, data = browser.wait("return window.saved", "a file")
        return name, base64.b64decode(data)

    def test_what_is_seen_is_saved_as_svg_and_png(self):
        self.open("#p=first&mode=reverse&step=3")
        name, data = self.saved("#save-svg")
        self.assertEqual(name, "first-reverse-3.svg")
        text = data.decode()
        self.assertIn("= 3", text)
        self.assertNotIn("var(--", text)
        self.assertNotIn("class=", text)
        self.assertEqual(browser.js("return new DOMParser().parseFromString(arguments[0], 'image/svg+xml')"
            ".documentElement.tagName", text), "svg")
        name, data = self.saved("#save-png")
        self.assertEqual((name, data[:8]), ("first-reverse-3.png", b"\x89PNG\r\n\x1a\n"))
        width = browser.js("return document.querySelector('#graph svg').width.baseVal.value")
        self.assertEqual(int.from_bytes(data[16:20], "big"), 2 * width)
        self.assertGreater(len(data), 5000)  # not an empty sheet

    def test_play_has_a_speed(self):
        self.open("#p=vanishing&mode=reverse&step=0")
        browser.js("const s = document.getElementById('speed'); s.value = '4'; s.dispatchEvent(new Event('change'))")
        self.assertIn("speed=4", browser.js("return location.hash"))
        browser.press("p")
        # at a walk they take 11 s
        browser.wait("return document.getElementById('scrub').value === '10'", "ten steps", 6)

    # ---- by keyboard alone -----------------------------------------------------------------------

    def tab_to(self, element, most=60):
        for _ in range(most):
            browser.press("Tab")
            if browser.now("return document.activeElement.id") == element:
                ring = browser.now("const s = getComputedStyle(document.activeElement); "
                    "return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2")
                self.assertTrue(ring, f"{element} does not show that it has the focus")
                return
        self.fail(f"{element} is not reached by the keyboard")

    def test_everything_is_done_by_keyboard_alone(self):
        self.open("#p=first")
        browser.now("document.body.tabIndex = -1; document.body.focus()")
        for element in ("preset", "fold", "expression", "input-x1", "tab-forward", "step"):
            self.tab_to(element)
        browser.press("Enter")
        self.assertEqual(browser.text("#scrub-label"), "Step 1 of 3")
        self.tab_to("graph")
        browser.press("Right")
        browser.press("+")
        self.assertEqual(browser.text("#scrub-label"), "Step 2 of 3")
        browser.now("document.body.focus()")
        self.tab_to("fold")
        browser.press("Enter")
        self.assertNotIn("folded", self.classes())
        self.tab_to("tab-forward")
        browser.press("Right")
        self.assertEqual(browser.js("return document.body.dataset.mode"), "reverse")
        browser.press("f")
        self.assertIn("present", self.classes())
        browser.press("Escape")
        browser.wait("return !document.body.classList.contains('present')", "the end")
        self.assertEqual(browser.js("return document.activeElement.id"), "present")


class MovingDarkTest(unittest.TestCase):
    """The same page at night, for those who like motion."""

    def test_colours_are_dark_and_arrows_move(self):
        other = Kind(dark=True, calm=False)
        try:
            other.open(f"file://{PAGE}#p=gcn&mode=reverse&step=5")
            other.wait("return document.body.dataset.ready", "the page to be ready")
            dark = "const c = getComputedStyle(document.querySelector(arguments[0]))[arguments[1]].match(/\\d+/g)" \
                ".map(Number); return 0.3 * c[0] + 0.6 * c[1] + 0.1 * c[2]"
            self.assertLess(other.js(dark, "body", "backgroundColor"), 60)
            self.assertGreater(other.js(dark, "#graph .box.current .what", "fill"), 160)
            self.assertEqual(other.js("return getComputedStyle(document.querySelector("
                "'#graph .wire.now path')).animationName"), "flow")
            self.assertEqual(other.js(FAULTS + "return faults"), [])
            self.assertEqual(other.log(), [])
        finally:
            other.close()


if __name__ == "__main__":
    main(PictureTest, ["PAGE"])
