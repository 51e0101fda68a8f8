"""Write docs/example anew: a report over the quick suite, and pictures of its page.

It compares IREE 3.11.0 and 3.13.0. `tests/fixtures/everyday` has both sides.
`--picture` also draws the pictures, which needs a browser and a font with colour emoji.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import everyday
from places import ROOT

from bot.show.report_files import write_report

CASE = "two_releases"
FOLDER = ROOT / "docs" / "example"
SHOWN = ("comment.md", "report.html", "report.json")
PICTURE = ROOT / ".github" / "page.png"
MAP_PICTURE = ROOT / ".github" / "map.png"


def write(folder: Path) -> None:
    """Write the files of a comparison that are shown."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for file in write_report(everyday.report(CASE), None, Path(scratch)):
            if file.name in SHOWN:
                shutil.copy(file, folder / file.name)


def draw(page: Path, picture: Path, map_picture: Path) -> None:
    """Draw the first screen of a page, and its map of where the bytes went."""
    from browser import chromium, opened  # only who draws has one

    with chromium() as browser, opened(browser, page) as tab:
        tab.set_viewport_size({"width": 1100, "height": 800})
        tab.wait_for_timeout(1000)  # what is drawn moves at first
        tab.screenshot(path=picture)
        tab.locator("section[aria-labelledby=map]").screenshot(path=map_picture)


if __name__ == "__main__":
    write(FOLDER)
    if "--picture" in sys.argv[1:]:
        draw(FOLDER / "report.html", PICTURE, MAP_PICTURE)
