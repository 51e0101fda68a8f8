"""`python -m bot` is `code-size-bot`.

A Python that is too old for it can still read this file, and says so.
"""

import sys

# No installer checked the version for someone who starts the program from a checkout.
if sys.version_info < (3, 10):  # noqa: UP036
    sys.stderr.write(
        "Python 3.10 or newer is needed, this is "
        + ".".join(map(str, sys.version_info[:3]))
        + "\n"
    )
    sys.exit(2)

from bot.start import run

raise SystemExit(run())
