"""Where the tests find the repository and their fixtures."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
FIXTURES = TESTS / "fixtures"
PROGRAMS = TESTS / "support" / "fakes"
