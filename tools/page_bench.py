"""How fast does a page of 200 builds open, against a page of plain text of as many bytes?

Both open in the same browser. `PYTHONPATH=tests/support python tools/page_bench.py`
prints both times, and their ratio. The time is that from the navigation to the end of
loading or to the first painting, whichever is later. Both pages open by turns, several
times, and the median counts. If PAGEs are given, it opens them and no page of its own.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from browser import NAMES, chromium
from everyday import repeated_report
from playwright.sync_api import Browser

from bot.show.page import html_pieces

CELLS = 200
ROUNDS = 9
TIMES = 3  # The bound: the page's time as a multiple of the text's
LARGEST_BYTES = 5_000_000
_TEXT = (
    "<p>main_dispatch_0_matmul_128x768x768_f32 1,234 → 5,678 B, as in a table that"
    " nobody laid out.</p>\n"
)
_OPENED = """
async () => {
  const painted = () => performance.getEntriesByType("paint").map((entry) => entry.startTime);
  while (!painted().length || !performance.getEntriesByType("navigation")[0].loadEventEnd) {
    await new Promise((next) => setTimeout(next, 5));
  }
  return Math.max(...painted(), performance.getEntriesByType("navigation")[0].loadEventEnd);
}
"""


def plain(size: int) -> str:
    """Return a page of so many bytes that has text alone."""
    frame = (
        '<!DOCTYPE html>\n<html lang="en"><meta'
        ' charset="utf-8"><title>Text</title>\n{}</html>'
    )
    room = size - len(frame.format("").encode())
    text = _TEXT * (room // len(_TEXT.encode()))
    return frame.format(text + " " * (room - len(text.encode())))


def opening_ms(browser: Browser, path: Path) -> float:
    """Return the time from the navigation to the end of loading and painting.

    The page is in a tab of its own.
    """
    page = browser.new_page()
    page.goto(path.resolve().as_uri())
    milliseconds: float = page.evaluate(_OPENED)
    page.close()
    return milliseconds


def measured(
    browser: Browser, folder: Path, html: str, rounds: int = ROUNDS
) -> tuple[int, float, float]:
    """Return the bytes of a page, and the median time to open it.

    The third value is the median time of a page with text alone. Both are in
    milliseconds.
    """
    pages = {"page": html, "text": plain(len(html.encode()))}
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    times: dict[str, list[float]] = {name: [] for name in pages}
    for number in range(rounds + 1):
        for name in pages:
            spent = opening_ms(browser, folder / f"{name}.html")
            # the first of each fills the browser's own caches
            times[name] += [spent] if number else []
    return len(html.encode()), median(times["page"]), median(times["text"])


def rows(
    rounds: int = ROUNDS, paths: Sequence[Path] = ()
) -> list[tuple[str, str, str]]:
    """Return the rows for the table of `make bench`: (what, measured, bound)."""
    if not any(map(shutil.which, NAMES)):
        return [(f"page of {CELLS} builds: no Chromium here to open it", "", "")]
    pages = {str(path): path.read_text(encoding="utf-8") for path in paths}
    table: list[tuple[str, str, str]] = []
    with (
        tempfile.TemporaryDirectory(prefix="code-size-page-") as name,
        chromium() as browser,
    ):
        for label, html in (
            pages
            or {f"page of {CELLS} builds": "".join(html_pieces(repeated_report(CELLS)))}
        ).items():
            size, page, text = measured(browser, Path(name), html, rounds)
            table += [
                (
                    f"{label}, size",
                    f"{size / 1e6:.1f} MB",
                    f"≤ {LARGEST_BYTES / 1e6:.0f} MB",
                ),
                ("  it opens in Chromium in", f"{page:.0f} ms", ""),
                (
                    "  the same / a page of text of as many bytes",
                    f"{page / text:.1f}",
                    f"≤ {TIMES}",
                ),
            ]
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    chosen = parser.parse_args()
    for row in rows(chosen.rounds, chosen.pages):
        print(*row)
