"""Read the passes that a compiler runs over a program, and write them as a pipeline.

The pipeline runs the passes again, in the same order.

Format: as `bot.readers.printed_files` has it.
From 3.12.0 on the header of a dump has the options of the pass in braces; up to 3.11.0
it has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.readers.pass_pipeline import module_pipeline
from bot.readers.passes import LONGEST_LINE_BYTES
from bot.readers.printed_files import printed_files

_HEADER = re.compile(
    r"// -----// IR Dump After (?P<class>\S+?)(?::| \()"
    r" ?(?P<name>[\w.-]+)(?P<options>\{.*\})?\)? //-----"
)
_ANCHOR = re.compile(r"([a-z]+)_([a-z]+)(?:_|$)")
_WRAPPERS = frozenset({"iree-op-pipeline-adaptor", "iree-util-fixed-point-iterator"})
"""Passes that only run others, which are printed themselves."""
_UNREADABLE = re.compile(r"[\w-]+=(?:unknown)?(?= |\})")
"""Options that are printed without a value that can be read again.

Examples are `target-registry=unknown` and `extra-library=`.
"""


@dataclass(frozen=True, slots=True)
class PassRun:
    """One run of a pass."""

    # the operations that it runs in, outermost first: `builtin.module`, `util.func`
    anchors: tuple[str, ...]
    name: str
    options: str = ""  # in braces, as a pipeline has them; empty for none
    class_name: str = ""  # what implements it

    def without_option(self, option: str) -> PassRun:
        """Return the run without one of its options."""
        kept_text = re.sub(
            rf"(?<![\w-]){re.escape(option)}=(?:\{{[^}}]*\}}|[^ }}]*) ?",
            "",
            self.options,
        )
        return replace(self, options="" if kept_text.strip("{ }") == "" else kept_text)


def pass_runs(directory: Path) -> list[PassRun]:
    """Return the passes that were printed to a directory, in their order.

    Functions are compiled one after the other by the same passes. Those of the first
    function stand for all.
    """
    groups = dict[tuple[tuple[int, ...], tuple[str, ...]], tuple[str, list[PassRun]]]()
    for order, path in printed_files(directory):
        run = _run_of(path, directory)
        if run is None:
            continue
        # A pass over the module stands alone. Those over one function between two such
        # passes belong together.
        key = (order[:-1] if len(order) > 1 else order, run.anchors)
        place = str(path.parent)
        first_place, runs = groups.setdefault(key, (place, []))
        if place == first_place:
            runs.append(run)
    ordered = list[PassRun]()
    for key in sorted(groups, key=lambda key: (key[0], len(key[1]))):
        ordered += groups[key][1]
    return ordered


def _run_of(path: Path, directory: Path) -> PassRun | None:
    with path.open("rb") as file:
        header = _HEADER.match(
            file.readline(LONGEST_LINE_BYTES).decode("utf-8", "replace")
        )
    folders = path.relative_to(directory).parts[:-1]
    anchors = []
    for folder in folders:
        name = _ANCHOR.match(folder)
        if name is None:
            return None
        anchors.append(f"{name[1]}.{name[2]}")
    if header is None or header["name"] in _WRAPPERS:
        return None
    options = _UNREADABLE.sub("", header["options"] or "")
    return PassRun(
        anchors=tuple(anchors),
        name=header["name"],
        options="" if options.strip("{ }") == "" else options,
        class_name=header["class"],
    )


def pipeline_of(runs: Sequence[PassRun]) -> str:
    """Return the value of `--pass-pipeline` that runs these passes in their order."""
    passes = []
    for run in runs:
        passes.append((run.anchors[1:], f"{run.name}{run.options}"))
    return module_pipeline(passes)
