"""Run the bot, and write the CPU time of its child processes by the files in charge.

`python proof_meter.py CPU.json compare --base …` runs `code-size-bot compare --base …`.
A key of CPU.json is the list of files of `bot/study` on the stack, outermost first.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from evidence_work import ANSWERED
from places import ROOT

from bot.start import run
from bot.system import processes

STUDY = str(ROOT / "bot" / "study")


def files_of_stack() -> str:
    """Return the names of the study's files on this thread's stack, outermost first."""
    names: list[str] = []
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if str(path.parent) == STUDY and path.stem not in names:
            names.insert(0, path.stem)
        frame = frame.f_back  # type: ignore[assignment]
    return " ".join(names)


def main() -> int:
    """Run the bot with the words after the file's name, and write the file."""
    out = Path(sys.argv[1])
    sys.argv[1:] = sys.argv[2:]
    used_ms = Counter[str]()
    lock = threading.Lock()
    outcome = processes.Outcome

    def counted(**fields: Any) -> processes.Outcome:
        with lock:
            used_ms[files_of_stack()] += fields["cpu_ms"]
        return outcome(**fields)

    processes.Outcome = counted  # type: ignore[assignment, misc]
    code = run()
    if code in ANSWERED:  # without the file, an interrupted comparison is made again
        out.write_text(json.dumps(used_ms, indent=1, sort_keys=True), encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
