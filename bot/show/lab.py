"""An experiment of the lab as blocks, and its two files: what it answers, and the tables of its variants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bot.core.delta import value_of
from bot.core.fold import Price
from bot.core.growth import growths
from bot.core.lab import SAME, Lab, Sums, lab_lines, sums
from bot.core.metrics import METRIC_BY_ID
from bot.core.record import Value, certain, difference, ends
from bot.core.snapshot import CellKey
from bot.core.study import Variant
from bot.show.blocks import (
    ABSENT,
    Block,
    Fold,
    List,
    Listing,
    Phrase,
    Room,
    Row,
    Sentence,
    Table,
    by,
    code,
    first,
    joined,
    listing,
    phrase,
    section,
    some,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import UNKNOWN, amount, plural, relative
from bot.show.growth import growth_answers, growth_notes, growth_tables
from bot.show.lab_words import header, label, name
from bot.show.renderers import write_answer
from bot.show.stack_gate import (
    DEFAULT_GATE,
    OWN_GATE,
    gate_headers,
    gate_words,
    refused_words,
)
from bot.show.times import time_notes, time_tables

LAB_LIMIT_BYTES = (
    256 * 1024
)  # A quarter of what GitHub takes as the summary of one step, in UTF-8
_TIME = "CPU time"
_COLUMNS, _CELLS = 4, 8
_TEXT_LIMIT, _WHY_LIMIT = 400, 300
_EQUAL = {True: "equal", False: "⚠️ differ", None: UNKNOWN}


def write_lab(lab: Lab, templates: Path | None, out: Path) -> list[Path]:
    """Write `lab.json`, `lab.md` (at most `LAB_LIMIT_BYTES` in UTF-8) and the page `lab.html`.

    `templates`: the user's templates, searched before the default ones.
    """
    return write_answer(
        "lab",
        json=lab_lines(lab),
        blocks=partial(lab_blocks, lab),
        limit_bytes=LAB_LIMIT_BYTES,
        templates_dir=templates,
        out=out,
    )


def lab_blocks(lab: Lab, room: Room) -> tuple[Block, ...]:
    """The whole answer.

    A terminal, whose last lines are seen first, has the sentences below the tables.
    """
    lab_sums = sums(lab)
    leading, models = tables(lab, lab_sums, room.rows)
    grown = growths(lab.study, lab.experiment.columns)
    result = first(
        [*growth_answers(grown), *answers(lab, lab_sums)], room.lines, "answer"
    )
    stack = tuple(beyond_stack(lab, lab_sums, room.names))
    result = Listing((*result.items, *stack), result.total + len(stack), result.noun)
    answered = section("Result", List(result), name="answers")
    measured = section("", *growth_tables(grown, room.names), *leading, name="tables")
    times = section("", *time_tables(lab, room.names), name="times")
    variants = List(
        listing(
            [_variant(lab, variant) for variant in lab.study.variants],
            len(lab.study.variants),
            "variant",
        )
    )
    question = clip(clean(lab.experiment.question), _TEXT_LIMIT)
    return (
        Sentence(phrase(strong(f"Lab: {clean(lab.experiment.name)}"), f". {question}")),
        *(
            (measured, times, answered)
            if room.place == "terminal"
            else (answered, measured, times)
        ),
        section(
            "Not measured",
            List(unmeasured(lab, room.lines, room.names)),
            name="not-measured",
        ),
        section(
            "What to know", List(remarks(lab, room.lines), small=True), name="remarks"
        ),
        Fold("Every model", tuple(models), name="models"),
        Fold(
            "Variants, and how to reproduce",
            (variants, Sentence(_made(lab))),
            name="variants",
        ),
    )


# Words.


def _names(texts: Sequence[str], limit: int | None = None) -> Phrase:
    return some(map(name, texts[:limit]), len(texts))


def _valued(value: Value, reference: Value, *, is_first: bool) -> str:
    """A value, and how it differs from the reference's: `84,294 (+0.4 %)`, `54,168..55,288 (−0.6..+3.6 %)`."""
    if (
        is_first
        or value is None
        or not reference
        or value == reference
        or not ends(reference)[0]
    ):
        return amount(value, "count")
    return f"{amount(value, 'count')} ({relative(reference, value)})"


def _priced(price: Price) -> str:
    """A ratio with its interval: `× 0.98 [0.97, 1.01]`."""
    return f"× {price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]"


# Answers, in sentences.


def answers(lab: Lab, lab_sums: Sequence[Sums]) -> list[Phrase]:
    """One sentence for each target."""
    return [
        _answer(lab, total)
        for total in lab_sums
        if total.models and len(total.variants) > 1
    ]


def _answer(lab: Lab, total: Sums) -> Phrase:
    """How each variant differs from the reference on one target, over all models together."""
    compared = [
        variant.name for variant in total.variants if variant.name != total.reference
    ]
    changes = {variant: differences(lab, total, variant) for variant in compared}
    moved = [variant for variant in compared if changes[variant]]
    parts = [
        phrase(name(variant), " ", ", ".join(changes[variant])) for variant in moved
    ]
    exact = _exact(lab)
    measured = [
        column for column in exact if total.value(total.reference, column) is not None
    ]
    same = [
        name
        for name in compared
        if not changes[name]
        and all(total.value(name, id_) is not None for id_ in measured)
    ]
    parts += [phrase("no change with ", _names(same))] if same and measured else []
    led = phrase(
        "On ",
        name(total.target),
        f", {plural(len(total.models), 'model')}, against ",
        name(total.reference),
        ": ",
    )
    nothing = (
        "no other variant was measured"
        if exact
        else "all shown numbers vary from run to run"
    )
    return phrase(led, joined(parts, "; ") or phrase(nothing), ".")


def _exact(lab: Lab) -> list[str]:
    """The columns that hold still from run to run: of others nobody knows whether they changed."""
    return [column for column in lab.experiment.columns if METRIC_BY_ID[column].exact]


def differences(lab: Lab, total: Sums, variant: str) -> list[str]:
    """`artifact +0.4 %`, for the first columns that changed and hold still from run to run.

    And the time.
    """
    changes = [
        text for column in _exact(lab) if (text := _difference(total, variant, column))
    ][:_COLUMNS]
    mean = total.time(variant)
    if mean is None or not (changes or round(mean.ratio, 2) != 1):
        return changes
    return [*changes, f"{_TIME} {_mean(total, variant)}"]


def _mean(total: Sums, variant: str) -> str:
    """The mean ratio of CPU time, and over how many models where that are not all."""
    if (mean := total.time(variant)) is None:
        return UNKNOWN
    over = (
        f" ({plural(mean.models, 'model')})" if mean.models != len(total.models) else ""
    )
    return f"× {mean.ratio:.2f}{over}"


def _difference(total: Sums, variant: str, column: str) -> str:
    before, after = total.value(total.reference, column), total.value(variant, column)
    if before is None or after is None or before == after:
        return ""
    if not ends(before)[0]:
        return f"{label(column)} {amount(before, 'count')} → {amount(after, 'count')}"
    is_open = certain(difference(before, after)) is None
    return f"{label(column)} {relative(before, after)}{' (open)' if is_open else ''}"


def beyond_stack(lab: Lab, lab_sums: Sequence[Sums], names: int) -> Iterator[Phrase]:
    """Which models need the compiler's stack limit raised: a line for all variants with which the same do."""
    measured = [
        (name, cell)
        for total in lab_sums
        for (_, name), cell in total.cells.items()
        if cell.measured
    ]
    over = [
        (name, cell.key) for name, cell in measured if cell.status == "over-stack-limit"
    ]
    groups: dict[frozenset[CellKey], list[str]] = {}
    for variant in [variant.name for variant in lab.study.variants]:
        keys = frozenset(key for name, key in over if name == variant)
        if keys or (over and any(name == variant for name, _ in measured)):
            groups.setdefault(keys, []).append(variant)
    for keys, variants in groups.items():
        needs = (
            f" {plural(len(keys), 'build')} {'needs' if len(keys) == 1 else 'need'} the"
            " stack limit raised: "
        )
        need = (
            phrase(needs, _where(keys, names))
            if keys
            else phrase(" no build needs the stack limit raised")
        )
        yield phrase("With ", _names(variants), need, ".")


def _where(keys: Iterable[CellKey], names: int) -> Phrase:
    """Models by target."""
    targets = by(sorted(set(keys)), lambda key: key.target)
    parts = (
        (
            phrase(
                _names([key.model for key in targets[target]], names),
                " on ",
                name(target),
            )
        )
        for target in sorted(targets)
    )
    return joined(parts, "; ")


def unmeasured(lab: Lab, limit: int, names: int) -> Listing[Phrase]:
    """Return what was not measured, and why: a line for each reason.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    missing = [
        (variant, cell)
        for variant, cell in lab.cells
        if not cell.measured and not cell.is_never_measured
    ]
    groups = by(
        missing,
        lambda pair: (
            pair[1].status,
            clip(clean(pair[1].reason or pair[1].status), _WHY_LIMIT),
        ),
    )
    lines = [
        phrase(
            _names(list(dict.fromkeys(variant for variant, _ in cells)), names),
            f": {plural(len(cells), 'build')} {status.replace('-', ' ')}: {reason}: ",
            _where((cell.key for _, cell in cells), names),
        )
        for (status, reason), cells in sorted(groups.items())
    ]
    return first(lines, limit, "reason")


def remarks(lab: Lab, limit: int) -> Listing[Phrase]:
    """What a reader should know: chance, outputs that differ, why nothing was timed, notes of the measurements."""
    lines = list[Phrase]()
    if cells := [(variant, cell.key) for variant, cell in lab.cells if cell.others]:
        varies = (
            "These builds are non-deterministic, and are reported as the range of all"
            " results: "
        )
        lines.append(phrase(varies, _listed(cells), "."))
    if cells := [
        (variant, cell.key)
        for variant, cell in lab.cells
        if lab.run(variant, cell).equal is False
    ]:
        references = lab.study.references
        than = joined(
            map(name, dict.fromkeys(references[key.target].name for _, key in cells)),
            " or ",
        )
        lines.append(
            phrase(
                strong("⚠️ Outputs differ"),
                " from those of ",
                than,
                ": ",
                _listed(cells),
                ".",
            )
        )
    lines += map(phrase, _ran(lab)) if lab.experiment.run else ()
    lines += growth_notes(growths(lab.study, lab.experiment.columns))
    lines += time_notes(lab)
    lines += (phrase(clip(clean(note), _WHY_LIMIT)) for note in lab.notes)
    return first(lines, limit, "remark")


def _ran(lab: Lab) -> Iterator[str]:
    """In how many cells outputs are equal.

    And why times of cells are not known, each reason once.
    """
    runs = [lab.run(*pair) for pair in lab.cells]
    unknown = _reasons(
        run.equal_note
        for run in runs
        if run.equal is None and run.equal_note != run.price_note
    )
    if compared := [
        run
        for run in runs
        if run.price or (run.equal is not None and run.equal_note != SAME)
    ]:
        equal, were = (
            sum(run.equal is True for run in compared),
            ("was" if len(compared) == 1 else "were"),
        )
        but = f" Not known: {unknown}." if unknown else ""
        yield (
            f"Outputs equal in {equal:,} of {plural(len(compared), 'build')} that"
            f" {were} run.{but}"
        )
    elif unknown:
        yield f"Outputs not known to be equal: {unknown}."
    if untimed := _reasons(run.price_note for run in runs):
        yield f"Not timed: {untimed}."


def _reasons(notes: Iterable[str]) -> str:
    counts = Counter(
        text
        for note in notes
        if note != SAME and (text := clip(clean(note), _WHY_LIMIT))
    )
    by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return "; ".join(f"{text} ({plural(count, 'build')})" for text, count in by_count)


def _listed(cells: Sequence[tuple[str, CellKey]]) -> Phrase:
    cell_names = [
        phrase(name(key.model), " on ", name(key.target), " with ", name(variant))
        for variant, key in cells[:_CELLS]
    ]
    overflow = [phrase(f"{len(cells) - _CELLS} more")] if len(cells) > _CELLS else []
    return joined([*cell_names, *overflow], ", ")


# Tables.


def tables(
    lab: Lab, lab_sums: Sequence[Sums], limit: int
) -> tuple[list[Table], list[Table]]:
    """Sums, to lead with; and every model."""
    return [_total_table(lab, total) for total in lab_sums if total.models], [
        _model_table(lab, total, limit) for total in lab_sums
    ]


def _is_run(total: Sums) -> bool:
    """True where artifacts were run, so that there is something to say of time."""
    return any(total.run(*key).price for key in total.cells)


def _on(total: Sums) -> Phrase:
    """The target, and the variant that changes and times are against."""
    against = phrase(", against ", code(clip(total.reference, NAME_LIMIT)))
    return phrase(
        "On ",
        code(clip(total.target, NAME_LIMIT)),
        against if len(total.variants) > 1 and total.reference else (),
    )


def _total_table(lab: Lab, total: Sums) -> Table:
    """A row for each variant: sums over the models that all of them measured."""
    columns, ratios, gate = (
        lab.experiment.columns,
        [_TIME] * _is_run(total),
        gate_headers(total),
    )
    rows = []
    for variant in total.variants:
        is_first = variant.name == total.reference
        time = "× 1" if is_first else _mean(total, variant.name)
        pairs = (
            (total.value(variant.name, column), total.value(total.reference, column))
            for column in columns
        )
        values = [_valued(*pair, is_first=is_first) for pair in pairs]
        refused = [refused_words(total, variant.name) for _ in gate]
        rows.append(
            (
                name(variant.name),
                *map(phrase, (*values, *refused, *(time for _ in ratios))),
            )
        )
    missing = (
        f" ({plural(total.more, 'model')} left out: not measured in every variant)"
        if total.more
        else ""
    )
    together = " together" if len(total.models) > 1 else ""
    caption = phrase(
        _on(total), f", {plural(len(total.models), 'model')}{together}{missing}"
    )
    headers = ("variant", *map(header, columns), *gate, *ratios)
    return Table(headers, listing(rows, len(rows), "variant"), caption=caption)


def _model_table(lab: Lab, total: Sums, limit: int) -> Table:
    extra_columns = [
        *gate_headers(total),
        *([_TIME, "outputs"] if _is_run(total) else []),
    ]
    headers = ("model", "variant", *map(header, lab.experiment.columns), *extra_columns)
    order = {variant.name: place for place, variant in enumerate(total.variants)}
    keys = sorted(total.cells, key=lambda key: (key[0], order[key[1]]))
    rows = [
        _model_row(total, *key, (*lab.experiment.columns, *extra_columns))
        for key in keys[:limit]
    ]
    return Table(
        headers,
        listing(rows, len(keys), "row"),
        numbers_from=2,
        small=True,
        caption=_on(total),
    )


def _model_row(total: Sums, model: str, variant: str, columns: Sequence[str]) -> Row:
    cell, run = total.cells[model, variant], total.run(model, variant)
    names, is_first = (name(model), name(variant)), variant == total.reference
    if not cell.measured:
        return (
            *names,
            phrase(strong(cell.status.replace("-", " "))),
            *[phrase(ABSENT)] * (len(columns) - 1),
        )
    reference = total.cells.get((model, total.reference))
    same = (
        UNKNOWN if total.time_ratio(model, variant) is None else "× 1 (same artifact)"
    )
    time = "× 1" if is_first else _priced(run.price) if run.price else same
    ran = {_TIME: time, "outputs": ABSENT if is_first else _EQUAL[run.equal]}
    ran |= dict.fromkeys((DEFAULT_GATE, OWN_GATE), gate_words(cell))
    values = (
        (
            ran[column]
            if column in ran
            else _valued(
                value_of(cell, column),
                value_of(reference, column) if reference else None,
                is_first=is_first,
            )
        )
        for column in columns
    )
    return (*names, *map(phrase, values))


# How it was made.


def _variant(lab: Lab, variant: Variant) -> Phrase:
    """What makes it another one than the others."""
    parts = list[Phrase]()
    if (
        variant.compiler
        and len({variant.compiler for variant in lab.study.variants}) > 1
    ):
        parts.append(phrase("IREE ", _code(variant.compiler.version)))
    if variant.flags:
        parts.append(_code(" ".join(variant.flags)))
    for target, flags in sorted((variant.targets or {}).items()):
        parts.append(
            phrase("on ", _code(target), " ", _code(" ".join(flags)) if flags else "")
        )
    for model, path in sorted(variant.models.items()):
        parts.append(phrase(name(model), " is ", _code(path)))
    if variant.layers is not None:
        parts.append(phrase(plural(variant.layers, "layer")))
    if variant.assume is not None:
        parts.append(phrase(f"dynamic dimensions: {variant.assume.words}"))
    if not parts:
        parts.append(
            phrase(
                "as the experiment has it"
                if lab.experiment.models
                else "as the configuration has it"
            )
        )
    return phrase(name(variant.name), ": ", joined(parts, "; "))


def _code(text: str) -> Phrase:
    return phrase(code(clip(clean(text), _TEXT_LIMIT)))


def _made(lab: Lab) -> Phrase:
    versions = dict.fromkeys(
        variant.compiler.version for variant in lab.study.variants if variant.compiler
    )
    flags = phrase(", flags ", _code(" ".join(lab.flags))) if lab.flags else ()
    ran = phrase(" Run on ", _code(lab.machine), ".") if lab.machine else ()
    return phrase(
        "IREE ",
        joined(map(_code, versions), ", "),
        flags,
        ".",
        ran,
        " The commands of all builds are in lab.json.",
    )
