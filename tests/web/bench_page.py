"""How fast the page answers: bench_page.py PAGE. Run by `make bench-web`.

First paint is what the browser itself reports; a step is a click on the button until style and
layout are done again. Both walks are timed, in Chromium and in Firefox. Fails where a target is
missed by the median."""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402
from firefox import Firefox  # noqa: E402

LOADS, STEPS = 5, 40
TARGETS = {"first paint": 500, "step of 200 nodes": 16, "step of 10000 nodes": 100}  # milliseconds

STEP = """const took = [], button = document.getElementById(arguments[1] < 0 ? "back" : "step");
    for (let i = 0; i < arguments[0]; i++) {
        const start = performance.now();
        button.click();
        document.documentElement.getBoundingClientRect();
        took.push(performance.now() - start);
    }
    return took"""


def first_paint(browser, page):
    """Milliseconds from the start of loading; the first load warms the disk."""
    took = []
    for _ in range(LOADS + 1):
        browser.open("about:blank")
        browser.open(f"file://{page}")
        browser.wait("return document.body.dataset.ready", "the page to be ready", 60)
        took.append(browser.wait("return performance.getEntriesByType('paint').find(p => "
            "p.name === 'first-contentful-paint')?.startTime", "a paint"))
    return took[1:]


def steps(browser, page, nodes):
    """Steps in the middle of a tape, in both walks, there and back."""
    took = []
    browser.open("about:blank")
    browser.open(f"file://{page}")
    browser.wait("return document.body.dataset.ready", "the page to be ready", 60)
    browser.now("const e = document.getElementById('expression'); e.value = arguments[0]; "
        "e.dispatchEvent(new Event('input'))", "\n".join(f"x = sin(x) + {i}" for i in range(nodes // 2)))
    browser.settle(120)
    for mode in ("forward", "reverse"):
        browser.now("document.getElementById('tab-' + arguments[0]).click(); const s = "
            "document.getElementById('scrub'); s.value = s.max / 2; s.dispatchEvent(new Event('input'))", mode)
        browser.now(STEP, 3, 1)  # the first ones fold the card and warm the code
        took += browser.now(STEP, STEPS // 2, 1) + browser.now(STEP, STEPS // 2, -1)
    drawn = browser.now("return document.querySelectorAll('#graph .box').length")
    return took, drawn


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    page, missed = os.path.abspath(sys.argv[1]), 0
    print(f"{'':10}{'':24}{'median':>9}{'worst':>9}{'target':>9}   ms")
    for name, kind in (("Chromium", Browser), ("Firefox", Firefox)):
        browser = kind()
        try:
            rows = [("first paint", first_paint(browser, page), None)]
            for nodes in (200, 10000):
                rows.append((f"step of {nodes} nodes", *steps(browser, page, nodes)))
            for what, took, drawn in rows:
                median, target = statistics.median(took), TARGETS[what]
                missed += median > target
                print(f"{name:10}{what:24}{median:9.1f}{max(took):9.1f}{target:9}   "
                    f"{'ok' if median <= target else 'SLOW'}{'' if drawn is None else f', {drawn} boxes drawn'}")
        finally:
            browser.close()
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
