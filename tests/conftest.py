"""Hypothesis draws the same examples in every run, so that a red test is red for everyone."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, max_examples=60, deadline=None)
settings.load_profile("repeatable")

# Started in the background, a shell leaves SIGINT ignored, and every child inherits that: Ctrl-C could not be tested.
signal.signal(signal.SIGINT, signal.default_int_handler)
