"""What the tests of the page have in common: their arguments, and one browser for all of them."""
import os
import sys
import unittest

from browser import Browser
from firefox import Firefox

KINDS = {"chromium": Browser, "firefox": Firefox}


def main(case, places):
    """Runs the tests of a case, all or those that are named: PLACE... chromium|firefox [NAME...].

    `places` are names of the case's module that get the paths; it also gets the kind of browser as
    Kind, and one of it as browser."""
    module, given = sys.modules[case.__module__], sys.argv[1:]
    count = len(places)
    if len(given) <= count or given[count] not in KINDS:
        raise SystemExit(module.__doc__)
    for name, path in zip(places, given):
        setattr(module, name, os.path.abspath(path))
    module.Kind = KINDS[given[count]]
    failed = run(module, [f"{case.__name__}.{name}" for name in given[count + 1:]])
    if failed:
        # A browser on a busy machine may swallow a key; what the page does wrong, it does wrong
        # again.
        print("once more, in a new browser:", *failed, file=sys.stderr)
        failed = run(module, failed)
    sys.exit(bool(failed))


def run(module, names):
    """Runs tests in a browser of their own; the names of those that failed."""
    module.browser = module.Kind()
    try:
        result = unittest.main(module, argv=[sys.argv[0], *names], exit=False, verbosity=2).result
    finally:
        module.browser.close()
    failed = [test.id().removeprefix("__main__.") for test, _ in [*result.failures, *result.errors]]
    return failed or ([] if result.wasSuccessful() else names)
