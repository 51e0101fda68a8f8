"""Root causes, a line each: what, how much, where, the largest example, and which commits may have done it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from bot.core.explanation import (
    EARLY_CAUSES,
    OTHER_TYPES,
    UNATTRIBUTED,
    Example,
    LookedUp,
    RootCause,
    Suspect,
)
from bot.core.parting import NOT_TRACED
from bot.core.program_proof import FORMS_REGIONS
from bot.show.addresses import cause_address, cell_address, dispatch_address
from bot.show.blocks import (
    Limits,
    Line,
    Listing,
    Phrase,
    Span,
    code,
    joined,
    listing,
    phrase,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import UNKNOWN, grew_and_shrank, plural, share, sides, signed
from bot.show.proofs import root_proof_words

_ENOUGH = 0.9
_WHAT, _TITLE = 200, 100
_REASONS = 2
_LEAST_SHARE = 0.01
_EMITS = re.compile(r"(\S+): ([\d,]+(?: to [\d,]+)?) (\S.*) (more|fewer)")
_FORMS = re.compile(rf"(\S+) ({FORMS_REGIONS}: .+)")
_TURNS = re.compile(r"(\w+) (.+?)(?:, with (.+))?")
_TILE_SIZES = frozenset(
    {
        "cache_parallel",
        "cache_reduction",
        "distribution",
        "reduction",
        "subgroup",
        "thread",
        "tile_sizes",
        "vector_common_parallel",
        "vector_inner_parallel",
        "vector_reduction",
        "workgroup",
    }
)
"""Settings of a dispatch that are lists of tile sizes."""


def leading(facts: Facts) -> int:
    """Return how many root causes, in order, hold nine tenths of the total change.

    All where nothing changed.
    """
    sums = accumulate(root.share or 0 for root in facts.roots)
    return next(
        (count for count, part in enumerate(sums, 1) if part >= _ENOUGH),
        len(facts.roots),
    )


def shown_roots(facts: Facts, limits: Limits) -> int:
    """How many root causes have a line: those that hold nine tenths of the bytes, or as many as there is room for."""
    return min(limits.causes, len(facts.roots) if limits.every else leading(facts))


def root_lines(facts: Facts, limits: Limits) -> Listing[Line]:
    """The root causes with most bytes: those that hold nine tenths of them, or as many as there is room for.

    With `every` all that there is room for. The detail is each target's part where
    there are several, and the largest delta.
    """
    roots = facts.roots
    lines = []
    for number, root in enumerate(roots[: shown_roots(facts, limits)], 1):
        detail = root_details(facts, root) if limits.details else ()
        title, address = (
            _root_said(facts, root=root, number=number, limits=limits),
            cause_address(number),
        )
        lines.append(
            Line(
                said=title,
                detail=detail,
                below=suspect_words(root.looked_up, root.suspects),
                address=address,
            )
        )
    return listing(lines, len(roots), "root cause")


def cause_title(cause_text: str, cause: str | None, to: str = "") -> Phrase:
    """Return what changed, as an engineer would say it: "pass `cse` now emits 3 fewer `arith.addi` operations".

    `what`: the words of the root cause; `to`: the address that the first word leads to.
    """
    cause_text = clean(cause_text, _WHAT)
    if cause is None:
        return phrase(Span(f"Cause not known: {cause_text}", "strong", to))
    formed = _FORMS.fullmatch(cause_text)
    if formed:
        title = (Span("Pass", "strong", to), code(formed[1]), strong(formed[2]))
        return joined(((span,) for span in title), " ")
    emitted = _EMITS.fullmatch(cause_text)
    if emitted:
        name, count, operation, way = emitted.groups()
        noun = "operation" if count == "1" else "operations"
        title = (strong(f"now emits {count} {way}"), code(operation), strong(noun))
        return joined(
            [
                (Span("Pass", "strong", to),),
                (code(name),),
                *((span,) for span in title),
            ],
            " ",
        )
    named = cause_text.removesuffix(f": {OTHER_TYPES}")
    if named != cause_text:
        title = (
            Span("Pass", "strong", to),
            code(named),
            strong("now emits operations with other types"),
        )
        return joined(((span,) for span in title), " ")
    turned = _TURNS.fullmatch(cause_text) if cause == "strategy" else None
    if turned:
        knob, values, other_knobs = turned.groups()
        if knob == "pipeline":
            return phrase(Span(f"Pipeline {values}", "strong", to), _also(other_knobs))
        noun = "Tile size" if knob in _TILE_SIZES else "Setting"
        title = (Span(noun, "strong", to), code(knob), strong(values))
        return phrase(joined(((span,) for span in title), " "), _also(other_knobs))
    edited = (
        cause_text.removesuffix(" itself changed") if cause == "input" else cause_text
    )
    if edited != cause_text:
        return joined(
            (
                (span,)
                for span in (
                    Span("Model", "strong", to),
                    code(edited),
                    strong("was edited"),
                )
            ),
            " ",
        )
    return phrase(Span(f"{cause_text[:1].upper()}{cause_text[1:]}", "strong", to))


def _also(other_passes: str | None) -> Phrase:
    """Return the other settings that changed in each of the dispatches.

    Empty where there are none.
    """
    if not other_passes:
        return ()
    return phrase(
        ", with ", joined([(code(name),) for name in other_passes.split(", ")], ", ")
    )


def _root_said(facts: Facts, root: RootCause, number: int, limits: Limits) -> Phrase:
    """Return what changed, the net change, its share of the total change, and where.

    A page counts dispatches.
    """
    title = cause_title(root.what, root.cause, cause_address(number))
    models = _named(
        (clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model"
    )
    targets = _named(
        (facts.short[target] for target in root.targets), len(root.targets), "target"
    )
    is_counted = root.dispatches and (limits.every or len(root.models) == 1)
    counted = f"{plural(root.dispatches, 'dispatch')} in " if is_counted else ""
    net = "" if abs(root.total.net_bytes) == root.total.absolute_bytes else " net"
    size = f"{signed(root.total.net_bytes)}{net}" + (
        "" if root.share is None else f" ({share(root.share)})"
    )
    traced = (
        f", {root.traced[0]:,} of {plural(root.dispatches, 'dispatch')} traced"
        if _is_shared(root)
        else ""
    )
    tried = _tried_words(facts, root)
    return phrase(
        title,
        f" · {size} · {counted}",
        models,
        " on ",
        targets,
        traced,
        f" · {tried}" if tried else "",
    )


def _tried_words(facts: Facts, root: RootCause) -> str:
    """Return what the experiments say of a root cause.

    Empty where the report has none, or it is no dispatch's code.
    """
    if not root.dispatches or not any(
        cause.proof.members for cause in facts.report.root_causes
    ):
        return ""
    passed = root.passed.name if root.passed else None
    proof = root_proof_words(
        root.proof,
        what=root.what,
        parts=root.parts,
        pass_name=passed,
        dispatches=root.dispatches,
        total=root.total,
    )
    if not root.parts or passed is None or root.divided == root.dispatches:
        return proof
    return f"{proof} ({root.divided} of {plural(root.dispatches, 'dispatch')})"


def unexplained_words(facts: Facts) -> str:
    """Return `Not explained: 7 % of the total change (not traced)`.

    Empty where everything is explained.
    """
    shares = Counter[str]()
    for root in facts.unexplained:
        shares[clean(root.what, _WHAT).removeprefix("other code; ")] += root.share or 0  # type: ignore[assignment]
    total = sum(shares.values())
    if not total:
        return ""
    if len(shares) > 1:
        shares.pop(NOT_TRACED, None)  # it says less than the other reasons do
    reasons = [reason for reason, _ in shares.most_common(_REASONS)]
    overflow = (
        f" and {plural(len(shares) - _REASONS, 'other reason')}"
        if len(shares) > _REASONS
        else ""
    )
    part = share(total) if total >= _LEAST_SHARE else "less than 1 %"
    return (
        f"Not explained: {part} of the total change ({'; '.join(reasons)}{overflow})."
    )


def _is_shared(root: RootCause) -> bool:
    """Whether some of its dispatches have a pass that was printed for another target only."""
    return (
        root.cause in EARLY_CAUSES
        and root.passed is not None
        and root.traced[0] < root.dispatches
    )


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    return (
        phrase(plural(count, noun))
        if count > 1
        else joined([(code(name),) for name in names], ", ")
    )


def root_details(facts: Facts, root: RootCause) -> Phrase:
    """How much moved, each target's part, and the largest delta."""
    parts = []
    if abs(root.total.net_bytes) != root.total.absolute_bytes:
        parts.append(
            phrase(grew_and_shrank(root.total.net_bytes, root.total.absolute_bytes))
        )
    if len(root.by_target) > 1:
        parts.append(joined(_by_target(facts, root), ", "))
    if root.total.deltas > 1 or root.example.dispatch:
        parts.append(phrase("largest: ", _example(facts, root.example)))
    if _is_shared(root):
        untraced = plural(root.dispatches - root.traced[0], "dispatch")
        parts.append(
            phrase(f"{untraced} by the passes of another target with the same IR")
        )
    return joined(parts, "; ")


def suspect_words(looked_up: LookedUp | None, suspects: Sequence[Suspect]) -> Phrase:
    """Which commits may have done it, never which did; titles are a stranger's text."""
    if looked_up is None:
        return ()
    files, own_files = _files(looked_up.files), _files(looked_up.this_pull_request)
    parts = [phrase("this pull request changes ", own_files)] if own_files else []
    if suspects:
        named = [(code(suspect.commit[:10], suspect.url),) for suspect in suspects]
        of = (
            f", one of {looked_up.commits} commits to "
            if looked_up.commits != 1
            else ", the only commit to "
        )
        parts.append(
            phrase(
                "suspect: ",
                named[0],
                " ",
                code(clip(clean(suspects[0].title), _TITLE)),
                of,
                files,
            )
        )
        parts += [phrase("then ", joined(named[1:], ", "))] if named[1:] else []
    elif looked_up.commits is not None:
        touched = (
            f"{plural(looked_up.commits, 'commit')} touched "
            if looked_up.commits
            else "no commit touched "
        )
        unsaid = (
            ", and none mentions it" if looked_up.commits and not looked_up.note else ""
        )
        parts.append(phrase(touched, files, f" between the two{unsaid}"))
    return joined(
        [*parts, *([phrase(clean(looked_up.note))] if looked_up.note else [])], "; "
    )


def _files(paths: Sequence[str]) -> Phrase:
    """The name of the first, and how many more there are."""
    overflow = f" and {plural(len(paths) - 1, 'file')} more" if paths[1:] else ""
    return (
        phrase(code(clip(paths[0].rpartition("/")[2], NAME_LIMIT)), overflow)
        if paths
        else ()
    )


def _by_target(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    """Each target's part, largest first.

    One for those with the same: ``+1,675 B each on `cuda`, `rocm` ``.
    """
    targets_by_change: dict[tuple[int, int], list[str]] = {}
    for name, sum_ in sorted(
        root.by_target.items(),
        key=lambda target_change: -target_change[1].absolute_bytes,
    ):
        targets_by_change.setdefault((sum_.net_bytes, sum_.deltas), []).append(name)
    for (net_bytes, deltas), names in targets_by_change.items():
        suffix = " each" if len(names) > 1 else ""
        counted = f" in {deltas:,}" if root.dispatches else ""
        where = joined([(code(facts.short[name]),) for name in names], ", ")
        yield phrase(f"{signed(net_bytes)}{suffix}{counted} on ", where)


def _example(facts: Facts, example: Example) -> Phrase:
    place = (
        phrase(" in ", code(clip(example.component, NAME_LIMIT)))
        if example.component not in ("", UNATTRIBUTED)
        else ()
    )
    model = code(clip(example.key.model, NAME_LIMIT), cell_address(example.key))
    cell = phrase(" of ", model, " on ", code(facts.short[example.key.target]))
    if not example.dispatch:
        return phrase(signed(example.change_bytes), cell)
    size = sides(example.base_bytes, example.head_bytes)
    passed = (
        signed(example.change_bytes)
        if UNKNOWN in size or example.base_bytes == example.head_bytes
        else size
    )
    explanation = facts.report.explanations.get(example.key)
    once = (
        " (one compile of each side)"
        if explanation and explanation.first_compiles
        else ""
    )
    address = example_address(facts, example)
    return phrase(
        code(clip(example.dispatch, NAME_LIMIT), address),
        place,
        cell,
        f" {passed}{once}",
    )


def example_address(facts: Facts, example: Example) -> str:
    """The address of an example's dispatch.

    Empty where it names none, or none that is known to have changed.
    """
    explanation = facts.report.explanations.get(example.key)
    deltas = explanation.dispatches if explanation else ()
    named = (
        delta.head or delta.base for delta in deltas if delta.name == example.dispatch
    )
    return next(
        (dispatch_address(example.key, entry.executable) for entry in named if entry),
        "",
    )
