"""A signal ends the program with 130 whenever it comes: 1 would mean that the verdict is fail."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from places import ROOT

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
# Sends itself the signal when it begins to import a module for the first time, or when
# Python ends.
PROGRAM = """
import atexit, builtins, os, signal, sys
when, number = sys.argv[1], int(sys.argv[2])
signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
really_import = builtins.__import__

def send():
    if builtins.__import__ is not really_import:
        builtins.__import__ = really_import
        os.kill(os.getpid(), number)

def importing(name, *others, **named):
    if name == when:
        send()
    return really_import(name, *others, **named)

builtins.__import__ = importing
if when == "exit":
    atexit.register(send)
from bot.start import run
sys.argv[1:] = ["targets", "--quiet"]
sys.exit(run())
"""


def ended(when: str, number: signal.Signals) -> tuple[int, str]:
    argv = [sys.executable, "-c", PROGRAM, when, str(int(number))]
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "when", ["bot.cli.main", "bot.cli.options", "bot.cli.showing", "bot.cli.work"]
)
def test_a_signal_during_start_up_ends_with_130_and_one_line(
    when: str, number: signal.Signals
) -> None:
    assert ended(when, number) == (
        130,
        f"code-size-bot: ended by {number.name} during start-up\n",
    )


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_after_the_work_does_not_change_the_exit_code(
    number: signal.Signals,
) -> None:
    assert ended("exit", number) == (0, "")
