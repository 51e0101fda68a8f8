"""`python -m bot` is `code-size-bot`; a Python that is too old for it can still read this file, and says so."""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - whoever starts it from a checkout was asked by no installer
    sys.stderr.write("Python 3.10 or newer is needed, this is " + ".".join(map(str, sys.version_info[:3])) + "\n")
    sys.exit(2)

from bot.start import run

raise SystemExit(run())
