"""axe-core, the accessibility checker, finds nothing on the page: in every tab, on a phone and on a
desk, by day and at night, and in present mode.

    peer_axe.py BUILD        needs: axe-playwright-python
"""
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "web"))
from browser import Browser  # noqa: E402

PAGE = os.path.abspath(os.path.join(HERE, "..", "..", "build-web", "cotangent.html"))
VIEWS = ["", "#p=first&mode=forward&step=2", "#p=kink&mode=reverse&step=3", "#p=gcn&mode=reverse&step=5",
    "#p=gcn&mode=reverse&step=9", "#p=first&mode=cost", "#p=first&mode=tangent&step=2", "#p=network&mode=program",
    "#p=first&mode=reverse&step=2&present=1", "#p=first&mode=reverse&step=2&card=open", "#e=x%20%2B&i=x:1"]


def findings(browser):
    return browser.js("""return axe.run(document, { resultTypes: ["violations"] }).then(r => r.violations.map(v =>
        `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 120) + " " +
            (n.any[0]?.message ?? "")).join(" | ")}`))""")


def main(_):
    folder, = importlib.util.find_spec("axe_playwright_python").submodule_search_locations
    with open(os.path.join(folder, "axe.min.js"), encoding="utf-8") as f:
        axe = f.read()
    wrong = []
    for dark in (False, True):
        browser = Browser(dark=dark)
        try:
            for width, height in ((390, 844), (1280, 800)):
                browser.size(width, height)
                for view in VIEWS:
                    browser.open("about:blank")
                    browser.open(f"file://{PAGE}{view}")
                    browser.wait("return document.body.dataset.ready", "the page to be ready")
                    browser.js(axe)
                    wrong += [f"{view or 'first'} at {width}{' dark' if dark else ''}: {f}" for f in findings(browser)]
        finally:
            browser.close()
    for line in wrong:
        print(line)
    print(f"{len(VIEWS) * 4} views audited, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
