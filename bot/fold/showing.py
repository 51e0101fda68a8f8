"""Draw a fold audit: sums with what they cover, builds, families, and every reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path

from bot.core.snapshot import CellKey
from bot.fold.audit import (
    FAILED,
    BeforeAfter,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    LeftFamily,
    fold_lines,
)
from bot.show.blocks import (
    NOTE_LIMIT,
    Block,
    Fold,
    Footnotes,
    List,
    Listing,
    Phrase,
    Rank,
    Row,
    Sentence,
    Span,
    Table,
    bounded,
    code,
    fair,
    listed,
    listing,
    more_of,
    name_cell,
    part,
    phrase,
    section,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, cells_phrase, short_names
from bot.show.filters import UNKNOWN, amount, plural, relative, sides, signed
from bot.show.renderers import write_answer
from bot.show.views import Room

FOLD_LIMIT_BYTES = 256 * 1024
"""A quarter of GitHub's limit for the summary of one step, in UTF-8.

The report before it needs room, too.
"""
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
_OUTPUTS = {None: "not known", True: "equal", False: "⚠️ differ"}
_REASONS = {"nothing-to-fold": "Nothing to fold", FAILED: "Not measured"}


@dataclass(frozen=True)
class _AuditNames:
    """The names of the builds of an audit, as Facts has those of a report."""

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
        """Return builds in words, with about `limit` names."""
        keys = [CellKey(cell.model, cell.target) for cell in cells]
        return cells_phrase(self, keys, limit)


def write_folds(audit: FoldAudit, templates: Path | None, out: Path) -> list[Path]:
    """Write `fold.json`, `fold.md` and the page `fold.html`.

    `fold.md` has at most `FOLD_LIMIT_BYTES` in UTF-8. `templates`: the user's
    templates, searched before the default ones.
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
    """Return the blocks of the whole answer."""
    facts = _AuditNames(audit)
    headline, *sentences = _sentences(facts)
    is_folded = any(cell.state == _FOLDED for cell in audit.cells)
    models: list[Block] = []
    cells: list[Block] = []
    if is_folded:  # otherwise no table has a figure that differs from another one
        models.append(bounded(_model_table(audit), Rank.ANSWER, room.rows))
        cells.append(
            part(partial(_cell_blocks, facts, room.lines), room.rows, Rank.ROW)
        )
    others, folded_lines, left_lines = (
        bounded(List(listed(lines, noun)), Rank.LINE, room.lines)
        for lines, noun in (
            (_other_cells(facts, room.names), "reason"),
            (_family_lines(facts, attrgetter("folded"), room.names), "such line"),
            (_family_lines(facts, attrgetter("left"), room.names), "such line"),
        )
    )
    return (
        Sentence(headline),
        List(listed(sentences, "sentence"), name="said"),
        section("Executables of each model after folding", *models, name="models"),
        section("What folding saves, and what it costs", *cells, name="cells"),
        section(
            "Builds without a row" if is_folded else "Why nothing was folded",
            others,
            name="others",
        ),
        Fold("Families that were folded", (folded_lines,), name="folded"),
        Fold(
            "Families that were not folded, and why",
            (left_lines,),
            is_open=room.place == "terminal",
            name="left",
        ),
    )


def _cell_blocks(facts: _AuditNames, notes: int, count: int) -> tuple[Block, ...]:
    """Return the tables of the builds with their footnotes; empty without a table."""
    footnotes = Footnotes(notes)
    tables = _cell_tables(facts, footnotes, count)
    if not tables:
        return ()
    return (
        Sentence(phrase(_ABOUT_CELLS)),
        *tables,
        more_of(tables),
        List(footnotes.listed(), small=True),
    )


# Sums, in words.


def _sentences(facts: _AuditNames) -> Iterator[Phrase]:
    """Yield what a reader of no table should know; the first is the headline."""
    audit = facts.audit
    folded = [cell for cell in audit.cells if cell.state == _FOLDED]
    differing = [cell for cell in folded if cell.equal is False]
    summed = [cell for cell in folded if cell.equal is not False]
    yield _headline(summed, len(audit.cells), bool(differing))
    if summed:
        yield _outputs_words(summed)
    if differing:
        noun = "more build" if summed else "build"
        yield phrase(
            strong(f"⚠️ outputs differ in {plural(len(differing), noun)}"),
            ", not counted here: ",
            facts.cells(differing, _NAMED),
            ".",
        )
    yield from _regions_words(audit, bool(folded))
    if folded:
        yield _rule_words(audit)
    compiler = _compiler_words(audit)
    if folded:
        compiler = phrase(
            compiler, " The command of each folded build is in fold.json."
        )
    yield compiler


def _outputs_words(cells: Sequence[FoldCell]) -> Phrase:
    """Return how many of the folded builds have equal outputs, and what these save."""
    equal = [cell for cell in cells if cell.equal is True]
    if not equal:
        return phrase(
            "Outputs and run time are unknown: no compared output proves anything."
        )
    unknown = ""
    if len(equal) < len(cells):
        unknown = f" {len(cells) - len(equal):,} not known."
    sizes = _known(cell.artifact_bytes for cell in equal)
    return phrase(
        strong(f"Outputs equal in {plural(len(equal), 'build')}"),
        f": {_sum(sizes, 'bytes')}.{unknown}",
    )


def _regions_words(audit: FoldAudit, is_folded: bool) -> Iterator[Phrase]:
    """Yield the share of regions that is folded away, if any model's is known."""
    counts = [
        (model.regions, model.today, model.folded)
        for model in audit.models
        if model.regions is not None
        and model.today is not None
        and model.folded is not None
    ]
    if not counts:
        return
    regions, today, after = (sum(column) for column in zip(*counts, strict=True))
    scope = f"Of {plural(regions, 'dispatch region')} of {plural(len(counts), 'model')}"
    with_folding: Phrase = ()
    if is_folded:
        with_folding = phrase(", and ", strong(_away(regions, after)), " with folding")
    share = _away(regions, today)
    yield phrase(f"{scope}, {share} are folded away today", with_folding, ".")


def _rule_words(audit: FoldAudit) -> Phrase:
    """Return which folds were kept, and where they ran."""
    rule = "Every fold that saves bytes was kept, even if it is slower."
    if audit.max_slowdown is not None:
        rule = (
            f"Folds that make a model more than {audit.max_slowdown * 100:g} % slower"
            " were left out."
        )
    if not audit.machine:
        return phrase(rule)
    return phrase(rule, " Run on ", _audit_code(audit.machine), ".")


def _compiler_words(audit: FoldAudit) -> Phrase:
    """Return `IREE 3.13.0 (SPEC), flags --x.`."""
    compiler = audit.compiler
    parts: list[str | Span] = ["IREE ", _audit_code(compiler.version)]
    if compiler.spec:
        parts += [" (", _audit_code(compiler.spec), ")"]
    if audit.flags:
        parts += [", flags ", _audit_code(" ".join(audit.flags))]
    return phrase(*parts, ".")


def _audit_code(text: str) -> Span:
    return code(clip(clean(text), NOTE_LIMIT))


def _headline(summed: Sequence[FoldCell], count: int, is_wrong: bool) -> Phrase:
    if not summed:
        result = "nothing was folded"
        if is_wrong:
            result = "every fold changed the outputs"
        return phrase(strong(f"Fold audit: {result} in {plural(count, 'build')}"), ".")
    sizes = _sum_over(summed, [cell.artifact_bytes for cell in summed], "bytes")
    counts = _sum_over(summed, [cell.executables for cell in summed], "count")
    return phrase(
        strong(f"Fold audit: {len(summed):,} of {plural(count, 'build')} folded"),
        f": artifacts {sizes}, executables {counts}.",
    )


def _sum_over(
    cells: Sequence[FoldCell], pairs: Sequence[BeforeAfter], unit: str
) -> str:
    """Return the sums, and how many builds they cover if that is not all of them."""
    known_pairs = _known(iter(pairs))
    scope = ""
    if len(known_pairs) < len(cells):
        scope = f" over {plural(len(known_pairs), 'build')}"
    return f"{_sum(known_pairs, unit)}{scope}"


def _known(pairs: Iterator[BeforeAfter]) -> list[tuple[int, int]]:
    """Return the pairs of which before and after are known."""
    return [
        (pair.before, pair.after)
        for pair in pairs
        if pair.before is not None and pair.after is not None
    ]


def _sum(pairs: Sequence[tuple[int, int]], unit: str) -> str:
    if not pairs:
        return UNKNOWN
    before, after = (sum(side) for side in zip(*pairs, strict=True))
    text = sides(before, after, unit)
    if before != after:
        text += f" ({relative(before, after)})"
    return text


def _away(regions: int | None, executables: int | None) -> str:
    """Return the share of the regions without an executable of their own: `78.2 %`.

    `n/a` if it is not known.
    """
    if not regions or executables is None:
        return UNKNOWN
    percent = (regions - executables) / regions * 100
    if executables > 0:
        percent = min(percent, 99.9)  # less than all is never `100.0 %`
    return f"{percent:.1f} %"


# Tables.


def _model_table(audit: FoldAudit) -> Table:
    """Return the share of each model's regions that is folded away."""
    rows = []
    for model in audit.models:
        rows.append(
            (
                name_cell(clip(model.model, NAME_LIMIT)),
                phrase(amount(model.regions, "count")),
                phrase(amount(model.today, "count")),
                _away_cell(model.regions, model.today),
                phrase(amount(model.folded, "count")),
                _away_cell(model.regions, model.folded),
            )
        )
    headers = ("model", "regions", "today", "% away", "folded", "% away")
    return Table(
        headers,
        listed(rows, "model"),
        small=True,
        about=_ABOUT_MODELS,
    )


def _away_cell(regions: int | None, executables: int | None) -> Phrase:
    return phrase(strong(_away(regions, executables).removesuffix(" %")))


def _has_row(cell: FoldCell) -> bool:
    """Return True for a build that was folded, or that has families left to fold."""
    return cell.state == _FOLDED or (
        bool(cell.left) and cell.artifact_bytes.before is not None
    )


def _cell_tables(
    facts: _AuditNames, footnotes: Footnotes, count: int
) -> Listing[Table]:
    """Return a table for each model; models take turns if there is too little room.

    Builds whose outputs differ come first, then those that ran, then those that
    shrank most.
    """
    ordered = sorted(
        filter(_has_row, facts.audit.cells),
        key=lambda cell: (
            cell.equal is not False,
            cell.equal is None,
            cell.artifact_bytes.change or 0,
        ),
    )
    totals = Counter(cell.model for cell in ordered)
    shown_cells = fair(ordered, lambda cell: cell.model, count)
    rows = dict[str, list[Row]]()
    for cell in sorted(shown_cells, key=lambda cell: (cell.model, cell.target)):
        rows.setdefault(cell.model, []).append(_row(facts, cell, footnotes))
    headers = ("target", "executables", "artifact, B", "change", "outputs", "run time")
    tables = []
    for model, model_rows in rows.items():
        tables.append(
            Table(
                headers,
                listing(model_rows, totals[model], "build"),
                caption=name_cell(clip(model, NAME_LIMIT)),
                small=True,
                wanted=(3, 4, 2, 1, 5),
            )
        )
    return listing(tables, len(totals), "model")


def _row(facts: _AuditNames, cell: FoldCell, footnotes: Footnotes) -> Row:
    sizes = cell.artifact_bytes
    counts = cell.executables
    # Footnotes are numbered in the order of the columns.
    change = _change_text(cell, footnotes)
    outputs = _OUTPUTS[cell.equal] + footnotes.mark(cell.equal_note)
    price = _price_text(cell, footnotes)
    return (
        name_cell(facts.short[cell.target]),
        phrase(sides(counts.before, counts.after, "count")),
        phrase(sides(sizes.before, sizes.after, "count")),
        phrase(change),
        phrase(strong(outputs) if cell.equal is False else outputs),
        phrase(price),
    )


def _change_text(cell: FoldCell, footnotes: Footnotes) -> str:
    """Return the artifact's relative change, with a note about a resumed compile."""
    sizes = cell.artifact_bytes
    text = "±0"
    if sizes.change is None:
        text = UNKNOWN
    elif sizes.change:
        text = relative(sizes.before, sizes.after)
    resumed = BeforeAfter(sizes.before, cell.resumed_bytes).change
    if resumed and cell.state == _FOLDED:
        text += footnotes.mark(
            f"{signed(resumed)} of this change comes from resuming the compile, not"
            " from folding"
        )
    return text


def _price_text(cell: FoldCell, footnotes: Footnotes) -> str:
    """Return the ratio of the run times with its interval, or why it is not known."""
    price = cell.price
    if price is None:
        return UNKNOWN + footnotes.mark(cell.price_note or cell.equal_note)
    interval = f"[{price.low:.2f}, {price.high:.2f}]"
    return f"{price.ratio:.2f} {interval}{footnotes.mark(cell.price_note)}"


# Lines.


def _other_cells(facts: _AuditNames, names: int) -> list[Phrase]:
    """Return the builds without a row, by state and reason, the largest group first.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    groups: dict[tuple[str, str], list[FoldCell]] = {}
    for cell in facts.audit.cells:
        if not _has_row(cell) and cell.state in _REASONS:
            note = clip(clean(cell.note), NOTE_LIMIT)
            groups.setdefault((cell.state, note), []).append(cell)
    ordered = sorted(
        groups.items(),
        key=lambda group: (list(_REASONS).index(group[0][0]), -len(group[1]), group[0]),
    )
    lines = []
    for (state, note), cells in ordered:
        reason = strong(_REASONS[state])
        where = facts.cells(cells, names)
        ending = f": {note}" if note else ""
        lines.append(
            phrase(reason, f" ({plural(len(cells), 'build')}): ", where, ending)
        )
    return lines


def _family_lines(
    facts: _AuditNames,
    families: Callable[[FoldCell], Sequence[FoldedFamily | LeftFamily]],
    names: int,
) -> list[Phrase]:
    """Return a line for each kind and reason of families, most executables first.

    A family of a model counts once, however many targets have it.
    """
    groups: dict[tuple[str, str], list[tuple[FoldCell, tuple[str, ...]]]] = {}
    for cell in facts.audit.cells:
        for family in families(cell):
            reason = ""
            if isinstance(family, LeftFamily):
                reason = f": {clip(clean(family.why), NOTE_LIMIT)}"
            group = groups.setdefault((reason, family.kind), [])
            group.append((cell, family.members))
    lines = []
    for (reason, kind), group in groups.items():
        distinct = {(cell.model, members) for cell, members in group}
        executables = set[tuple[str, str]]()
        for model, members in distinct:
            executables.update((model, member) for member in members)
        families_count = plural(len(distinct), "family")
        counts = f"{plural(len(executables), 'executable')} in {families_count}"
        cells = list({(cell.model, cell.target): cell for cell, _ in group}.values())
        where = facts.cells(cells, names // 2)
        kind_words = f" ({clip(clean(kind), NAME_LIMIT)})"
        line = phrase(strong(counts), f"{kind_words}{reason}: ", where)
        lines.append((-len(executables), reason, kind, line))
    lines.sort(key=lambda ranked: ranked[:3])
    return [line for *_, line in lines]
