"""The figures of a snapshot against the compiler's own tools, over all cells: `python -m against_compiler`.

The printed command of each cell is run once more with dumps. `iree-dump-module` has the
artifact's parts, the compiler's statistics the counts of the schedule, `readelf`
sections and functions of CPU and AMD code, `llvm-readelf` the registers of AMD kernels.
`ptxas` assembles the PTX, and says what its machine code takes, which `readelf`
measures. `spirv-val` looks at the SPIR-V, whether it is what it is taken for.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cause_reading import DISPATCH, same
from compiler_figures import (
    NOTES,
    TOOLS,
    Compiled,
    assembled,
    compiled,
    device_files,
    function_bytes,
    invalid,
    kernels,
    machine_code,
    section_bytes,
    tool,
    tool_of,
)
from evidence_page import table
from evidence_work import PAIR, Section, Work, alone, home_of, plain, require

from bot.core.snapshot import Cell
from bot.core.snapshot_json import from_json

TRIES = 6
SHOWN = 40
EXECUTABLES = "executables/"


@dataclass(frozen=True)
class Compared:
    """One figure, as the bot reads it and as another tool reads it."""

    who: str  # the tool
    what: str  # metric or kind of figure
    where: str
    # bot, other: the values as text; equal or not
    bot: str
    other: str

    @property
    def equal(self) -> bool:
        """Return whether both say the same."""
        return self.bot == self.other


@dataclass(frozen=True)
class Unread:
    """A cell, or a part of a cell, that was not compared."""

    where: str
    why: str


Found = Compared | Unread


def of_figures(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Compare the metrics that have a second source."""
    for metric, value in seen.figures.items():
        yield of_metric(tool_of(metric), cell, metric, value)


def of_metric(who: str, cell: Cell, metric: str, value: int | None) -> Compared:
    """Compare a metric of the cell."""
    return Compared(
        who=who,
        what=f"`{metric}`",
        where=str(cell.key),
        bot=written(cell.value(metric)),
        other=written(value),
    )


def written(*values: int | None) -> str:
    """Return numbers as text."""
    return " ".join("n/a" if value is None else f"{value:,}" for value in values)


def of_elf(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Compare the code of CPU libraries and AMD code objects.

    It compares the whole code, and that of each dispatch function.
    """
    linked = device_files(seen.folder, ".so", ".hsaco")
    if not linked:
        return
    text = sum(section_bytes(path, ".text") for path in linked)
    text_bytes = cell.parts.get(f"{EXECUTABLES}text", 0)
    yield Compared(
        who="readelf",
        what="`.text` of all executables",
        where=str(cell.key),
        bot=f"{text_bytes:,}",
        other=f"{text:,}",
    )
    sizes = functions(device_files(seen.folder, ".o", ".hsaco"))
    for dispatch in cell.dispatches:
        size = dispatch.code_bytes
        tool_size = sizes.get(same(dispatch.name))
        where = f"{cell.key}, {dispatch.name}"
        yield Compared(
            who="readelf",
            what="code of a dispatch function",
            where=where,
            bot=written(size),
            other=written(tool_size),
        )


def functions(paths: Iterable[Path]) -> dict[str, int]:
    """Return dispatch function → its size by `readelf`."""
    sizes = {
        name: size for path in paths for name, size in function_bytes(path).items()
    }
    return {same(name): size for name, size in sizes.items() if DISPATCH.search(name)}


def of_notes(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Compare registers and spills of AMD kernels.

    It compares those of the cell, and those of each dispatch function.
    """
    objects = device_files(seen.folder, ".hsaco")
    if not objects:
        return
    kernels_by_name = {
        same(name): kernel for path in objects for name, kernel in kernels(path).items()
    }
    for metric, (key, take) in NOTES.items():
        values = [kernel[key] for kernel in kernels_by_name.values() if key in kernel]
        yield of_metric(
            "llvm-readelf",
            cell,
            metric,
            take(values) if values and len(values) == len(kernels_by_name) else None,
        )
    for dispatch in cell.dispatches:
        bot_values = (
            dispatch.vgprs,
            dispatch.sgprs,
            dispatch.agprs,
            dispatch.vgpr_spills,
            dispatch.sgpr_spills,
        )
        tool_values = [
            kernels_by_name.get(same(dispatch.name), {}).get(key)
            for key, _ in NOTES.values()
        ]
        where = f"{cell.key}, {dispatch.name}"
        yield Compared(
            who="llvm-readelf",
            what="registers and spills of a kernel",
            where=where,
            bot=written(*bot_values),
            other=written(*tool_values),
        )


def of_ptx(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Assemble each PTX module, and compare what `ptxas` says of its functions."""
    modules = {path: assembled(path) for path in device_files(seen.folder, ".ptx")}
    for path, module in modules.items():
        yield Compared(
            who="ptxas",
            what="assembled modules",
            where=f"{cell.key}, {path.name}",
            bot="",
            other=module.complaint[:300],
        )
    if not modules or any(module.complaint for module in modules.values()):
        return
    counts = [
        (same(name), count)
        for module in modules.values()
        for name, count in module.registers.items()
    ]
    names = sorted(name for name, _ in counts)
    registers = dict(counts)
    dispatch_names = " ".join(
        sorted(same(dispatch.name) for dispatch in cell.dispatches)
    )
    yield Compared(
        who="ptxas",
        what="names of all entry points",
        where=str(cell.key),
        bot=dispatch_names,
        other=" ".join(names),
    )
    yield of_metric(
        "ptxas", cell, "registers_max", max(registers.values(), default=None)
    )
    yield of_metric(
        "ptxas",
        cell,
        "spill_bytes",
        sum(module.spill_bytes for module in modules.values()),
    )
    for dispatch in cell.dispatches:
        where = f"{cell.key}, {dispatch.name}"
        tool_registers = registers.get(same(dispatch.name))
        yield Compared(
            who="ptxas",
            what="registers of an entry point",
            where=where,
            bot=written(dispatch.registers),
            other=written(tool_registers),
        )


def of_sass(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Compare the machine code that `ptxas` made.

    It compares the whole code, and that of each dispatch function.
    """
    modules, cubins = (
        device_files(seen.folder, suffix) for suffix in (".ptx", ".cubin")
    )
    if not cubins or len(cubins) != len(modules):
        return
    who = "readelf, of what ptxas makes"
    code = [item for path in cubins for item in machine_code(path).items()]
    yield of_metric(who, cell, "sass_bytes", sum(size for _, size in code))
    sizes = {same(name): size for name, size in code}
    for dispatch in cell.dispatches:
        where = f"{cell.key}, {dispatch.name}"
        tool_size = sizes.get(same(dispatch.name))
        yield Compared(
            who=who,
            what="machine code of an entry point",
            where=where,
            bot=written(dispatch.sass_bytes),
            other=written(tool_size),
        )


def of_spirv(cell: Cell, seen: Compiled) -> Iterator[Compared]:
    """Validate each SPIR-V module."""
    for path in device_files(seen.folder, ".spv"):
        yield Compared(
            who="spirv-val",
            what="valid modules",
            where=f"{cell.key}, {path.name}",
            bot="",
            other=invalid(path),
        )


def missing_tools() -> dict[str, str]:
    """Return tool → why nothing is compared with it; empty if all tools are here."""
    reasons = {}
    for name in TOOLS:
        try:
            tool(name)
        except FileNotFoundError as error:
            reasons[name] = str(error)
    return reasons


def of_cell(
    cell: Cell, binary: Path, home: Path, missing: Iterable[str]
) -> list[Found]:
    """Return all comparisons of a cell.

    If the compiler gives one of several artifacts, it is asked again.
    """
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="against-") as name:
            compiled_cell = compiled(cell.command, binary, home, Path(name))
            if compiled_cell.digest == cell.artifact_digest:
                return list(all_of(cell, compiled_cell, set(missing)))
    return [
        Unread(
            str(cell.key),
            f"{TRIES} runs of its command did not give the measured artifact",
        )
    ]


def all_of(cell: Cell, seen: Compiled, missing: set[str]) -> Iterator[Found]:
    """Yield the comparisons with each tool that is here."""
    yield from of_figures(cell, seen)
    for compare, tools in COMPARED.items():
        try:
            yield from compare(cell, seen) if missing.isdisjoint(tools) else ()
        except subprocess.CalledProcessError as error:
            yield Unread(
                str(cell.key),
                f"{Path(error.cmd[0]).name} ended with exit code {error.returncode}",
            )


COMPARED: Mapping[Callable[[Cell, Compiled], Iterator[Compared]], tuple[str, ...]] = {
    of_elf: ("readelf",),
    of_notes: ("llvm-readelf",),
    of_ptx: ("ptxas",),
    of_sass: ("ptxas", "readelf"),
    of_spirv: ("spirv-val",),
}
"""What is compared, in this order → the tools that it needs.

`of_sass` reads what `of_ptx` made.
"""


def lines(found: Sequence[Found], missing: dict[str, str]) -> Iterator[str]:
    """Yield counts by tool and figure, and each figure that differs."""
    figures = [figure for figure in found if isinstance(figure, Compared)]
    counts = Counter((figure.who, figure.what, figure.equal) for figure in figures)
    kinds = list(dict.fromkeys((figure.who, figure.what) for figure in figures))
    rows = [
        [*kind, f"{counts[(*kind, True)]:,}", f"{counts[(*kind, False)]:,}"]
        for kind in sorted(kinds)
    ]
    whole = Counter(figure.equal for figure in figures)
    yield (
        f"{len(figures):,} figures compared: {whole[True]:,} equal, {whole[False]:,}"
        " different."
    )
    yield from ("", *table(["tool", "figure", "equal", "different"], rows, left=2), "")
    yield from (f"- {name} was left out: {reason}" for name, reason in missing.items())
    yield from (
        f"- not compared: `{unread.where}`, {plain(unread.why)}"
        for unread in found
        if isinstance(unread, Unread)
    )
    unequal = Counter(
        (figure.who, figure.what, figure.bot, figure.other)
        for figure in figures
        if not figure.equal
    )
    first = {
        (figure.who, figure.what, figure.bot, figure.other): figure.where
        for figure in reversed(figures)
    }
    for key, count in sorted(unequal.items(), key=lambda item: (-item[1], item[0]))[
        :SHOWN
    ]:
        who, figure_name, bot_value, tool_value = key
        difference = (
            f"the bot has {bot_value[:80]}, {who} has {tool_value[:80]}"
            if bot_value
            else f"{who} prints: {plain(tool_value[:200])}"
        )
        yield f"- {count} of {plain(figure_name)}, such as `{first[key]}`: {difference}"
    if len(unequal) > SHOWN:
        yield f"- and {len(unequal) - SHOWN} more"


def compiler(work: Work) -> Section:
    """Return the section of the page, over all measured cells of one release."""
    out = work.folder("compiler") / "snapshot.json"
    arguments = [
        "measure",
        "--compiler",
        PAIR[1],
        "--jobs",
        str(work.jobs),
        "--out",
        str(out),
    ]
    require(work.program(arguments, out.parent), arguments)
    cells = [
        cell
        for cell in from_json(out.read_text(encoding="utf-8")).cells
        if cell.measured
    ]
    missing = missing_tools()
    binary = work.binary(PAIR[1])

    def asked(cell: Cell) -> list[Found]:
        work.say(f"{cell.key} against the compiler's tools")
        return of_cell(cell, binary, home_of(cell.command, work.config.parent), missing)

    with ThreadPoolExecutor(work.jobs) as pool:
        results = [result for cell in pool.map(asked, cells) for result in cell]
    heading = "## The figures beside those of the compiler's own tools"
    about = (
        f"IREE {PAIR[1]}, suite {work.suite}: {len(cells)} measured builds. Each"
        " command ran once more with dumps."
    )
    unsound = [
        result
        for result in results
        if isinstance(result, Unread) or not (result.equal or result.who == "spirv-val")
    ]
    return Section([heading, "", about, *lines(results, missing)], not unsound)


if __name__ == "__main__":
    raise SystemExit(alone(compiler, __doc__))
