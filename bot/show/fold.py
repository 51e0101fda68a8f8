"""A fold audit as blocks, and its two files: sums that say over what they are, builds, families, every reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path

from bot.core.fold import (
    FAILED,
    BeforeAfter,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    LeftFamily,
    fold_lines,
)
from bot.core.snapshot import CellKey
from bot.show.blocks import (
    NOTE_LIMIT,
    Block,
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
    first,
    listing,
    more_of,
    name_cell,
    phrase,
    section,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, cells_phrase, short_names
from bot.show.filters import UNKNOWN, amount, plural, relative, sides, signed
from bot.show.renderers import write_answer

FOLD_LIMIT_BYTES = 256 * 1024
"""A quarter of what GitHub takes as the summary of one step, in UTF-8: the report before it needs room, too."""
_FOLDED = "folded"
_NAMED = 6
_ABOUT_CELLS = (
    "Executables and bytes: before → folded. Change: of the artifact. Run time: folded"
    " / before, the median of pairs that ran one after the other. Brackets: the"
    " interval that contains the true median with 95 % probability."
)
_ABOUT_MODELS = (
    "Executables that remain of a model's dispatch regions, and the percentage of the"
    " regions that is folded away. Folded: the target with the fewest executables."
)
_REASONS = {"nothing-to-fold": "Nothing to fold", FAILED: "Not measured"}


@dataclass(frozen=True)
class _AuditNames:
    """What cells of an audit are named by, as those of a report."""

    audit: FoldAudit

    @cached_property
    def short(self) -> dict[str, str]:
        return short_names({cell.target for cell in self.audit.cells}, {})

    @cached_property
    def measured_targets(self) -> frozenset[str]:
        return frozenset(
            cell.target
            for cell in self.audit.cells
            if cell.artifact_bytes.before is not None
        )

    @cached_property
    def models(self) -> frozenset[str]:
        return frozenset(
            cell.model
            for cell in self.audit.cells
            if cell.artifact_bytes.before is not None
        )

    def cells(self, cells: Sequence[FoldCell], limit: int) -> Phrase:
        """Cells in words, with about `limit` names."""
        return cells_phrase(
            self, [CellKey(cell.model, cell.target) for cell in cells], limit
        )


def write_folds(audit: FoldAudit, templates: Path | None, out: Path) -> list[Path]:
    """Write `fold.json`, `fold.md` (at most `FOLD_LIMIT_BYTES` in UTF-8) and the page `fold.html`.

    `templates`: the user's templates, searched before the default ones.
    """
    return write_answer(
        "fold",
        json=fold_lines(audit),
        blocks=partial(fold_blocks, audit),
        limit_bytes=FOLD_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
    )


def fold_blocks(audit: FoldAudit, room: Room) -> tuple[Block, ...]:
    """The blocks of the whole answer."""
    facts, footnotes = _AuditNames(audit), Footnotes(room.lines)
    headline, *sentences = _sentences(facts)
    is_folded = any(
        cell.state == _FOLDED for cell in audit.cells
    )  # else no table has a figure that is another one
    models = [_model_table(audit, room.rows)] if is_folded else []
    tables = (
        _cell_tables(facts, footnotes, room) if is_folded else listing((), 0, "model")
    )
    others = "Builds without a row" if is_folded else "Why nothing was folded"
    cells = (
        Sentence(phrase(_ABOUT_CELLS)),
        *tables,
        more_of(tables),
        List(footnotes.listed(), small=True),
    )
    merged, left = (
        List(_family_lines(facts, of, room))
        for of in (attrgetter("folded"), attrgetter("left"))
    )
    return (
        Sentence(headline),
        List(first(sentences, len(sentences), "sentence"), name="said"),
        section("Executables of each model after folding", *models, name="models"),
        section(
            "What folding saves, and what it costs",
            *(cells if tables else ()),
            name="cells",
        ),
        section(others, List(_other_cells(facts, room)), name="others"),
        Fold("Families that were folded", (merged,), name="folded"),
        Fold(
            "Families that were not folded, and why",
            (left,),
            is_open=room.place == "terminal",
            name="left",
        ),
    )


# Sums, in words.


def _sentences(facts: _AuditNames) -> Iterator[Phrase]:
    """What a reader should know who reads no table; the first is the headline."""
    audit = facts.audit
    folded = [cell for cell in audit.cells if cell.state == _FOLDED]
    differing = [cell for cell in folded if cell.equal is False]
    summed = [cell for cell in folded if cell.equal is not False]
    yield _headline(summed, len(audit.cells), bool(differing))
    if equal := [cell for cell in summed if cell.equal is True]:
        rest = (
            f" {len(summed) - len(equal):,} not known."
            if len(equal) < len(summed)
            else ""
        )
        sizes = _known(cell.artifact_bytes for cell in equal)
        yield phrase(
            strong(f"Outputs equal in {plural(len(equal), 'build')}"),
            f": {_sum(sizes, 'bytes')}.{rest}",
        )
    elif summed:
        yield phrase(
            "Outputs and run time are unknown: no compared output proves anything."
        )
    if differing:
        count = (
            "⚠️ outputs differ in"
            f" {plural(len(differing), 'more build' if summed else 'build')}"
        )
        yield phrase(
            strong(count), ", not counted here: ", facts.cells(differing, _NAMED), "."
        )
    models = [(model.regions, model.today, model.folded) for model in audit.models]
    if known := [
        (a, b, c)
        for a, b, c in models
        if a is not None and b is not None and c is not None
    ]:
        regions, today, after = (sum(column) for column in zip(*known, strict=True))
        over = (
            f"Of {plural(regions, 'dispatch region')} of {plural(len(known), 'model')},"
            f" {_away(regions, today)}"
        )
        more = (
            phrase(", and ", strong(_away(regions, after)), " with folding")
            if folded
            else ""
        )
        yield phrase(f"{over} are folded away today", more, ".")
    ran = (
        phrase(" Run on ", code(clip(clean(audit.machine), NOTE_LIMIT)), ".")
        if audit.machine
        else ()
    )
    kept = "Every fold that saves bytes was kept, even if it is slower."
    if audit.max_slowdown is not None:
        kept = (
            f"Folds that make a model more than {audit.max_slowdown * 100:g} % slower"
            " were left out."
        )
    if folded:
        yield phrase(kept, ran)
    version, spec, flags = (
        code(clip(clean(text), NOTE_LIMIT))
        for text in (audit.compiler.version, audit.compiler.spec, " ".join(audit.flags))
    )
    of = phrase(" (", spec, ")") if audit.compiler.spec else ()
    made = phrase(
        "IREE ", version, of, phrase(", flags ", flags) if audit.flags else (), "."
    )
    yield phrase(
        made, " The command of each folded build is in fold.json." if folded else ""
    )


def _headline(summed: Sequence[FoldCell], count: int, is_wrong: bool) -> Phrase:
    if not summed:
        nothing = "every fold changed the outputs" if is_wrong else "nothing was folded"
        return phrase(strong(f"Fold audit: {nothing} in {plural(count, 'build')}"), ".")
    sizes, counts = (
        _known(cell.artifact_bytes for cell in summed),
        _known(cell.executables for cell in summed),
    )
    over = [
        f" over {plural(len(of), 'build')}" if len(of) < len(summed) else ""
        for of in (sizes, counts)
    ]
    sums = (
        f"artifacts {_sum(sizes, 'bytes')}{over[0]}, executables"
        f" {_sum(counts, 'count')}{over[1]}"
    )
    return phrase(
        strong(f"Fold audit: {len(summed):,} of {plural(count, 'build')} folded"),
        f": {sums}.",
    )


def _known(pairs: Iterator[BeforeAfter]) -> list[tuple[int, int]]:
    """The pairs of before and after of which both are known."""
    return [
        (pair.before, pair.after)
        for pair in pairs
        if pair.before is not None and pair.after is not None
    ]


def _sum(pairs: Sequence[tuple[int, int]], unit: str) -> str:
    if not pairs:
        return UNKNOWN
    before, after = (sum(side) for side in zip(*pairs, strict=True))
    return sides(before, after, unit) + (
        f" ({relative(before, after)})" if before != after else ""
    )


def _away(regions: int | None, executables: int | None) -> str:
    """The share of the dispatch regions that has no executable of its own: `78.2 %`.

    `n/a` where it is not known.
    """
    if not regions or executables is None:
        return UNKNOWN
    percent = (regions - executables) / regions * 100
    if executables > 0:
        percent = min(percent, 99.9)  # less than all is never `100.0 %`
    return f"{percent:.1f} %"


# Tables.


def _model_table(audit: FoldAudit, limit: int) -> Table:
    """The table of what is folded away of each model's regions, as it is and with the audit's folds."""
    rows = []
    for model in audit.models[:limit]:
        today, then = (
            phrase(strong(_away(model.regions, at).removesuffix(" %")))
            for at in (model.today, model.folded)
        )
        regions, executables, folded = (
            phrase(amount(at, "count"))
            for at in (model.regions, model.today, model.folded)
        )
        rows.append(
            (
                name_cell(clip(model.model, NAME_LIMIT)),
                regions,
                executables,
                today,
                folded,
                then,
            )
        )
    headers = ("model", "regions", "today", "% away", "folded", "% away")
    return Table(
        headers,
        listing(rows, len(audit.models), "model"),
        small=True,
        about=_ABOUT_MODELS,
    )


def _has_row(cell: FoldCell) -> bool:
    """True for a cell that was folded, or could be in somebody's eyes."""
    return cell.state == _FOLDED or (
        bool(cell.left) and cell.artifact_bytes.before is not None
    )


def _cell_tables(
    facts: _AuditNames, footnotes: Footnotes, room: Room
) -> Listing[Table]:
    """A table for each model, which take turns: outputs that differ first, what was run next, then what shrank most."""
    ordered = sorted(
        filter(_has_row, facts.audit.cells),
        key=lambda cell: (
            cell.equal is not False,
            cell.equal is None,
            cell.artifact_bytes.change or 0,
        ),
    )
    totals, rows = Counter(cell.model for cell in ordered), dict[str, list[Row]]()
    for cell in sorted(
        fair(ordered, lambda cell: cell.model, room.rows),
        key=lambda cell: (cell.model, cell.target),
    ):
        rows.setdefault(cell.model, []).append(_row(facts, cell, footnotes))
    headers = ("target", "executables", "artifact, B", "change", "outputs", "run time")
    tables = []
    for model, mine in rows.items():
        caption, cells = (
            name_cell(clip(model, NAME_LIMIT)),
            listing(mine, totals[model], "build"),
        )
        tables.append(
            Table(headers, cells, caption=caption, small=True, wanted=(3, 4, 2, 1, 5))
        )
    return listing(tables, len(totals), "model")


def _row(facts: _AuditNames, cell: FoldCell, footnotes: Footnotes) -> Row:
    sizes, counts = cell.artifact_bytes, cell.executables
    change = (
        UNKNOWN
        if sizes.change is None
        else relative(sizes.before, sizes.after)
        if sizes.change
        else "±0"
    )
    resumed = BeforeAfter(sizes.before, cell.resumed_bytes).change
    if resumed and cell.state == _FOLDED:
        change += footnotes.mark(
            f"{signed(resumed)} of this change comes from resuming the compile, not"
            " from folding"
        )
    words = {None: "not known", True: "equal", False: "⚠️ differ"}[
        cell.equal
    ] + footnotes.mark(cell.equal_note)
    price = (
        f"{cell.price.ratio:.2f} [{cell.price.low:.2f}, {cell.price.high:.2f}]"
        if cell.price
        else UNKNOWN
    )
    price += footnotes.mark(
        cell.price_note if cell.price else cell.price_note or cell.equal_note
    )
    return (
        name_cell(facts.short[cell.target]),
        phrase(sides(counts.before, counts.after, "count")),
        phrase(sides(sizes.before, sizes.after, "count")),
        phrase(change),
        phrase(strong(words) if cell.equal is False else words),
        phrase(price),
    )


# Lines.


def _other_cells(facts: _AuditNames, room: Room) -> Listing[Phrase]:
    """Return the builds without a row, by state and reason, the largest group first.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    groups: dict[tuple[str, str], list[FoldCell]] = {}
    for cell in facts.audit.cells:
        if not _has_row(cell) and cell.state in _REASONS:
            groups.setdefault(
                (cell.state, clip(clean(cell.note), NOTE_LIMIT)), []
            ).append(cell)
    ordered = sorted(
        groups.items(),
        key=lambda group: (list(_REASONS).index(group[0][0]), -len(group[1]), group[0]),
    )
    lines = []
    for (state, note), cells in ordered[: room.lines]:
        count, where = (
            f" ({plural(len(cells), 'build')}): ",
            facts.cells(cells, room.names),
        )
        lines.append(
            phrase(strong(_REASONS[state]), count, where, f": {note}" if note else "")
        )
    return listing(lines, len(ordered), "reason")


def _family_lines(
    facts: _AuditNames,
    families: Callable[[FoldCell], Sequence[FoldedFamily | LeftFamily]],
    room: Room,
) -> Listing[Phrase]:
    """What is alike, of these families of each cell: a line for each kind and reason, most executables first.

    A family of a model counts once, however many targets it is told of.
    """
    groups: dict[tuple[str, str], list[tuple[FoldCell, tuple[str, ...]]]] = {}
    for cell in facts.audit.cells:
        for family in families(cell):
            why = (
                f": {clip(clean(family.why), NOTE_LIMIT)}"
                if isinstance(family, LeftFamily)
                else ""
            )
            groups.setdefault((why, family.kind), []).append((cell, family.members))
    lines = []
    for (why, kind), group in groups.items():
        each = {(cell.model, members) for cell, members in group}
        executables = len(
            {(model, member) for model, members in each for member in members}
        )
        cells = list({(cell.model, cell.target): cell for cell, _ in group}.values())
        counts = f"{plural(executables, 'executable')} in {plural(len(each), 'family')}"
        where = facts.cells(cells, room.names // 2)
        line = phrase(
            strong(counts), f" ({clip(clean(kind), NAME_LIMIT)}){why}: ", where
        )
        lines.append((-executables, why, kind, line))
    return first(
        [line for *_, line in sorted(lines, key=lambda one: one[:3])],
        room.lines,
        "such line",
    )
