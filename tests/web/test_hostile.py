"""Hostile texts at the page's own command, in headless Chromium: test_hostile.py PAGE COMMAND
[COUNT [SEED]].

Texts that were thought of, and COUNT (100) mutations of the expressions in tests/fuzz/corpus_expr,
are put into the field of the page one after the other. Each gets a result or a sentence; the
console stays silent; and afterwards the page computes as before. The page says of a trap of its
WebAssembly what it says where memory is short, so wherever it says that, the native command must
run out of a gigabyte too."""
import glob
import json
import os
import random
import resource
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from browser import Browser, Failure  # noqa: E402

SECONDS = 20  # then a text is stopped, as a visitor would
MEMORY = "This needs more memory than a page can have"

# Each is JavaScript, so that a text may hold what no other language lets through.
THOUGHT_OF = [
    '""', '" "', '"\\n\\n\\n"', '"("', '"(".repeat(300)', '"(".repeat(100000)', '"[".repeat(5000)',
    '"x".repeat(100000)',
    '"-".repeat(20000) + "x"', '"not ".repeat(500) + "x"', '"x + ".repeat(3000) + "x"',
    '"sin(".repeat(150) + "x" + ")".repeat(150)',
    '"x = 1\\n".repeat(20000)', '"1e999999"', '"1" + "0".repeat(400)', '"9223372036854775807 + 1"',
    '"-9223372036854775808"', '"1/0"', '"0/0"',
    '"x\\u0000y"', '"\\u0000"', 'String.fromCharCode(0xD800)', 'String.fromCharCode(0xDC00, 0xD800) + "x"',
    '"\\uFEFFx"', '"x\\u202Ey"',
    '"\\u{1F600} + x"', '"\\u0301\\u0301x"', '"\\u00E4*\\u03B1"', '"\\uFF11 + \\uFF12"', '"\\u2028x"', '"x\\r\\ny"',
    '"<script>throw 1</script>"', '"<img src=x onerror=throw(1)>"', '"${x}"', '"__proto__ + constructor"',
    '"toString*hasOwnProperty"', '"x.__proto__"',
    '"zeros([100000, 100000])"', '"zeros([1000000000000])"', '"zeros([0, 9223372036854775807])"', '"zeros([1]*100)"',
    '"arange(0, 1e18)"',
    '"ones([2000, 2000]) @ ones([2000, 2000])"', '"reshape(x, [-1, -1])"', '"x[9223372036854775807]"',
    '"zeros([3])[::0]"',
    '"tile(zeros([1000]), [1000000])"', '"repeat(ones([10]), 9223372036854775807, 0)"',
    '"max_pool1d(ones([1, 1, 4]), 2)"',
    '"einsum(\'" + "i".repeat(1000) + "->\', x)"', '"polygamma(1e9, x)"', '"prod(ones([0]))"', '"max(ones([0]))"',
    '"inv(zeros([3, 3]))"',
    '"svd(ones([0, 3]))"', '"x if x else"', '"lambda x: x"', '"import os"', '"f32"', '"nan"', '"-inf"', '"x = x"',
    '"x += x"', '"a, b = x"',
]

WORDS = ["(", ")", "[", "]", ",", ":", ";", "\n", "=", "==", "<", "**", "//", "%", "@", "-", "+", "*", "/", ".", "...",
         "'", "#", "\\\n", " if ", " else ",
         " and ", " or ", "not ", "None", "True", "x", "0", "1", "-1", "1e308", "9223372036854775807", "nan", "sum(",
         "axis=", "reshape(", "zeros(", "where(",
         "[1, 2]", "[[1, 2], [3, 4]]", "f32", ".T", "a, b = ", "x += ", "ä", "\u202e", "😀", "\u0000", "^"]


def mutations(count, seed):
    rng = random.Random(seed)
    texts = [open(path, encoding="utf-8", errors="replace").read()
        for path in sorted(glob.glob(os.path.join(HERE, "..", "fuzz", "corpus_expr", "*")))]
    for _ in range(count):
        text = rng.choice(texts)[:2000]
        for _ in range(rng.randint(1, 4)):
            at = rng.randint(0, len(text))
            kind = rng.randint(0, 3)
            if kind == 0:
                text = text[:at] + rng.choice(WORDS) + text[at:]
            elif kind == 1:
                text = text[:at] + text[at + rng.randint(0, 12):]
            elif kind == 2:
                text = text[:at] + rng.choice(texts)[-rng.randint(1, 80):]
            else:
                piece = text[at:at + 12]
                to = rng.randint(0, len(text))
                text = text[:to] + piece + text[to:]
        yield json.dumps(text)


def native_lacks_memory(command, text, inputs):
    """Does the native command lack memory too, where it has a gigabyte?"""
    limit = 1 << 30
    try:
        done = subprocess.run([command, "trace", "--json", "--seed", "1", "--", text, *inputs], capture_output=True,
                              timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        return b'"memory"' in done.stdout or done.returncode < 0
    except (ValueError, subprocess.TimeoutExpired):  # a NUL, or too slow to say
        return True


class Trial:
    def __init__(self, page, command):
        self.browser, self.command, self.wrong, self.stopped = Browser(), command, [], 0
        self.browser.open(f"file://{page}")
        self.browser.wait("return document.body.dataset.ready", "the page to be ready")

    def put(self, code):
        """Types the text that a piece of JavaScript stands for; what the page shows then."""
        self.browser.now(f"""const e = document.getElementById('expression'); e.value = {code};
            e.dispatchEvent(new Event('input', {{bubbles: true}}))""")
        end = time.monotonic() + SECONDS
        while self.browser.now("return !!document.body.dataset.busy"):
            if time.monotonic() > end:
                self.stopped += 1
                self.browser.now("document.getElementById('stop').click()")
                end += SECONDS
            time.sleep(0.01)
        # Half a surrogate pair would not travel back.
        return self.browser.now("""const e = document.getElementById('error');
            const plain = text => new TextDecoder().decode(new TextEncoder().encode(text));
            return {error: e.hidden ? null : plain(e.innerText.trim()),
                    value: document.getElementById('value')?.textContent ?? '',
                    text: plain(document.getElementById('expression').value),
                    inputs: [...new URLSearchParams(location.hash.slice(1)).getAll('i')]
                        .map(i => i.replace(':', '='))}""")

    def judge(self, code):
        def is_wrong(why):
            self.wrong.append(f"{code[:200]}: {why}")
            print("WRONG:", self.wrong[-1], flush=True)
        try:
            seen = self.put(code)
        except (Failure, OSError) as e:
            return is_wrong(f"the page does not answer: {e}")
        if seen["error"] == "" or (seen["error"] is None and seen["value"] == ""):
            is_wrong("neither a result nor a sentence")
        if seen["error"] and MEMORY in seen["error"] and not native_lacks_memory(self.command, seen["text"],
                seen["inputs"]):
            is_wrong("the page lacks memory, or its WebAssembly trapped; the native command does not")
        for entry in self.browser.log():
            is_wrong(f"the console says {entry['message'][:300]}")

    def still_computes(self):
        seen = self.put('"x1*x2 + sin(x1)"')
        return seen["error"] is None and seen["value"] != ""


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    page, command = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    count, seed = (int(sys.argv[3]) if len(sys.argv) > 3 else 100), (int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    trial = Trial(page, command)
    try:
        texts = [*THOUGHT_OF, *mutations(count, seed)]
        for n, code in enumerate(texts):
            trial.judge(code)
            if n % 50 == 49 and not trial.still_computes():
                trial.wrong.append(f"after {n + 1} texts the page computes no more")
                break
        if not trial.still_computes():
            trial.wrong.append("at the end the page computes no more")
    finally:
        trial.browser.close()
    print(f"{len(texts)} hostile texts at the page, {trial.stopped} stopped after {SECONDS} s: {len(trial.wrong)} "
        f"wrong")
    sys.exit(1 if trial.wrong else 0)


if __name__ == "__main__":
    main()
