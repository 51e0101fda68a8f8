"""Read the compiler's own report of the times of its passes.

`--mlir-timing --mlir-timing-display=list` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_TITLE = "Execution time report"
_SECONDS = r"(\d{1,7}\.\d{4}) \( *[\d.]+%\)"
_COLUMN = re.compile(r"----(\w+) Time----")
_PASS = re.compile(r"[A-Za-z]\w*Pass")
_PER_SECOND = 1_000_000


def pass_times_us(output: str) -> Mapping[str, int]:
    """Return each pass and its wall time in microseconds, the longest first.

    Empty if there is no report. A pass that runs several times is listed once, with
    the sum. Its time includes the passes that it runs itself. Pipelines are left
    out, because the compiler counts the time of nested ones twice.
    """
    _, title, report = output.partition(_TITLE)
    if not title:
        return {}
    times = dict(_rows(report))
    return dict(sorted(times.items(), key=lambda row: (-row[1], row[0])))


def _rows(report: str) -> Iterator[tuple[str, int]]:
    line_pattern = None
    wall = 0
    for line in report.splitlines():
        columns = _COLUMN.findall(line)
        if columns and "Wall" in columns:
            wall = columns.index("Wall") + 1
            line_pattern = re.compile(
                r"\s*" + r"\s+".join([_SECONDS] * len(columns)) + r"  (.+)"
            )
        elif line_pattern and (match := line_pattern.fullmatch(line)):
            name = match[line_pattern.groups]
            if _PASS.fullmatch(name):
                yield name, round(float(match[wall]) * _PER_SECOND)
