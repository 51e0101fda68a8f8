"""The headline cause of every changed cell, judged once more by something that shares no code with the bot.

The printed commands of both sides are run with dumps (which leave the artifact as it is). Functions are paired by their
name without ordinal and by order; their sizes come from the assembly or the object code, and their cause from the IR:
one side has no such function, or another source of it: `formed`; other configuration attributes: `strategy`; the same:
`codegen`. The rest of the executables is `container`, bytecode and constants are `host`, what is left is `packaging`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cause_reading import Function, bare, code_of, executable_bytes, functions, host_bytes
from places import ROOT

FORMED = frozenset({"input", "fusion", "dedup-lost", "dedup-won"})
TRIES = 6
DUMPS = ("--dump-compilation-phases-to", "--iree-hal-dump-executable-binaries-to")
LIMITS = (
    "What the script cannot tell: `formed` is all of `input`, `fusion`, `dedup-lost` and `dedup-won`, because a name "
    "says only that a function is there or not. A function whose source changed in numbers or maps alone counts as "
    "the same source. Sizes on llvm-cpu are those of the object file, before linking; read-only data that belongs to "
    "a function is `container`. On vulkan a function is its SPIR-V module without names and decorations, on metal its "
    "whole source text. On vmvx sizes are those of bytecode functions, and nothing else of that code is compared."
)


@dataclass(frozen=True)
class Side:
    """What one compile gave.

    Attributes:
        code: bytes of each function, by name.
        sizes: bytes of the artifact, of its executables, and of bytecode and constants without these.
    """

    functions: Sequence[Function]
    code: Mapping[str, int]
    artifact: int
    executables: int
    host: int


@dataclass(frozen=True)
class Judged:
    """One cell's two answers; `problem` where there is no second one."""

    cell: Mapping[str, Any]
    parts: Mapping[str, int]
    problem: str = ""


def headline(parts: Mapping[str, int]) -> tuple[str, float]:
    """The cause with the largest absolute part, `mixed` where that is under half; its share."""
    whole = sum(abs(size) for size in parts.values())
    if not whole:
        return "none", 0.0
    cause = max(parts, key=lambda name: abs(parts[name]))
    share = abs(parts[cause]) / whole
    return (cause if share >= 0.5 else "mixed"), share


def paired(
    base: Iterable[Function], head: Iterable[Function], key: Callable[[Function], object]
) -> tuple[list[tuple[Function, Function]], list[Function], list[Function]]:
    """Functions of equal key in their order; and those of each side that found none."""
    waiting: defaultdict[object, list[Function]] = defaultdict(list)
    for one in base:
        waiting[key(one)].append(one)
    pairs, alone = [], []
    for other in head:
        if queue := waiting[key(other)]:
            pairs.append((queue.pop(0), other))
        else:
            alone.append(other)
    return pairs, [one for queue in waiting.values() for one in queue], alone


def cause(base: Function, head: Function) -> str:
    """What the IR says of two functions that are taken for the same."""
    if base.source != head.source:
        return "formed"
    return "strategy" if base.settings != head.settings else "codegen"


def dispatch_parts(base: Side, head: Side) -> Counter[str]:
    """The change of the functions' code by cause. A function that only changed its name is found by its source."""
    named, old, new = paired(base.functions, head.functions, lambda one: bare(one.name))
    renamed, old, new = paired(old, new, lambda one: one.source)
    parts: Counter[str] = Counter()
    for one, other in (*named, *renamed):
        parts[cause(one, other)] += head.code.get(other.name, 0) - base.code.get(one.name, 0)
    parts["formed"] += sum(head.code.get(one.name, 0) for one in new) - sum(base.code.get(one.name, 0) for one in old)
    return parts


def judge(base: Side, head: Side) -> dict[str, int]:
    """The waterfall of a cell: it adds up to the change of the artifact."""
    parts = dispatch_parts(base, head)
    parts["container"] = head.executables - base.executables - sum(parts.values())
    parts["host"] = head.host - base.host
    parts["packaging"] = head.artifact - base.artifact - sum(parts.values())
    return {name: size for name, size in sorted(parts.items()) if size}


def listing(path: Path) -> str:
    """What the runtime's own tool says of a module's segments."""
    beside = Path(sys.executable).parent / "iree-dump-module"
    tool = str(beside) if beside.is_file() else shutil.which("iree-dump-module") or "iree-dump-module"
    return subprocess.run([tool, "--output=metadata", str(path)], capture_output=True, text=True, check=True).stdout


def compiled(cell: Mapping[str, Any], side: str, binary: Path, folder: Path) -> None:
    """The printed command with dumps, the artifact as `a.vmfb`; that it is as large as reported is checked."""
    dumps = [*DUMPS, *(["--iree-hal-dump-executable-intermediates-to"] * cell["target"].startswith("llvm-cpu"))]
    options = " ".join(f"{name}={folder / str(number)}" for number, name in enumerate(dumps))
    line = cell["command"][side].replace("iree-compile -", f"{binary} - {options}", 1)
    line = line.replace(f"-o {cell['model']}.vmfb", f"-o {folder / 'a.vmfb'}")
    subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, check=True)
    reported, made = cell["metrics"]["artifact_bytes"][side], (folder / "a.vmfb").stat().st_size
    if reported != made:
        raise ValueError(f"{side} was reported with {reported:,} B, and has {made:,} B now")


def seen(folder: Path) -> Side:
    """What the dumps in a folder say; each function of the IR has to have its code, and no other."""
    phase = {path.name.split(".")[-2]: path for path in (folder / "0").iterdir()}
    sources, configured, vm = (
        phase[name].read_text(encoding="utf-8") for name in ("executable-sources", "executable-configurations", "vm")
    )
    modules = "".join(listing(path) for path in sorted((folder / "1").glob("*.vmfb")))
    executables = executable_bytes(vm)
    host = host_bytes(listing(folder / "a.vmfb")) - executables
    artifact = (folder / "a.vmfb").stat().st_size
    side = Side(functions(sources, configured), code_of(folder, modules), artifact, executables, host)
    if {one.name for one in side.functions} != side.code.keys():
        raise ValueError("the IR and the device code have different functions")
    return side


def one_side(cell: Mapping[str, Any], side: str, binary: Path) -> Side:
    """Compile one side of a cell and read it; where the compiler gives one of several artifacts, it is asked anew."""
    for left in reversed(range(TRIES)):
        with tempfile.TemporaryDirectory(prefix="cause-") as name:
            try:
                compiled(cell, side, binary, Path(name))
            except ValueError:
                if not left:
                    raise
                continue
            return seen(Path(name))
    raise AssertionError("the last try returns or raises")


def judged(cell: Mapping[str, Any], base: Path, head: Path) -> Judged:
    """A cell with its second waterfall."""
    try:
        return Judged(cell, judge(one_side(cell, "base", base), one_side(cell, "head", head)))
    except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
        return Judged(cell, {}, f"{type(error).__name__}: {error}"[:200])


def agrees(one: Judged) -> bool:
    """Whether both headlines say the same; the script has one word for all ways of forming regions."""
    told = one.cell["cause"]
    return ("formed" if told in FORMED else told) == headline(one.parts)[0]


def equal(one: Judged) -> bool:
    """Whether both waterfalls have the same bytes in every part, those of `formed` taken together."""
    folded: Counter[str] = Counter()
    for name, size in one.cell["waterfall"].items():
        folded["formed" if name in FORMED else name] += size
    return {name: size for name, size in folded.items() if size} == one.parts


def told(parts: Mapping[str, int]) -> str:
    """A waterfall in one line, largest part first."""
    return ", ".join(f"{name} {size:+,}" for name, size in sorted(parts.items(), key=lambda one: -abs(one[1])))


def row(one: Judged) -> str:
    """A cell's line of the table."""
    sizes, (found, share) = one.cell["metrics"]["artifact_bytes"], headline(one.parts)
    reported = f"{sizes['head'] - sizes['base']:+,} B | {one.cell['cause']} | {headline(one.cell['waterfall'])[1]:.0%}"
    second = "not judged | n/a" if one.problem else f"{found} | {share:.0%}"
    return f"| {one.cell['model']} | {one.cell['target']} | {reported} | {second} |"


def lines(found: Sequence[Judged]) -> Iterator[str]:
    """The table, and what is to be said of it."""
    answered = [one for one in found if not one.problem]
    agreeing = sum(map(agrees, answered))
    same = sum(map(equal, answered))
    yield f"{len(found)} changed cells; {len(found) - len(answered)} could not be judged. Of the others"
    yield f"{agreeing} of {len(answered)} have the same headline both ways, {same} the same bytes in every part."
    yield from ("", LIMITS)
    yield from ("", "| model | target | artifact | headline | share | judged | share |")
    yield from ("|:--|:--|--:|:--|--:|:--|--:|", *map(row, found), "")
    for one in found:
        where = f"- `{one.cell['model']}` on {one.cell['target']}"
        if one.problem:
            yield f"{where} was not judged: {one.problem}"
        elif not agrees(one):
            yield f"{where}: the bot has {told(one.cell['waterfall'])}; the script has {told(one.parts)}"


def table(report: Mapping[str, Any], base: Path, head: Path, jobs: int = 1) -> list[str]:
    """The section of docs/evidence.md: every changed cell of a report that has a waterfall."""
    cells = [cell for cell in report["cells"] if cell["state"] == "changed" and cell.get("waterfall")]
    with ThreadPoolExecutor(jobs) as pool:
        return list(lines(list(pool.map(lambda cell: judged(cell, base, head), cells))))


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, required=True, help="a report.json with waterfalls")
    parser.add_argument("--base", type=Path, required=True, help="the native iree-compile of the base side")
    parser.add_argument("--head", type=Path, required=True, help="and that of the head side")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="the Markdown file to write")
    return parser.parse_args()


def main() -> int:
    """Judge a report, and write the table."""
    given = arguments()
    report = json.loads(given.report.read_text(encoding="utf-8"))
    written = table(report, given.base.resolve(), given.head.resolve(), given.jobs)
    given.out.write_text("\n".join(written) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
