"""Show root causes, with a line for each.

A line has what changed, how much and where. Below it are the largest example and the
commits that may have caused it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from bot.core.explanation import (
    EARLY_CAUSES,
    OTHER_CONFIGURATION,
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
from bot.show.views import View

_ENOUGH = 0.9
_SHARE_DIGITS = 9  # sums of shares may lack a hair
_WHAT = 200
_TITLE = 100
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

    Return the number of all causes if nothing changed.
    """
    sums = accumulate(root.share or 0 for root in facts.roots)
    for count, part in enumerate(sums, 1):
        if round(part, _SHARE_DIGITS) >= _ENOUGH:
            return count
    return len(facts.roots)


def shown_roots(facts: Facts, view: View) -> int:
    """Return how many root causes have a line.

    They hold nine tenths of the bytes; with `view.is_page` they are all. There are at
    most as many as there is room for.
    """
    if view.is_page:
        return min(view.causes, len(facts.roots))
    return min(view.causes, leading(facts))


def root_lines(facts: Facts, view: View) -> Listing[Line]:
    """Return a line for each of the root causes that `shown_roots` counts.

    The detail is each target's part, if there are several, and the largest delta.
    """
    roots = facts.roots
    lines = []
    for number, root in enumerate(roots[: shown_roots(facts, view)], 1):
        detail: Phrase = ()
        if view.details:
            detail = root_details(facts, root)
        lines.append(
            Line(
                said=_root_said(facts, root=root, number=number, view=view),
                detail=detail,
                below=suspect_words(root.looked_up, root.suspects),
                address=cause_address(number),
            )
        )
    return listing(lines, len(roots), "root cause")


def cause_title(cause_text: str, cause: str | None, to: str = "") -> Phrase:
    """Return what changed, in an engineer's words.

    An example is "pass `cse` now emits 3 fewer `arith.addi` operations".

    `cause_text`: the words of the root cause; `to`: the address that the first word
    leads to.
    """
    text = clean(cause_text, _WHAT)
    if cause is None:
        return phrase(Span(f"Cause not known: {text}", "strong", to))
    title = _pass_title(text, to)
    if not title and cause == "strategy":
        title = _setting_title(text, to)
    if not title and cause == "input":
        title = _model_title(text, to)
    return title or phrase(Span(f"{text[:1].upper()}{text[1:]}", "strong", to))


def _pass_title(text: str, to: str) -> Phrase:
    """Return the words about a pass and its change; empty if the cause is no pass."""
    lead = Span("Pass", "strong", to)
    formed = _FORMS.fullmatch(text)
    if formed:
        return _spaced(lead, code(formed[1]), strong(formed[2]))
    emitted = _EMITS.fullmatch(text)
    if emitted:
        name, count, operation, way = emitted.groups()
        noun = "operations"
        if count == "1":
            noun = "operation"
        emits = strong(f"now emits {count} {way}")
        return _spaced(lead, code(name), emits, code(operation), strong(noun))
    name = text.removesuffix(f": {OTHER_TYPES}")
    if name != text:
        emits = strong("now emits operations with other types")
        return _spaced(lead, code(name), emits)
    return ()


def _setting_title(text: str, to: str) -> Phrase:
    """Return which setting of dispatches has another value; empty if none has."""
    turned = _TURNS.fullmatch(text)
    if not turned or text.startswith(OTHER_CONFIGURATION):
        return ()
    knob, values, other_knobs = turned.groups()
    if knob == "pipeline":
        return phrase(Span(f"Pipeline {values}", "strong", to), _also(other_knobs))
    noun = "Setting"
    if knob in _TILE_SIZES:
        noun = "Tile size"
    title = _spaced(Span(noun, "strong", to), code(knob), strong(values))
    return phrase(title, _also(other_knobs))


def _model_title(text: str, to: str) -> Phrase:
    """Return which model was edited; empty if none was."""
    model = text.removesuffix(" itself changed")
    if model == text:
        return ()
    return _spaced(Span("Model", "strong", to), code(model), strong("was edited"))


def _spaced(*spans: Span) -> Phrase:
    return joined([(span,) for span in spans], " ")


def _also(other_knobs: str | None) -> Phrase:
    """Return the other settings that changed in each of the dispatches.

    It is empty if there are none.
    """
    if not other_knobs:
        return ()
    names = [(code(name),) for name in other_knobs.split(", ")]
    return phrase(", with ", joined(names, ", "))


def _root_said(facts: Facts, root: RootCause, number: int, view: View) -> Phrase:
    """Return what changed, the net change, its share of the total change, and where.

    The number of dispatches is added if the cause is in one model, or if the view has
    no limits.
    """
    title = cause_title(root.what, root.cause, cause_address(number))
    models = _named(
        (clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model"
    )
    targets = _named(
        (facts.short[target] for target in root.targets), len(root.targets), "target"
    )
    counted = ""
    if root.dispatches and (view.is_page or len(root.models) == 1):
        counted = f"{plural(root.dispatches, 'dispatch')} in "
    size = signed(root.total.net_bytes)
    if abs(root.total.net_bytes) != root.total.absolute_bytes:
        size = f"{size} net"
    if root.share is not None:
        size = f"{size} ({share(root.share)})"
    traced = ""
    if _is_shared(root):
        traced = f", {root.traced[0]:,} of {plural(root.dispatches, 'dispatch')} traced"
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
    """Return the result of the experiments on a root cause.

    It is empty if the report has no experiments, or if the cause is no dispatch's code.
    """
    proofs = [cause.proof for cause in facts.report.root_causes]
    if not root.dispatches or not any(proof.members for proof in proofs):
        return ""
    passed: str | None = None
    if root.passed:
        passed = root.passed.name
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

    It is empty if everything is explained.
    """
    shares = Counter[str]()
    for root in facts.unexplained:
        reason = clean(root.what, _WHAT).removeprefix("other code; ")
        shares[reason] += root.share or 0  # type: ignore[assignment]
    total = sum(shares.values())
    if not total:
        return ""
    if len(shares) > 1:
        shares.pop(NOT_TRACED, None)  # it is less informative than the other reasons
    reasons = [reason for reason, _ in shares.most_common(_REASONS)]
    overflow = ""
    if len(shares) > _REASONS:
        overflow = f" and {plural(len(shares) - _REASONS, 'other reason')}"
    part = "less than 1 %"
    if total >= _LEAST_SHARE:
        part = share(total)
    return (
        f"Not explained: {part} of the total change ({'; '.join(reasons)}{overflow})."
    )


def _is_shared(root: RootCause) -> bool:
    """Return whether a pass was printed only for another target.

    It is so if this holds for any of the root cause's dispatches.
    """
    return (
        root.cause in EARLY_CAUSES
        and root.passed is not None
        and root.traced[0] < root.dispatches
    )


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    if count > 1:
        return phrase(plural(count, noun))
    return joined([(code(name),) for name in names], ", ")


def root_details(facts: Facts, root: RootCause) -> Phrase:
    """Return growth and shrinkage, each target's part, and the largest delta."""
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
    """Return which commits may have caused a change, never which one did.

    The titles of commits are untrusted text.
    """
    if looked_up is None:
        return ()
    files = _files(looked_up.files)
    own_files = _files(looked_up.this_pull_request)
    parts = list[Phrase]()
    if own_files:
        parts.append(phrase("this pull request changes ", own_files))
    if suspects:
        parts += _suspect_parts(looked_up, suspects, files)
    elif looked_up.commits is not None:
        touched = "no commit touched "
        if looked_up.commits:
            touched = f"{plural(looked_up.commits, 'commit')} touched "
        unsaid = ""
        if looked_up.commits and not looked_up.note:
            unsaid = ", and none mentions it"
        parts.append(phrase(touched, files, f" between the two{unsaid}"))
    if looked_up.note:
        parts.append(phrase(clean(looked_up.note)))
    return joined(parts, "; ")


def _suspect_parts(
    looked_up: LookedUp, suspects: Sequence[Suspect], files: Phrase
) -> Iterator[Phrase]:
    """Yield the first suspect with its title, and then the others."""
    links = []
    for suspect in suspects:
        links.append((code(suspect.commit[:10], suspect.url),))
    first, *further = links
    title = code(clip(clean(suspects[0].title), _TITLE))
    count = ", the only commit to "
    if looked_up.commits != 1:
        count = f", one of {looked_up.commits} commits to "
    yield phrase("suspect: ", first, " ", title, count, files)
    if further:
        yield phrase("then ", joined(further, ", "))


def _files(paths: Sequence[str]) -> Phrase:
    """Return the name of the first file, and how many more there are."""
    if not paths:
        return ()
    overflow = ""
    if paths[1:]:
        overflow = f" and {plural(len(paths) - 1, 'file')} more"
    return phrase(code(clip(paths[0].rpartition("/")[2], NAME_LIMIT)), overflow)


def _by_target(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    """Yield each target's part, largest first.

    Targets with the same part have one line: ``+1,675 B each on `cuda`, `rocm` ``.
    """
    sums = sorted(root.by_target.items(), key=lambda pair: -pair[1].absolute_bytes)
    targets_by_change: dict[tuple[int, int], list[str]] = {}
    for name, target_sum in sums:
        change = (target_sum.net_bytes, target_sum.deltas)
        targets_by_change.setdefault(change, []).append(name)
    for (net_bytes, deltas), names in targets_by_change.items():
        suffix = ""
        if len(names) > 1:
            suffix = " each"
        counted = ""
        if root.dispatches:
            counted = f" in {deltas:,}"
        where = joined([(code(facts.short[name]),) for name in names], ", ")
        yield phrase(f"{signed(net_bytes)}{suffix}{counted} on ", where)


def _example(facts: Facts, example: Example) -> Phrase:
    place: Phrase = ()
    if example.component not in ("", UNATTRIBUTED):
        place = phrase(" in ", code(clip(example.component, NAME_LIMIT)))
    model = code(clip(example.key.model, NAME_LIMIT), cell_address(example.key))
    cell = phrase(" of ", model, " on ", code(facts.short[example.key.target]))
    if not example.dispatch:
        return phrase(signed(example.change_bytes), cell)
    size = sides(example.base_bytes, example.head_bytes)
    passed = size
    if UNKNOWN in size or example.base_bytes == example.head_bytes:
        passed = signed(example.change_bytes)
    explanation = facts.report.explanations.get(example.key)
    once = ""
    if explanation and explanation.first_compiles:
        once = " (one compile of each side)"
    address = example_address(facts, example)
    return phrase(
        code(clip(example.dispatch, NAME_LIMIT), address),
        place,
        cell,
        f" {passed}{once}",
    )


def example_address(facts: Facts, example: Example) -> str:
    """Return the address of an example's dispatch.

    It is empty without a dispatch, or if the dispatch is not known to have changed.
    """
    explanation = facts.report.explanations.get(example.key)
    if not explanation:
        return ""
    for delta in explanation.dispatches:
        dispatch = delta.head or delta.base
        if delta.name == example.dispatch and dispatch:
            return dispatch_address(example.key, dispatch.executable)
    return ""
