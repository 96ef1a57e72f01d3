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
    module.browser = module.Kind()
    try:
        names = [f"{case.__name__}.{name}" for name in given[count + 1:]]
        result = unittest.main(module, argv=[sys.argv[0], *names], exit=False, verbosity=2).result
    finally:
        module.browser.close()
    sys.exit(not result.wasSuccessful())
