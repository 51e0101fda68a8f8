"""Hypothesis draws the same examples in every run, so that a red test is red for everyone."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, max_examples=60, deadline=None)
settings.load_profile("repeatable")
