"""docs/evidence.md, a part at a time: `make evidence` does all of it, `make evidence PART=proofs` one part.

A part that was interrupted goes on where it was: cells are in the cache, and what else
is needed in `--work`. A part that is done begins anew the next time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import against_compiler
import alarm_evidence
import printed_commands
import proof_shares
import repeat_evidence
from evidence_page import written
from evidence_work import Section, Work, add_options, work_of
from places import ROOT

PARTS: Mapping[str, Callable[[Work], Section]] = {
    "noise": repeat_evidence.noise,
    "same": repeat_evidence.same,
    "commands": printed_commands.commands,
    "flags": printed_commands.flags,
    "proofs": proof_shares.proofs,
    "compiler": against_compiler.compiler,
    "alarms": alarm_evidence.alarms,
}
"""In the order of the page."""
START = "# Evidence\n"


def made(part: str, work: Work, out: Path) -> bool:
    """Make a part and write it into the page.

    Returns whether all of it is as it should be.
    """
    section = PARTS[part](work)
    page = out.read_text(encoding="utf-8") if out.is_file() else START
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(written(page, part, section.lines, tuple(PARTS)), encoding="utf-8")
    work.done(part)
    work.say(f"{part}: {'as it should be' if section.sound else 'LOOK AT IT'}")
    return section.sound


def main() -> int:
    """Make the parts that are asked for; return 1 if something in them is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    about = "one part; may be repeated (default: all)"
    parser.add_argument(
        "--part", action="append", choices=PARTS, default=[], help=about
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs" / "evidence.md", metavar="FILE"
    )
    add_options(parser)
    options = parser.parse_args()
    work = work_of(options)
    sound = [
        made(part, work, options.out)
        for part in PARTS
        if part in options.part or not options.part
    ]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    raise SystemExit(main())
