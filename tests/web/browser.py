"""A headless Chromium, driven through chromedriver with the W3C WebDriver protocol over plain HTTP
on the loopback interface. Only the standard library is used, and only what the tests of the page
need."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Left": "\ue012", "Right": "\ue014", "Home": "\ue011", "End": "\ue010", "Enter": "\ue007", "Tab": "\ue004",
    "Space": " ", "Escape": "\ue00c", "Shift": "\ue008", "Up": "\ue013", "Down": "\ue015", "Control": "\ue009"}


def keystroke(key):
    """Down in order, up in the other: the actions of "Shift+Right"."""
    keys = [KEYS.get(part, part) for part in (key.split("+") if len(key) > 1 else [key])]
    return [*({"type": "keyDown", "value": k} for k in keys), *({"type": "keyUp", "value": k} for k in reversed(keys))]


def turning(x, y, by, held):
    """The actions of a wheel, with a key held or not."""
    turn = {"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by, "origin": "viewport"}
    if not held:
        return [{"type": "wheel", "id": "wheel", "actions": [turn]}]
    keys = [{"type": "keyDown", "value": KEYS[held]}, {"type": "pause"}, {"type": "keyUp", "value": KEYS[held]}]
    return [{"type": "key", "id": "keyboard", "actions": keys},
        {"type": "wheel", "id": "wheel", "actions": [{"type": "pause"}, turn]}]


class Failure(Exception):
    """The driver refused a command."""


class Page:
    """What is asked of a page in any browser, by way of now(script, *args)."""

    def close(self):
        """Ends the session, by _end(), and what was started for it."""
        try:
            self._end()
        except (Failure, OSError):
            pass
        finally:
            try:
                # the group of the process, with the browser in it
                os.killpg(self.process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
            self.process.wait(10)
            shutil.rmtree(self.folder, ignore_errors=True)

    def js(self, script, *args):
        """The value of a script, once the page has answered what was asked before."""
        self.settle()
        return self.now(script, *args)

    def settle(self, seconds=30):
        """Until nothing is being computed: pages say so with data-busy."""
        end = time.monotonic() + seconds
        while self.now("return !!document.body?.dataset.busy"):
            if time.monotonic() > end:
                raise Failure(f"the page is still busy after {seconds} s")
            time.sleep(0.01)

    def wait(self, script, what, seconds=15):
        """Until the script returns something true, which is returned."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.now(script)
            if value:
                return value
            time.sleep(0.02)
        raise Failure(f"waited {seconds} s in vain for {what}")

    def text(self, selector):
        return self.js("const e = document.querySelector(arguments[0]); return e ? e.innerText : null", selector)

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())", selector)


class Browser(Page):
    """Chromium."""

    def __init__(self, width=1280, height=800, dark=False, calm=True):
        self.folder = tempfile.mkdtemp(prefix="cotangent-web-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        driver = shutil.which("chromedriver")
        if not driver:
            raise SystemExit("chromedriver is not installed: tools/setup.sh test-web")
        self.process = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True,
                                        env={**os.environ, "TMPDIR": self.folder})
        self.session = None
        try:
            self._wait_for_driver()
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
                         "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND",
                         "--blink-settings=preferredColorScheme=" + ("0" if dark else "1"),
                         f"--user-data-dir={self.folder}/profile", f"--window-size={width},{height}"]
            arguments += ["--force-prefers-reduced-motion"] if calm else []
            options = {"args": arguments}
            if shutil.which("chromium"):
                options["binary"] = shutil.which("chromium")
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}, "pageLoadStrategy": "normal"}}})
            self.session = answer["sessionId"]
            self.size(width, height)
        except BaseException:
            self.close()
            raise

    def _wait_for_driver(self):
        for _ in range(200):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.05)
        raise Failure("chromedriver does not answer")

    def _call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(), headers={
                                             "Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as e:
            value = json.load(e)["value"]
            raise Failure(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def _do(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def size(self, width, height):
        """The size of the page itself, phones included (a window cannot be made narrower than some
        500 pixels)."""
        self._do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})

    def open(self, address):
        self._do("POST", "/url", {"url": address})

    def now(self, script, *args):
        return self._do("POST", "/execute/sync", {"script": script, "args": list(args)})

    def find(self, selector):
        return self._do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.settle()
        self._do("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        """Replaces what a field holds by typing."""
        element = self.find(selector)
        self._do("POST", f"/element/{element}/clear", {})
        self._do("POST", f"/element/{element}/value", {"text": text})

    def press(self, key):
        """A key, or several at once: "Shift+Right"."""
        self.settle()
        self.act([{"type": "key", "id": "keyboard", "actions": keystroke(key)}])

    def act(self, sources):
        self._do("POST", "/actions", {"actions": sources})

    def wheel(self, x, y, by, held=None):
        """Turns the wheel at a place, with a key held."""
        self.act(turning(x, y, by, held))

    def log(self):
        """What the console said since the last call."""
        return self._do("POST", "/se/log", {"type": "browser"})

    def screenshot(self, path, whole=False):
        if whole:
            data = self._do("POST", "/goog/cdp/execute",
                {"cmd": "Page.captureScreenshot", "params": {"captureBeyondViewport": True}})["data"]
        else:
            data = self._do("GET", "/screenshot")
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def _end(self):
        if self.session:
            self._do("DELETE", "")
