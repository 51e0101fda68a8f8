"""Compare regenerated models with the suite's files, by operations and locations.

A difference in numbering is none: values are compared by the order of their definition. Not compared:
  - line numbers inside the export scripts, which may be edited;
  - the elements of `tosa.const`: random weights give other scales. Equal constants are stored once, so these
    operations are compared by their type, where they are used;
  - the operands of the operations in SCALED, if name and location agree: of the two sides of a quantised
    addition the one with the smaller scale is rescaled. The number of such differences is printed.

examples:
  python check.py /tmp/models/bert_l4_f32_s128.mlir
  python check.py /tmp/models/*.mlir --suite ../models
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from iree.compiler import ir

SUITE = Path(__file__).resolve().parent.parent / "models"
SCRIPT = re.compile(r'"(?:export_hf|export_jax|torch_models|jax_models)\.py":\d+:\d+(?: to \d*:\d+)?')
"""A place in an export script, this one's or the one that made the suite's file (``"export_hf.py":26:0``)."""
SCALED = frozenset({"tosa.add", "tosa.rescale", "tosa.reshape"})
"""Operations whose operands depend on which side of a quantised addition has the smaller scale."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation: its name, the rest of it (operands, attributes, types) and its normalised location."""

    name: str
    details: str
    location: str

    def like(self, other: Entry | None) -> bool:
        """Equal, or different only in what random scales decide."""
        if other is None or self == other:
            return other is not None
        return self.name in SCALED and (self.name, self.location) == (other.name, other.location)


@dataclass(slots=True)
class Reader:
    """Turns a module into entries; ``names`` maps each value to the name of its definition."""

    names: dict[Any, str] = field(default_factory=dict)
    defined: int = 0

    def entries(self, op: Any) -> Iterator[Entry]:
        """The operation and all operations inside it, in program order."""
        if op.name == "tosa.const":
            self.names[op.results[0]] = f"constant {op.results[0].type}"
            return
        operands = [self.names.get(operand, "?") for operand in op.operands]
        attributes = sorted(f"{name}={op.attributes[name]}" for name in op.attributes)
        types = [str(result.type) for result in op.results]
        details = f"({', '.join(operands)}) {{{', '.join(attributes)}}} -> {types}"
        yield Entry(op.name, details, location_of(op.location))
        for result in op.results:
            self.define(result)
        for block in (block for region in op.regions for block in region.blocks):
            yield from self.block_entries(block)

    def block_entries(self, block: Any) -> Iterator[Entry]:
        """The arguments of a block, then its operations."""
        for argument in block.arguments:
            self.define(argument)
            yield Entry("argument", str(argument.type), location_of(argument.location))
        for op in block.operations:
            yield from self.entries(op.operation)

    def define(self, value: Any) -> None:
        """Name a value by the order of definition."""
        self.names[value] = f"v{self.defined}"
        self.defined += 1


def location_of(location: Any) -> str:
    """The location as text, without line numbers where it is a place in an export script."""
    return SCRIPT.sub('"<export script>"', str(location))


def read(path: Path) -> list[Entry]:
    """All operations of an MLIR file; one that does not parse ends the program with exit code 1."""
    with ir.Context():
        try:
            module = ir.Module.parse(path.read_text(encoding="utf-8"))
        except ir.MLIRError as error:
            sys.exit(f"{path}: does not parse: {error}")
        return list(Reader().entries(module.operation))


def difference(suite: list[Entry], fresh: list[Entry]) -> str | None:
    """The first difference, as a message of three lines; None when there is none."""
    for number, (old, new) in enumerate(zip_longest(suite, fresh)):
        if old is None or not old.like(new):
            return f"first difference at operation {number}\n  suite: {shown(old)}\n  fresh: {shown(new)}"
    return None


def shown(entry: Entry | None) -> str:
    """An entry on one line, its details shortened."""
    return f"{entry.name} {entry.details[:300]} at {entry.location}" if entry else "(no more operations)"


def summary_of(suite: list[Entry], fresh: list[Entry]) -> str:
    """What agrees: the counts, and how many operations differ in what random scales decide."""
    locations = len({entry.location for entry in fresh})
    scaled = sum(old != new for old, new in zip(suite, fresh, strict=True))
    note = f" ({scaled} of them take other operands, as their scales decide)" if scaled else ""
    return f"same: {len(fresh)} operations, {locations} locations{note}"


def check(fresh_path: Path, suite_folder: Path) -> bool:
    """Whether a file is the same as the suite's file of the same name; prints the outcome."""
    suite, fresh = read(suite_folder / fresh_path.name), read(fresh_path)
    found = difference(suite, fresh)
    print(f"{fresh_path.stem}: {found or summary_of(suite, fresh)}")
    return found is None


def main() -> int:
    """Exit code 0 when all files are the same, 1 when one differs."""
    summary, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="regenerated .mlir files")
    parser.add_argument("--suite", type=Path, default=SUITE, metavar="DIR", help="the files to compare with")
    args = parser.parse_args()
    missing = [path for path in args.files if not (path.is_file() and (args.suite / path.name).is_file())]
    if missing:
        parser.error(f"{missing[0]}: needs a file of this name both here and in {args.suite}")
    outcomes = [check(path, args.suite) for path in args.files]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
