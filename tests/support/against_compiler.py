"""The figures of a snapshot against the compiler's own tools, over all cells: `python -m against_compiler`.

The printed command of each cell is run once more with dumps. `iree-dump-module` has the artifact's parts, the
compiler's statistics the counts of the schedule, `readelf` sections and functions of CPU and AMD code. `ptxas`
assembles the PTX and `spirv-val` looks at the SPIR-V: they say whether these are what they are taken for.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cause_reading import DISPATCH, same
from compiler_figures import (
    TOOLS,
    Compiled,
    assembled,
    compiled,
    device_files,
    function_bytes,
    invalid,
    section_bytes,
    tool,
    tool_of,
)
from evidence_page import table
from evidence_work import PAIR, Section, Work, alone, home_of, plain, require

from bot.core.codec.snapshot_json import from_json
from bot.core.values.snapshot import Cell

TRIES = 6
SHOWN = 40
EXECUTABLES = "executables/"


@dataclass(frozen=True)
class Compared:
    """One figure, by the bot and by another.

    Attributes:
        who: the tool.
        what: metric or kind of figure.
        bot, other: the values as text; equal or not.
    """

    who: str
    what: str
    where: str
    bot: str
    other: str

    @property
    def equal(self) -> bool:
        """Whether both say the same."""
        return self.bot == self.other


@dataclass(frozen=True)
class Unread:
    """A cell, or a part of it, that was not compared."""

    where: str
    why: str


Found = Compared | Unread


def of_figures(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """The metrics that have a second source."""
    for metric, value in seen.figures.items():
        known = cell.value(metric)
        said = "n/a" if known is None else f"{known:,}"
        yield Compared(tool_of(metric), f"`{metric}`", str(cell.key), said, f"{value:,}")


def of_elf(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Code of CPU libraries and AMD code objects: the whole of it, and that of each dispatch function."""
    linked = device_files(seen.folder, ".so", ".hsaco")
    if not linked:
        return
    text = sum(section_bytes(path, ".text") for path in linked)
    told = cell.parts.get(f"{EXECUTABLES}text", 0)
    yield Compared("readelf", "`.text` of all executables", str(cell.key), f"{told:,}", f"{text:,}")
    sizes = functions(device_files(seen.folder, ".o", ".hsaco"))
    for one in cell.dispatches:
        size, other = one.code_bytes, sizes.get(same(one.name))
        said = ["n/a" if value is None else f"{value:,}" for value in (size, other)]
        yield Compared("readelf", "code of a dispatch function", f"{cell.key}, {one.name}", said[0], said[1])


def functions(paths: Iterable[Path]) -> dict[str, int]:
    """Dispatch function → its size by `readelf`."""
    found = {name: size for path in paths for name, size in function_bytes(path).items()}
    return {same(name): size for name, size in found.items() if DISPATCH.search(name)}


def of_ptx(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Each PTX module assembled, and the entry points that `ptxas` saw in all of them."""
    entries: list[str] = []
    modules = device_files(seen.folder, ".ptx")
    for path in modules:
        names, complaint = assembled(path)
        entries += names
        yield Compared("ptxas", "modules that are assembled", f"{cell.key}, {path.name}", "", complaint[:300])
    if modules:
        told, other = sorted(one.name for one in cell.dispatches), sorted(entries)
        yield Compared("ptxas", "names of all entry points", str(cell.key), " ".join(told), " ".join(other))


def of_spirv(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Each SPIR-V module looked at."""
    for path in device_files(seen.folder, ".spv"):
        yield Compared("spirv-val", "modules without complaint", f"{cell.key}, {path.name}", "", invalid(path))


def missing_tools() -> dict[str, str]:
    """Tool → why nothing is held against it; empty where all are here."""
    found = {}
    for name in TOOLS:
        try:
            tool(name)
        except FileNotFoundError as error:
            found[name] = str(error)
    return found


def of_cell(cell: Cell, binary: Path, home: Path, missing: Iterable[str]) -> list[Found]:
    """All comparisons of a cell; where the compiler gives one of several artifacts, it is asked anew."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="against-") as name:
            seen = compiled(cell.command, binary, home, Path(name))
            if seen.digest == cell.artifact_digest:
                return list(all_of(cell, seen, set(missing)))
    return [Unread(str(cell.key), f"{TRIES} runs of its command did not give the measured artifact")]


def all_of(cell: Cell, seen: Compiled, missing: set[str]) -> Iterator[Found]:
    """What each tool that is here says of a cell."""
    yield from of_figures(cell, seen)
    for name, compare in (("readelf", of_elf), ("ptxas", of_ptx), ("spirv-val", of_spirv)):
        try:
            yield from compare(cell, seen) if name not in missing else ()
        except subprocess.CalledProcessError as error:
            yield Unread(str(cell.key), f"{name} ended with exit code {error.returncode}")


def lines(found: Sequence[Found], missing: dict[str, str]) -> Iterator[str]:
    """Counts by tool and figure, and each figure that is not the same."""
    figures = [one for one in found if isinstance(one, Compared)]
    counts = Counter((one.who, one.what, one.equal) for one in figures)
    kinds = list(dict.fromkeys((one.who, one.what) for one in figures))
    rows = [[*kind, f"{counts[(*kind, True)]:,}", f"{counts[(*kind, False)]:,}"] for kind in sorted(kinds)]
    whole = Counter(one.equal for one in figures)
    yield f"{len(figures):,} figures compared: {whole[True]:,} equal, {whole[False]:,} not."
    yield from ("", *table(["held against", "figure", "equal", "not"], rows, left=2), "")
    yield from (f"- {name} was left out: {why}" for name, why in missing.items())
    yield from (f"- not compared: `{one.where}`, {plain(one.why)}" for one in found if isinstance(one, Unread))
    unequal = Counter((one.who, one.what, one.bot, one.other) for one in figures if not one.equal)
    first = {(one.who, one.what, one.bot, one.other): one.where for one in reversed(figures)}
    for key, count in sorted(unequal.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]:
        who, what, told, other = key
        said = f"the bot has {told[:80]}, {who} has {other[:80]}" if told else f"{who} says: {plain(other[:200])}"
        yield f"- {count} of {plain(what)}, such as `{first[key]}`: {said}"
    if len(unequal) > SHOWN:
        yield f"- and {len(unequal) - SHOWN} more"


def compiler(work: Work) -> Section:
    """The section of the page, over all measured cells of one release."""
    out = work.folder("compiler") / "snapshot.json"
    words = ["measure", "--compiler", PAIR[1], "--jobs", str(work.jobs), "--out", str(out)]
    require(work.program(words, out.parent), words)
    cells = [cell for cell in from_json(out.read_text(encoding="utf-8")).cells if cell.measured]
    missing, binary = missing_tools(), work.binary(PAIR[1])

    def asked(cell: Cell) -> list[Found]:
        work.say(f"{cell.key} against the compiler's tools")
        return of_cell(cell, binary, home_of(cell.command, work.config.parent), missing)

    with ThreadPoolExecutor(work.jobs) as pool:
        found = [one for cell in pool.map(asked, cells) for one in cell]
    heading = "## The figures are those of the compiler's own tools"
    about = f"IREE {PAIR[1]}, suite {work.suite}: {len(cells)} measured cells, each command run once more with dumps."
    unsound = [one for one in found if isinstance(one, Unread) or not (one.equal or one.who == "spirv-val")]
    return Section([heading, "", about, *lines(found, missing)], not unsound)


if __name__ == "__main__":
    raise SystemExit(alone(compiler, __doc__))
