"""pictures.py PAGE PNG: a picture of the page in the middle of a reverse sweep, from Chromium."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "web"))
from browser import Browser  # noqa: E402

VIEW = "#p=first&mode=reverse&step=2"


def main(page, png):
    browser = Browser(width=1120, height=640)
    try:
        browser.open(f"file://{os.path.abspath(page)}{VIEW}")
        browser.wait("return document.body.dataset.ready", "the page to be ready", 60)
        browser.settle()
        browser.now("scrollTo(0, 0)")
        browser.screenshot(png)
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
