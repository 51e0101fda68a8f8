"""Show an experiment of the lab: its answers, and the tables of its variants.

`write_lab` writes the answer as JSON, as Markdown and as a page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bot.core.delta import value_of
from bot.core.growth import growths
from bot.core.lab import SAME, Lab, lab_lines
from bot.core.lab_sums import Sums, sums
from bot.core.metrics import METRIC_BY_ID
from bot.core.record import Value, certain, difference, ends
from bot.core.runs import Price, Run
from bot.core.snapshot import Cell, CellKey
from bot.core.study import Variant
from bot.show.blocks import (
    ABSENT,
    Block,
    Fold,
    List,
    Phrase,
    Rank,
    Row,
    Sentence,
    Table,
    bounded,
    by,
    code,
    joined,
    listed,
    listing,
    part,
    phrase,
    section,
    several,
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
from bot.show.views import Room

# A quarter of what GitHub takes as the summary of one step, in UTF-8
LAB_LIMIT_BYTES = 256 * 1024
_TIME = "CPU time"
_COLUMNS = 4
_CELLS = 8
_TEXT_LIMIT = 400
_WHY_LIMIT = 300
_EQUAL = {True: "equal", False: "⚠️ differ", None: UNKNOWN}


def write_lab(lab: Lab, templates: Path | None, out: Path) -> list[Path]:
    """Write `lab.json`, `lab.md` and `lab.html`, and return their paths.

    The Markdown has at most `LAB_LIMIT_BYTES` in UTF-8.

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
    """Return the whole answer.

    A terminal, whose last lines are seen first, has the sentences below the tables.
    """
    lab_sums = sums(lab)
    leading, models = tables(lab, lab_sums)
    grown = growths(lab.study, lab.experiment.columns)
    targets = [*growth_answers(grown), *answers(lab, lab_sums)]
    stack = [*beyond_stack(lab, lab_sums, room.names)]

    def result(count: int) -> Iterator[Block]:
        lines = (*targets[:count], *stack)
        yield List(listing(lines, len(targets) + len(stack), "answer"))

    answered = section("Result", part(result, room.lines, Rank.ANSWER), name="answers")
    measured = section(
        "",
        several(growth_tables(grown), Rank.LINE, "build", room.names),
        several(leading, Rank.LINE, "table"),
        name="tables",
    )
    profiles = part(partial(time_tables, lab), room.names, Rank.ROW)
    times = section("", profiles, name="times")
    variants = listed(
        [_variant(lab, variant) for variant in lab.study.variants], "variant"
    )
    question = clip(clean(lab.experiment.question), _TEXT_LIMIT)
    missing = List(listed(unmeasured(lab, room.names), "reason"))
    remark_list = List(listed(remarks(lab), "remark"), small=True)
    leads = (answered, measured, times)
    if room.place == "terminal":
        leads = (measured, times, answered)
    return (
        Sentence(phrase(strong(f"Lab: {clean(lab.experiment.name)}"), f". {question}")),
        *leads,
        section(
            "Not measured",
            bounded(missing, Rank.MESSAGE, room.lines),
            name="not-measured",
        ),
        section(
            "What to know", bounded(remark_list, Rank.LINE, room.lines), name="remarks"
        ),
        Fold(
            "Every model",
            tuple(bounded(table, Rank.ROW, room.rows) for table in models),
            name="models",
        ),
        Fold(
            "Variants, and how to reproduce",
            (bounded(List(variants), Rank.ROW), Sentence(_made(lab))),
            name="variants",
        ),
    )


# Words.


def _names(texts: Sequence[str], limit: int | None = None) -> Phrase:
    return some(map(name, texts[:limit]), len(texts))


def _valued(value: Value, reference: Value, *, is_first: bool) -> str:
    """Return a value, and how it differs from the reference's value.

    Examples are `84,294 (+0.4 %)` and `54,168..55,288 (−0.6..+3.6 %)`.
    """
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
    """Return a ratio with its interval: `× 0.98 [0.97, 1.01]`."""
    return f"× {price.ratio:.2f} [{price.low:.2f}, {price.high:.2f}]"


# Answers, in sentences.


def answers(lab: Lab, lab_sums: Sequence[Sums]) -> list[Phrase]:
    """Return one sentence for each target."""
    return [
        _answer(lab, total)
        for total in lab_sums
        if total.models and len(total.variants) > 1
    ]


def _answer(lab: Lab, total: Sums) -> Phrase:
    """Return how each variant differs from the reference on one target.

    The figures are over all models together.
    """
    compared = [
        variant.name for variant in total.variants if variant.name != total.reference
    ]
    exact = _exact(lab)
    measured = _measured(total, total.reference, exact)
    parts = list[Phrase]()
    same = list[str]()
    for variant in compared:
        changes = differences(lab, total, variant)
        if changes:
            parts.append(phrase(name(variant), " ", ", ".join(changes)))
        elif _measured(total, variant, measured) == measured:
            same.append(variant)
    if same and measured:
        parts.append(phrase("no change with ", _names(same)))
    if not parts:
        nothing = "all shown numbers vary from run to run"
        if exact:
            nothing = "no other variant was measured"
        parts.append(phrase(nothing))
    count = plural(len(total.models), "model")
    lead = phrase("On ", name(total.target), f", {count}, against ")
    return phrase(lead, name(total.reference), ": ", joined(parts, "; "), ".")


def _measured(total: Sums, variant: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that have a value in a variant."""
    return [column for column in columns if total.value(variant, column) is not None]


def _exact(lab: Lab) -> list[str]:
    """Return the columns that do not vary from run to run.

    It is not known whether the other columns changed.
    """
    return [column for column in lab.experiment.columns if METRIC_BY_ID[column].exact]


def differences(lab: Lab, total: Sums, variant: str) -> list[str]:
    """Return `artifact +0.4 %` for the first columns that changed, and the CPU time.

    Columns that vary from run to run are left out.
    """
    texts = [_difference(total, variant, column) for column in _exact(lab)]
    changes = [text for text in texts if text][:_COLUMNS]
    mean = total.time(variant)
    if mean is None or not (changes or round(mean.ratio, 2) != 1):
        return changes
    return [*changes, f"{_TIME} {_mean(total, variant)}"]


def _mean(total: Sums, variant: str) -> str:
    """Return the mean ratio of CPU time.

    It names the number of models if the mean is not over all.
    """
    if (mean := total.time(variant)) is None:
        return UNKNOWN
    over = ""
    if mean.models != len(total.models):
        over = f" ({plural(mean.models, 'model')})"
    return f"× {mean.ratio:.2f}{over}"


def _difference(total: Sums, variant: str, column: str) -> str:
    before = total.value(total.reference, column)
    after = total.value(variant, column)
    if before is None or after is None or before == after:
        return ""
    if not ends(before)[0]:
        return f"{label(column)} {amount(before, 'count')} → {amount(after, 'count')}"
    is_open = certain(difference(before, after)) is None
    return f"{label(column)} {relative(before, after)}{' (open)' if is_open else ''}"


def beyond_stack(lab: Lab, lab_sums: Sequence[Sums], names: int) -> Iterator[Phrase]:
    """Yield which models need the compiler's stack limit raised.

    Variants with which the same builds need it share a line.
    """
    measured = set[str]()
    over = defaultdict[str, set[CellKey]](set)
    for total in lab_sums:
        for (_, variant_name), cell in total.cells.items():
            if cell.measured:
                measured.add(variant_name)
            if cell.measured and cell.status == "over-stack-limit":
                over[variant_name].add(cell.key)
    if not over:
        return
    groups: dict[frozenset[CellKey], list[str]] = {}
    for variant in lab.study.variants:
        if variant.name in measured:
            keys = frozenset(over.get(variant.name, ()))
            groups.setdefault(keys, []).append(variant.name)
    for keys, variants in groups.items():
        need = phrase(" no build needs the stack limit raised")
        if keys:
            verb = "needs" if len(keys) == 1 else "need"
            builds = plural(len(keys), "build")
            need = phrase(
                f" {builds} {verb} the stack limit raised: ", _where(keys, names)
            )
        yield phrase("With ", _names(variants), need, ".")


def _where(keys: Iterable[CellKey], names: int) -> Phrase:
    """Return the models of the builds, by target."""
    targets = by(sorted(set(keys)), lambda key: key.target)
    parts = []
    for target in sorted(targets):
        models = _names([key.model for key in targets[target]], names)
        parts.append(phrase(models, " on ", name(target)))
    return joined(parts, "; ")


def unmeasured(lab: Lab, names: int) -> list[Phrase]:
    """Return the builds that were not measured: a line for each reason.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    missing = [
        (variant, cell)
        for variant, cell in lab.cells
        if not cell.measured and not cell.is_never_measured
    ]
    groups = by(missing, lambda pair: _gap(pair[1]))
    lines = []
    for (status, reason), cells in sorted(groups.items()):
        variants = list(dict.fromkeys(variant for variant, _ in cells))
        count = plural(len(cells), "build")
        lines.append(
            phrase(
                _names(variants, names),
                f": {count} {status.replace('-', ' ')}: {reason}: ",
                _where((cell.key for _, cell in cells), names),
            )
        )
    return lines


def _gap(cell: Cell) -> tuple[str, str]:
    """Return the status of a build that was not measured, and the reason."""
    return cell.status, clip(clean(cell.reason or cell.status), _WHY_LIMIT)


def remarks(lab: Lab) -> list[Phrase]:
    """Return what a reader should know about the measurement.

    The remarks are about chance, outputs that differ, why nothing was timed, and notes
    of the measurements.
    """
    lines = list[Phrase]()
    varying = [(variant, cell.key) for variant, cell in lab.cells if cell.others]
    if varying:
        varies = (
            "These builds are non-deterministic, and are reported as the range of all"
            " results: "
        )
        lines.append(phrase(varies, _listed(varying), "."))
    differing = [
        (variant, cell.key)
        for variant, cell in lab.cells
        if lab.run(variant, cell).equal is False
    ]
    if differing:
        references = lab.study.references
        targets = [key.target for _, key in differing]
        names = dict.fromkeys(references[target].name for target in targets)
        than = phrase(" from those of ", joined(map(name, names), " or "), ": ")
        outputs = strong("⚠️ Outputs differ")
        lines.append(phrase(outputs, than, _listed(differing), "."))
    if lab.experiment.run:
        lines += map(phrase, _ran(lab))
    lines += growth_notes(growths(lab.study, lab.experiment.columns))
    lines += time_notes(lab)
    lines += (phrase(clip(clean(note), _WHY_LIMIT)) for note in lab.notes)
    return lines


def _ran(lab: Lab) -> Iterator[str]:
    """Yield in how many builds outputs are equal, and why times are not known.

    Each reason is yielded once.
    """
    runs = [lab.run(*pair) for pair in lab.cells]
    unknown = _reasons(
        run.equal_note
        for run in runs
        if run.equal is None and run.equal_note != run.price_note
    )
    compared = [run for run in runs if _is_compared(run)]
    if compared:
        equal = sum(run.equal is True for run in compared)
        verb = "was" if len(compared) == 1 else "were"
        line = (
            f"Outputs equal in {equal:,} of {plural(len(compared), 'build')} that"
            f" {verb} run."
        )
        if unknown:
            line = f"{line} Not known: {unknown}."
        yield line
    elif unknown:
        yield f"Outputs not known to be equal: {unknown}."
    untimed = _reasons(run.price_note for run in runs)
    if untimed:
        yield f"Not timed: {untimed}."


def _is_compared(run: Run) -> bool:
    """Return whether the outputs of a run were compared with those of another."""
    if run.price:
        return True
    return run.equal is not None and run.equal_note != SAME


def _reasons(notes: Iterable[str]) -> str:
    """Return the reasons with the number of their builds, most frequent first."""
    counts = Counter[str]()
    for note in notes:
        text = clip(clean(note), _WHY_LIMIT)
        if note != SAME and text:
            counts[text] += 1
    by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return "; ".join(f"{text} ({plural(count, 'build')})" for text, count in by_count)


def _listed(cells: Sequence[tuple[str, CellKey]]) -> Phrase:
    cell_names = [
        phrase(name(key.model), " on ", name(key.target), " with ", name(variant))
        for variant, key in cells[:_CELLS]
    ]
    if len(cells) > _CELLS:
        cell_names.append(phrase(f"{len(cells) - _CELLS} more"))
    return joined(cell_names, ", ")


# Tables.


def tables(lab: Lab, lab_sums: Sequence[Sums]) -> tuple[list[Table], list[Table]]:
    """Return the tables of sums, to lead with, and those of every model."""
    totals = [_total_table(lab, total) for total in lab_sums if total.models]
    models = [_model_table(lab, total) for total in lab_sums]
    return totals, models


def _is_run(total: Sums) -> bool:
    """Return whether artifacts were run, so that there are times to show."""
    return any(total.run(*key).price for key in total.cells)


def _on(total: Sums) -> Phrase:
    """Return the target, and the variant that changes and times are against."""
    against = phrase(", against ", code(clip(total.reference, NAME_LIMIT)))
    return phrase(
        "On ",
        code(clip(total.target, NAME_LIMIT)),
        against if len(total.variants) > 1 and total.reference else (),
    )


def _total_table(lab: Lab, total: Sums) -> Table:
    """Return a row for each variant: sums over the models that all of them measured."""
    columns = lab.experiment.columns
    headers = ["variant", *map(header, columns), *gate_headers(total)]
    is_run = _is_run(total)
    if is_run:
        headers.append(_TIME)
    rows = []
    for variant in total.variants:
        is_first = variant.name == total.reference
        texts = list[str]()
        for column in columns:
            value = total.value(variant.name, column)
            reference = total.value(total.reference, column)
            texts.append(_valued(value, reference, is_first=is_first))
        texts += [refused_words(total, variant.name) for _ in gate_headers(total)]
        if is_run:
            texts.append("× 1" if is_first else _mean(total, variant.name))
        rows.append((name(variant.name), *map(phrase, texts)))
    counted = f", {plural(len(total.models), 'model')}"
    if len(total.models) > 1:
        counted += " together"
    if total.more:
        missing = plural(total.more, "model")
        counted += f" ({missing} left out: not measured in every variant)"
    return Table(
        tuple(headers),
        listed(rows, "variant"),
        caption=phrase(_on(total), counted),
    )


def _model_table(lab: Lab, total: Sums) -> Table:
    extra_columns = [*gate_headers(total)]
    if _is_run(total):
        extra_columns += [_TIME, "outputs"]
    headers = ("model", "variant", *map(header, lab.experiment.columns), *extra_columns)
    order = {variant.name: place for place, variant in enumerate(total.variants)}
    keys = sorted(total.cells, key=lambda key: (key[0], order[key[1]]))
    rows = [
        _model_row(total, *key, (*lab.experiment.columns, *extra_columns))
        for key in keys
    ]
    return Table(
        headers,
        listed(rows, "row"),
        numbers_from=2,
        small=True,
        caption=_on(total),
    )


def _model_row(total: Sums, model: str, variant: str, columns: Sequence[str]) -> Row:
    cell = total.cells[model, variant]
    run = total.run(model, variant)
    names = (name(model), name(variant))
    is_first = variant == total.reference
    if not cell.measured:
        return (
            *names,
            phrase(strong(cell.status.replace("-", " "))),
            *[phrase(ABSENT)] * (len(columns) - 1),
        )
    reference = total.cells.get((model, total.reference))
    same = "× 1 (same artifact)"
    if total.time_ratio(model, variant) is None:
        same = UNKNOWN
    if is_first:
        time = "× 1"
    elif run.price:
        time = _priced(run.price)
    else:
        time = same
    ran = {_TIME: time, "outputs": ABSENT if is_first else _EQUAL[run.equal]}
    ran |= dict.fromkeys((DEFAULT_GATE, OWN_GATE), gate_words(cell))
    texts = []
    for column in columns:
        if column in ran:
            texts.append(ran[column])
            continue
        before: Value = None
        if reference:
            before = value_of(reference, column)
        texts.append(_valued(value_of(cell, column), before, is_first=is_first))
    return (*names, *map(phrase, texts))


# How it was made.


def _variant(lab: Lab, variant: Variant) -> Phrase:
    """Return how a variant differs from the others."""
    parts = list[Phrase]()
    compilers = {variant.compiler for variant in lab.study.variants}
    if variant.compiler and len(compilers) > 1:
        parts.append(phrase("IREE ", _code(variant.compiler.version)))
    if variant.flags:
        parts.append(_code(" ".join(variant.flags)))
    for target, flags in sorted((variant.targets or {}).items()):
        part = phrase("on ", _code(target), " ")
        if flags:
            part = phrase(part, _code(" ".join(flags)))
        parts.append(part)
    for model, path in sorted(variant.models.items()):
        parts.append(phrase(name(model), " is ", _code(path)))
    if variant.layers is not None:
        parts.append(phrase(plural(variant.layers, "layer")))
    if variant.assume is not None:
        parts.append(phrase(f"dynamic dimensions: {variant.assume.words}"))
    if not parts:
        if lab.experiment.models:
            owner = "experiment"
        else:
            owner = "configuration"
        parts.append(phrase(f"as the {owner} has it"))
    return phrase(name(variant.name), ": ", joined(parts, "; "))


def _code(text: str) -> Phrase:
    return phrase(code(clip(clean(text), _TEXT_LIMIT)))


def _made(lab: Lab) -> Phrase:
    versions = dict.fromkeys(
        variant.compiler.version for variant in lab.study.variants if variant.compiler
    )
    text = phrase("IREE ", joined(map(_code, versions), ", "))
    if lab.flags:
        text = phrase(text, ", flags ", _code(" ".join(lab.flags)))
    text = phrase(text, ".")
    if lab.machine:
        text = phrase(text, " Run on ", _code(lab.machine), ".")
    return phrase(text, " The commands of all builds are in lab.json.")
