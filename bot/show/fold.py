"""A fold audit as blocks, and its two files: sums that say over what they are, builds, families, every reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from bot.core.fold import FAILED, BeforeAfter, FoldAudit, FoldCell, FoldedFamily, LeftFamily, fold_lines
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    NOTE_LIMIT,
    Block,
    Code,
    Fold,
    Footnotes,
    List,
    Listing,
    Phrase,
    Room,
    Row,
    Sentence,
    Table,
    code,
    fair,
    fair_in_order,
    first,
    joined,
    listing,
    name_cell,
    phrase,
    section,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, cells_phrase, short_names, targets_phrase
from bot.show.filters import UNKNOWN, amount, plural, relative, sides, signed
from bot.show.renderers import write_answer

FOLD_LIMIT_BYTES = 256 * 1024
"""A quarter of what GitHub takes as the summary of one step, in UTF-8: the report before it needs room, too."""
_FOLDED = "folded"
_NAMED, _OPERANDS = 6, 6
_COMMAND_LIMIT, _WHY_LIMIT = 2_000, 1_000
_NARROW = 32  # Of a name in a table of ten columns
_ABOUT_CELLS = (
    "Executables and bytes: before → at best → folded. At best, with ≥, all but the largest executable of each family "
    "would be gone: the upper bound of what could be saved, reckoned beforehand from families and device code. It has "
    "no ≥ where folding did better. Change: of the artifact, folded against before. Run time: folded / before, median "
    "of pairs that were run one after the other; in brackets the interval that holds the true median with 95 % "
    "probability."
)
_ABOUT_MODELS = (
    "Executables that are left of a model's dispatch regions, and the percentage of the regions that is folded away. "
    "Not inlined: compiled, with no constant inlined into a dispatch. Shapes erased: kinds of those that differ in "
    "more than static shapes. Constants, both erased: kinds of today's that differ in more than values of constants, "
    "or than either. Kinds are counted, not compiled. Folded: compiled, on the target with the fewest."
)
_REASONS = {
    "nothing-to-fold": "Nothing to fold",
    "unsupported": "Not supported",
    FAILED: "Not measured",
    _FOLDED: "Folded",
}
_KINDS = {"identical": "nothing: identical", "static-shapes": "static shapes"}


@dataclass(frozen=True)
class _Facts:
    """What cells of an audit are named by, as those of a report."""

    audit: FoldAudit

    @cached_property
    def short(self) -> dict[str, str]:
        return short_names({cell.target for cell in self.audit.cells}, {})

    @cached_property
    def measured_targets(self) -> frozenset[str]:
        return frozenset(cell.target for cell in self.audit.cells if cell.artifact_bytes.before is not None)

    @cached_property
    def models(self) -> frozenset[str]:
        return frozenset(cell.model for cell in self.audit.cells if cell.artifact_bytes.before is not None)

    def cells(self, cells: Sequence[FoldCell], limit: int) -> Phrase:
        """Cells in words, with about `limit` names."""
        return cells_phrase(self, [CellKey(cell.model, cell.target) for cell in cells], limit)


def write_folds(audit: FoldAudit, templates: Path | None, out: Path) -> list[Path]:
    """`fold.json`, and `fold.md`, the section of a report (at most `FOLD_LIMIT_BYTES` in UTF-8).

    `templates`: the user's templates, searched before the default ones.
    """
    return write_answer("fold", fold_lines(audit), partial(fold_blocks, audit), FOLD_LIMIT_BYTES, templates, out)


def fold_blocks(audit: FoldAudit, room: Room) -> tuple[Block, ...]:
    """The whole answer; a terminal has neither what would be left at best nor how to do it again."""
    facts, footnotes = _Facts(audit), Footnotes(room.lines)
    headline, *sentences = _sentences(facts)
    tables = _cell_tables(facts, footnotes, room)
    about = () if room.place == "terminal" else (Sentence(phrase(_ABOUT_CELLS)),)
    rest = List(Listing((), tables.more, tables.noun))
    cells = (*about, *tables, rest, List(footnotes.listed(), small=True))
    resumed = phrase(
        strong("Resuming alone"),
        ", with nothing folded, changes the artifact; this part of the change is not folding's",
    )
    left = List(_left_lines(facts, room.lines, room.names // 2))
    return (
        Sentence(headline),
        List(first(sentences, len(sentences), "sentence"), name="said"),
        section("How far each step takes each model", _model_table(audit, room.rows), name="models"),
        section("What folding saves, and what it costs", *(cells if tables else ()), name="cells"),
        section("Builds without a row", List(_other_cells(facts, room)), name="others"),
        section(resumed, List(_resumed(facts, room)), name="resumed"),
        Fold("Families that were folded", (_folded_table(facts, room.rows // 2),), name="folded"),
        Fold("Families that were left, and why", (left,), is_open=room.place == "terminal", name="left"),
        Fold("How to reproduce", tuple(_reproduction(audit)), name="reproduce"),
    )


# Sums, in words.


def _sentences(facts: _Facts) -> Iterator[Phrase]:
    """What a reader should know who reads no table; the first is the headline."""
    audit = facts.audit
    folded = [cell for cell in audit.cells if cell.state == _FOLDED]
    differing = [cell for cell in folded if cell.equal is False]
    summed = [cell for cell in folded if cell.equal is not False]
    yield _headline(summed, len(audit.cells), bool(differing))
    if equal := [cell for cell in summed if cell.equal is True]:
        rest = f" {len(summed) - len(equal):,} not known." if len(equal) < len(summed) else ""
        sizes = _known(cell.artifact_bytes for cell in equal)
        yield phrase(strong(f"Outputs equal in {plural(len(equal), 'build')}"), f": {_sum(sizes, 'bytes')}.{rest}")
    elif summed:
        yield phrase("Nothing is known of outputs and price: no outputs were compared that say anything.")
    if differing:
        count = f"⚠️ outputs differ in {plural(len(differing), 'more build' if summed else 'build')}"
        yield phrase(strong(count), ", in none of these sums: ", facts.cells(differing, _NAMED), ".")
    models = [(one.regions, one.today, one.folded) for one in audit.models]
    if known := [(a, b, c) for a, b, c in models if a is not None and b is not None and c is not None]:
        regions, today, after = (sum(column) for column in zip(*known, strict=True))
        over = f"Of {plural(regions, 'dispatch region')} of {plural(len(known), 'model')}, {_away(regions, today)}"
        yield phrase(f"{over} are folded away today, and ", strong(_away(regions, after)), " with folding.")
    yield from _rest(audit)
    ran = phrase(" Run on ", code(clip(clean(audit.machine), NOTE_LIMIT)), ".") if audit.machine else ()
    if audit.max_slowdown is None:
        yield phrase("Every fold with gain was kept, whatever its price.", ran)
    else:
        yield phrase(f"Folds that make a model more than {audit.max_slowdown * 100:g} % slower were left out.", ran)
    version, spec, flags = (
        code(clip(clean(text), NOTE_LIMIT))
        for text in (audit.compiler.version, audit.compiler.spec, " ".join(audit.flags))
    )
    of = phrase(" (", spec, ")") if audit.compiler.spec else ()
    yield phrase("IREE ", version, of, phrase(", flags ", flags) if audit.flags else (), ".")


def _headline(summed: Sequence[FoldCell], count: int, is_wrong: bool) -> Phrase:
    if not summed:
        nothing = "no fold kept the outputs as they are" if is_wrong else "nothing was folded"
        return phrase(strong(f"Fold audit: {nothing} in {plural(count, 'build')}"), ".")
    sizes, counts = _known(cell.artifact_bytes for cell in summed), _known(cell.executables for cell in summed)
    artifacts, executables = f"artifacts {_sum(sizes, 'bytes')}", f"executables {_sum(counts, 'count')}"
    if len(sizes) != len(counts):
        over = plural(len(sizes), "build"), plural(len(counts), "build")
        sums = f"{artifacts} over {over[0]}; {executables} over {over[1]}"
    else:
        these = f"these {plural(len(summed), 'build')}" if len(summed) > 1 else "this build"
        known = these if len(sizes) == len(summed) else f"the {len(sizes):,} of them where both are known"
        sums = f"{artifacts} and {executables}, added up over {known}"
    return phrase(strong(f"Fold audit: {len(summed):,} of {plural(count, 'build')} folded"), f": {sums}.")


def _known(pairs: Iterator[BeforeAfter]) -> list[tuple[int, int]]:
    """Those of which both are known."""
    return [(one.before, one.after) for one in pairs if one.before is not None and one.after is not None]


def _sum(pairs: Sequence[tuple[int, int]], unit: str) -> str:
    if not pairs:
        return UNKNOWN
    before, after = (sum(side) for side in zip(*pairs, strict=True))
    return sides(before, after, unit) + (f" ({relative(before, after)})" if before != after else "")


def _away(regions: int | None, executables: int | None) -> str:
    """The share of the dispatch regions that has no executable of its own: `78.2 %`; `n/a` where it is not known."""
    if not regions or executables is None:
        return UNKNOWN
    return f"{(regions - executables) / regions * 100:.1f} %"


def _rest(audit: FoldAudit) -> Iterator[Phrase]:
    words = {
        "nothing-to-fold": ("has nothing to fold", "have nothing to fold"),
        "unsupported": ("is not supported", "are not supported"),
        FAILED: ("was not measured", "were not measured"),
    }
    counts = {state: count for state in words if (count := sum(cell.state == state for cell in audit.cells))}
    if counts:
        (state, count), *others = counts.items()
        parts = [f"{plural(count, 'build')} {words[state][count != 1]}"]
        parts += [f"{count:,} {words[state][count != 1]}" for state, count in others]
        yield phrase(", ".join(parts), ".")


# Tables.


def _model_table(audit: FoldAudit, limit: int) -> Table:
    """Today and then, with the steps between."""
    headers = ("model", "regions", "today", "% away", "not inlined", "shapes erased", "constants erased", "both erased")
    rows = []
    for one in audit.models[:limit]:
        steps = (one.not_inlined, one.shapes_erased, one.constants_erased, one.both_erased, one.folded)
        today, then = (phrase(strong(_away(one.regions, at).removesuffix(" %"))) for at in (one.today, one.folded))
        counts = [phrase(amount(at, "count")) for at in (one.regions, one.today, *steps)]
        rows.append((name_cell(clip(one.model, _NARROW)), *counts[:2], today, *counts[2:], then))
    shown = listing(rows, len(audit.models), "model")
    return Table((*headers, "folded", "% away"), shown, small=True, about=_ABOUT_MODELS)


def _has_row(cell: FoldCell) -> bool:
    """True for a cell that was folded, or could be in somebody's eyes."""
    return cell.state == _FOLDED or (bool(cell.left) and cell.artifact_bytes.before is not None)


def _cell_tables(facts: _Facts, footnotes: Footnotes, room: Room) -> Listing[Table]:
    """A table for each model, which take turns: outputs that differ first, what was run next, then what shrank most."""
    ordered = sorted(
        filter(_has_row, facts.audit.cells),
        key=lambda cell: (cell.equal is not False, cell.equal is None, cell.artifact_bytes.change or 0),
    )
    totals, rows = Counter(cell.model for cell in ordered), dict[str, list[Row]]()
    for cell in sorted(fair(ordered, lambda cell: cell.model, room.rows), key=lambda cell: (cell.model, cell.target)):
        rows.setdefault(cell.model, []).append(_row(facts, cell, footnotes, room.place != "terminal"))
    headers = ("target", "executables", "artifact, B", "change", "outputs", "run time")
    tables = []
    for model, mine in rows.items():
        caption, cells = name_cell(clip(model, NAME_LIMIT)), listing(mine, totals[model], "build")
        tables.append(Table(headers, cells, caption=caption, small=True, wanted=(2, 4, 3, 1, 5)))
    return listing(tables, len(totals), "model")


def _row(facts: _Facts, cell: FoldCell, footnotes: Footnotes, has_bound: bool) -> Row:
    surplus = (cell.bound.executables, cell.bound.size_bytes) if cell.bound else (None, None)
    sizes = cell.artifact_bytes
    ways = (_way(cell.executables, surplus[0], has_bound), _way(sizes, surplus[1], has_bound))
    change = UNKNOWN if sizes.change is None else relative(sizes.before, sizes.after) if sizes.change else "±0"
    words = {None: "not known", True: "equal", False: "⚠️ differ"}[cell.equal] + footnotes.mark(cell.equal_note)
    price = f"{cell.price.ratio:.2f} [{cell.price.low:.2f}, {cell.price.high:.2f}]" if cell.price else UNKNOWN
    price += footnotes.mark(cell.price_note if cell.price else cell.price_note or cell.equal_note)
    outputs = phrase(strong(words) if cell.equal is False else words)
    return (name_cell(facts.short[cell.target]), *map(phrase, (*ways, change)), outputs, phrase(price))


def _way(both: BeforeAfter, surplus: int | None, has_bound: bool) -> str:
    """`156 → ≥113 → 117`; in the middle what is left without the surplus, without ≥ where less is left in fact."""
    least = None if both.before is None or surplus is None else both.before - surplus
    mark = "≥" if both.after is None or least is None or least <= both.after else ""
    bound = [UNKNOWN if least is None or least < 0 else f"{mark}{least:,}"] if has_bound else []
    return " → ".join([amount(both.before, "count"), *bound, amount(both.after, "count")])


def _folded_table(facts: _Facts, limit: int) -> Table:
    """Each family once, with the targets where it was folded; without all of them models take turns."""
    where: dict[tuple[str, FoldedFamily], list[str]] = {}
    for cell in facts.audit.cells:
        for family in cell.folded:
            where.setdefault((cell.model, family), []).append(cell.target)
    ordered = sorted(where, key=lambda same: (same[0], -len(same[1].members), same[1].members, same[1].kind))
    rows = []
    for model, family in fair_in_order(ordered, lambda same: same[0], limit):
        types = Counter(family.operands).items()
        operands = [phrase(f"{n:,} × " if n > 1 else "", code(clip(name, NAME_LIMIT))) for name, n in types]
        more = [phrase("…")] if len(operands) > _OPERANDS else []
        targets = tuple(dict.fromkeys(where[model, family]))
        missing = tuple(sorted(facts.measured_targets - set(targets)))
        is_shorter = 0 < len(missing) < len(targets)
        rows.append(
            (
                name_cell(clip(model, _NARROW)),
                phrase(_KINDS.get(family.kind, family.kind)),
                phrase(f"{len(family.members):,}"),
                name_cell(clip(next(iter(family.members), ""), NAME_LIMIT)),
                joined([*operands[:_OPERANDS], *more], ", ") or phrase("none"),
                phrase(
                    "every target but " if is_shorter else "", targets_phrase(facts, missing if is_shorter else targets)
                ),
            )
        )
    headers = ("model", "what differed", "executables made one", "the one that is left", "operands", "targets")
    return Table(headers, listing(rows, len(ordered), "family"), numbers_from=9, small=True)


# Lines.


def _other_cells(facts: _Facts, room: Room) -> Listing[Phrase]:
    """The cells without a row, by state and reason, those with most cells first."""
    groups: dict[tuple[str, str], list[FoldCell]] = {}
    for cell in facts.audit.cells:
        if not _has_row(cell):
            groups.setdefault((cell.state, clip(clean(cell.note), NOTE_LIMIT)), []).append(cell)
    ordered = sorted(groups.items(), key=lambda group: (list(_REASONS).index(group[0][0]), -len(group[1]), group[0]))
    lines = []
    for (state, note), cells in ordered[: room.lines]:
        target = cells[0].target
        whole = [cell for cell in facts.audit.cells if cell.target == target] == cells and len(cells) > 1
        if whole and target not in facts.measured_targets:
            where = phrase("every model on ", name_cell(facts.short[target]))
        else:
            where = facts.cells(cells, room.names)
        count = f" ({plural(len(cells), 'build')}): "
        lines.append(phrase(strong(_REASONS[state]), count, where, f": {note}" if note else ""))
    return listing(lines, len(ordered), "reason")


def _resumed(facts: _Facts, room: Room) -> Listing[Phrase]:
    """Where the program that was written and resumed gives another artifact although nothing was folded."""
    groups: dict[int, list[FoldCell]] = {}
    for cell in facts.audit.cells:
        if change := BeforeAfter(cell.artifact_bytes.before, cell.resumed_bytes).change:
            groups.setdefault(change, []).append(cell)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    lines = [phrase(f"{signed(change)}: ", facts.cells(cells, room.names)) for change, cells in ordered[: room.lines]]
    return listing(lines, len(ordered), "such change")


def _left_lines(facts: _Facts, limit: int, names: int) -> Listing[Phrase]:
    """What is alike and was not folded: a line for each reason, most executables first.

    A family of a model counts once, however many targets it is left on.
    """
    groups: dict[tuple[str, str], list[tuple[FoldCell, LeftFamily]]] = {}
    for cell in facts.audit.cells:
        for family in cell.left:
            groups.setdefault((clip(clean(family.why), NOTE_LIMIT), family.kind), []).append((cell, family))
    lines = []
    for (why, kind), group in groups.items():
        families = {(cell.model, family.members) for cell, family in group}
        executables = len({(model, member) for model, members in families for member in members})
        cells = list({(cell.model, cell.target): cell for cell, _ in group}.values())
        counts = f"{plural(executables, 'executable')} in {plural(len(families), 'family')}"
        line = phrase(strong(counts), f" ({clip(clean(kind), NAME_LIMIT)}): {why}: ", facts.cells(cells, names))
        lines.append((-executables, why, kind, line))
    return first([line for *_, line in sorted(lines, key=lambda one: one[:3])], limit, "reason")


def _reproduction(audit: FoldAudit) -> Iterator[Block]:
    """Of the cell that shrank most, where the outputs are equal; or are not known, if there is none."""
    cells = [cell for cell in audit.cells if cell.command and cell.module and cell.equal is not False]
    if not cells:
        return
    best = min(cells, key=lambda cell: (cell.equal is None, cell.artifact_bytes.change or 0))
    model, target, module = (code(clip(name, NAME_LIMIT)) for name in (best.model, best.target, best.module))
    where = (", in the directory of ", code("fold.json"), ":")
    yield Sentence(phrase("The folded artifact of ", model, " on ", target, " is made of ", module, *where))
    yield Code(best.command if len(best.command) <= _COMMAND_LIMIT else "")
    yield Sentence(phrase("The commands of all builds are in fold.json."))
