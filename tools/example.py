"""docs/example anew: the whole report of IREE 3.11.0 against 3.13.0 over the quick suite, and a picture of its page.

The sides are those that `tests/fixtures/everyday` has recorded. `--picture` draws the page, too, which takes a browser.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import everyday
from places import ROOT

from bot.show.comment import write_report

CASE = "two_releases"
FOLDER = ROOT / "docs" / "example"
SHOWN = ("comment.md", "report.html", "report.json")
PICTURE = ROOT / ".github" / "page.png"


def write(folder: Path) -> None:
    """The files that are shown, of those that a comparison writes."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for file in write_report(everyday.report(CASE), None, Path(scratch)):
            if file.name in SHOWN:
                shutil.copy(file, folder / file.name)


def draw(page: Path, picture: Path) -> None:
    """The first screen of a page."""
    from browser import chromium, opened  # only who draws has one

    with chromium() as browser, opened(browser, page) as tab:
        tab.set_viewport_size({"width": 1100, "height": 800})
        tab.wait_for_timeout(1000)  # what is drawn moves at first
        tab.screenshot(path=picture)


if __name__ == "__main__":
    write(FOLDER)
    if "--picture" in sys.argv[1:]:
        draw(FOLDER / "report.html", PICTURE)
