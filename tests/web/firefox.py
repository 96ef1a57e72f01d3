"""A headless Firefox, driven through its own WebDriver BiDi port: Debian has no geckodriver. It
answers what browser.Browser answers."""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from browser import Failure, keystroke, Page, turning
from websocket import WebSocket

# Nothing is fetched, and nothing asks: a profile of its own, for one test.
PREFERENCES = {"browser.shell.checkDefaultBrowser": False, "browser.startup.page": 0, "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False, "toolkit.telemetry.enabled": False, "network.proxy.type": 0,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "browser.safebrowsing.update.enabled": False, "extensions.update.enabled": False,
    "browser.newtabpage.enabled": False, "remote.active-protocols": 1, "full-screen-api.warning.timeout": 0}


class Firefox(Page):
    def __init__(self, width=1280, height=800, dark=False, calm=True):
        self.folder = tempfile.mkdtemp(prefix="cotangent-firefox-")
        self.socket, self.number, self.said = None, 0, []
        binary = shutil.which("firefox-esr") or shutil.which("firefox")
        if not binary:
            raise SystemExit("Firefox is not installed: tools/setup.sh test-web")
        preferences = {**PREFERENCES, "layout.css.prefers-color-scheme.content-override": 0 if dark else 1,
            "ui.prefersReducedMotion": 1 if calm else 0}
        with open(os.path.join(self.folder, "user.js"), "w", encoding="utf-8") as f:
            f.writelines(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in preferences.items())
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.process = subprocess.Popen([binary, "--headless", "--no-remote", "--profile", self.folder,
            f"--remote-debugging-port={port}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, "HOME": self.folder, "MOZ_REMOTE_SETTINGS_DEVTOOLS": "1"})
        try:
            self._connect(port)
            self._do("session.new", capabilities={})
            self._do("session.subscribe", events=["log.entryAdded"])
            # the window that it starts with never gets the focus
            self.context = self._do("browsingContext.create", type="window")["context"]
            self.size(width, height)
        except BaseException:
            self.close()
            raise

    def _connect(self, port, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                self.socket = WebSocket(port, "/session")
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise Failure("Firefox does not answer") from None
                time.sleep(0.1)

    def _do(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("type") == "event":
                self.said.append(answer["params"])
            elif answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{answer['error']}: {answer['message']}")
                return answer["result"]

    def size(self, width, height):
        self._do("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})

    def open(self, address):
        # A page that is still computing writes its address when it is done. Firefox then takes that
        # for what was asked for, and the answer to the next navigation never comes.
        self.settle()
        try:
            self._navigate(address)
        except TimeoutError:  # long addresses are written later still
            self._navigate(address)

    def _navigate(self, address):
        self._do("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def now(self, script, *args):
        # JSON there and back: what the other driver does
        answer = self._do("script.callFunction", target={"context": self.context}, awaitPromise=True, arguments=[
            {"type": "string", "value": script}, {"type": "string", "value": json.dumps(args)}], userActivation=True,
            functionDeclaration="async (script, args) => JSON.stringify(await new Function(script)"
            "(...JSON.parse(args)) ?? null)")
        if answer["type"] == "exception":
            raise Failure(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def act(self, sources):
        self._do("input.performActions", context=self.context, actions=sources)

    def click(self, selector):
        self.settle()
        place = self.now("""const e = document.querySelector(arguments[0]);
            e.scrollIntoView({ block: "nearest", behavior: "instant" });
            const r = e.getBoundingClientRect(), x = Math.round(r.left + r.width / 2);
            const y = Math.round(r.top + r.height / 2);
            const top = document.elementFromPoint(x, y);
            return { x, y, free: e === top || e.contains(top) || e.labels?.[0]?.contains(top), top: top?.outerHTML }""",
            selector)
        if not place["free"]:
            raise Failure(f"{selector} is covered by {place['top'][:120]}")
        self.act([{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": place["x"], "y": place["y"]}, {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0}]}])

    def type(self, selector, text):
        """Replaces what a field holds by typing."""
        if not self.now("const e = document.querySelector(arguments[0]); if (!e.checkVisibility()) return false; "
                "e.focus(); e.value = ''; e.dispatchEvent(new Event('input', {bubbles: true})); return true", selector):
            raise Failure(f"{selector} cannot be seen")
        actions = [{"type": kind, "value": c} for c in text for kind in ("keyDown", "keyUp")]
        self.act([{"type": "key", "id": "keyboard", "actions": actions}])

    def press(self, key):
        self.settle()
        self.act([{"type": "key", "id": "keyboard", "actions": keystroke(key)}])

    def wheel(self, x, y, by, held=None):
        self.act(turning(x, y, by, held))

    def log(self):
        """What the console said since the last call."""
        self.now("return 0")  # what was said before comes before the answer
        said, self.said = self.said, []
        return [{"message": f"{entry.get('level')}: {entry.get('text')}"} for entry in said]

    def screenshot(self, path, whole=False):
        data = self._do("browsingContext.captureScreenshot", context=self.context,
            origin="document" if whole else "viewport")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def _end(self):
        if not self.socket:
            return
        try:
            self._do("browser.close")
        finally:
            self.socket.close()
