"""Start and end the program.

It handles signals before a command begins and after it is done.
"""

from __future__ import annotations

import os
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130


def _end_at_once(number: int, _frame: object) -> None:
    """End the program during start-up: nothing runs yet, and nothing is written."""
    os.write(
        2,
        f"code-size-bot: ended by {signal.Signals(number).name} during start-up\n".encode(),
    )
    os._exit(_INTERRUPTED)


def run() -> int:
    """Run the program.

    A signal ends it with 130 at any time, because 1 means that the verdict is fail.
    """
    # as nohup has it
    handled = [
        number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in handled:
        signal.signal(number, _end_at_once)
    from bot.cli.main import main
    from bot.errors import Interrupted

    try:
        code = main()
    except (
        Interrupted,
        KeyboardInterrupt,
    ):  # a second signal, while the program told of the first one
        code = _INTERRUPTED
    for number in handled:  # what was asked for is done
        signal.signal(number, signal.SIG_IGN)
    return code
