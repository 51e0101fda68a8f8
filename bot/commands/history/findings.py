"""From the looks of a bisection to what it found: the report of its step, the causes, and what shows it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from msgspec import structs

from bot.commands.publishing import source_of
from bot.compiler.caches.cell_cache import TextStore
from bot.config.configuration import Config
from bot.core.codec.json_text import canonical
from bot.core.history.bisecting import Bisection, Bound, Found, Look, StepCause, elsewhere
from bot.core.metrics import Metric
from bot.core.values.planned import narrowed
from bot.core.values.snapshot import CellKey, Snapshot
from bot.core.values.whole_report import Baseline, Report
from bot.errors import BotError, Interrupted
from bot.insight.roots.suspects import UNFINISHED, Source, with_suspects
from bot.measurement.prepare import Request, is_snapshot
from bot.render.terminal.bisect_text import moved_words
from bot.render.text.escape import clip
from bot.render.text.filters import plural
from bot.reporting.making import reported
from bot.reporting.writing import write_report
from bot.system.files import write_atomically
from bot.system.processes import Cancel

_CAUSES = 5
_TITLE = 100
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Hunted:
    """A search that has ended.

    Attributes:
        names, specs: of all candidates, from GOOD to BAD; no specs where no command line names them.
        backward: True where GOOD is the newer end.
        looks: place → what was seen there.
        sides: the snapshots of the last good and the first bad one.
        ends: those of GOOD and BAD.
    """

    metric: Metric
    key: CellKey
    bound: Bound
    rule: str
    names: tuple[str, ...]
    specs: tuple[str, ...]
    backward: bool
    looks: Mapping[int, Look]
    found: Found
    sides: tuple[Snapshot, Snapshot]
    ends: tuple[Snapshot, Snapshot]


def found_step(hunted: Hunted, request: Request, config: Config, cancel: Cancel) -> Bisection:
    """Compare the last good with the first bad one; writes the six files and `bisect.json`."""
    key, (base, head) = hunted.key, _in_time(hunted, hunted.sides)
    sides = narrowed(
        {"base": base, "head": head}, model_globs=(key.model,), target_globs=(key.target,), must_match=False
    )
    older, _ = _in_time(hunted, (hunted.names[hunted.found.good], hunted.names[hunted.found.bad]))
    made = reported(config, sides["base"], sides["head"], Baseline(older), TextStore(request.cache).load)
    source = source_of(request, config, cancel)
    made = with_suspects(made, source) if source else made
    write_report(made, config.templates, request.out)
    told = _told(hunted, made, request)
    told = structs.replace(told, notes=(*told.notes, *_suspects(hunted, made, source))) if source else told
    write_atomically(request.out / "bisect.json", canonical(told) + b"\n")
    return told


def _in_time(hunted: Hunted, pair: tuple[_T, _T]) -> tuple[_T, _T]:
    """Of the good and the bad one, the older first."""
    return (pair[1], pair[0]) if hunted.backward else pair


def _told(hunted: Hunted, made: Report, request: Request) -> Bisection:
    good, bad = hunted.found.good, hunted.found.bad
    looks = tuple(hunted.looks[place] for place in sorted(hunted.looks))
    delta = next(one for one in made.deltas if one.key == hunted.key)
    explained = made.explanations.get(hunted.key)
    roots = sorted(made.root_causes, key=lambda root: -root.total.absolute_bytes)
    return Bisection(
        metric=hunted.metric.id,
        model=hunted.key.model,
        target=hunted.key.target,
        rule=hunted.rule,
        limit=hunted.bound.limit,
        candidates=len(hunted.names),
        looks=looks,
        last_good=hunted.names[good],
        first_bad=hunted.names[bad],
        could_be=hunted.names[good + 1 : bad + 1] if bad - good > 1 else (),
        state=delta.state,
        cause=explained.cause if explained else None,
        why=explained.why if explained else "",
        root_causes=tuple(StepCause(root.cause, root.what, root.total.net_bytes) for root in roots[:_CAUSES]),
        notes=(*_notes(hunted, looks), *made.notes),
        commands=tuple(_commands(hunted, request)),
    )


def _notes(hunted: Hunted, looks: tuple[Look, ...]) -> Iterator[str]:
    if hunted.backward:
        yield "GOOD is the newer one: the first bad one is the last in time that is bad"
    found = hunted.names[hunted.found.good], hunted.names[hunted.found.bad]
    unit = hunted.metric.unit
    moves = [moved_words(a, b, unit) for a, b in elsewhere(looks, found)]
    if moves:
        yield f"it moves elsewhere, too, as far as was looked: {', '.join(moves)}"
    known = sum(look.judged != "skipped" for look in looks) + hunted.found.bad - hunted.found.good - 1
    if unknown := len(hunted.names) - known:
        of = plural(len(hunted.names), "candidate")
        if_so = "" if moves else "where the value goes up and down, "
        yield f"nothing is known of {unknown} of {of}: {if_so}there may be other places where good turns to bad"


def _suspects(hunted: Hunted, made: Report, source: Source) -> Iterator[str]:
    """Which suspects of the whole way from GOOD to BAD lie in the step that was found, and which do not."""
    older, newer = (side.compiler.revision for side in _in_time(hunted, hunted.ends))
    step = made.base.compiler.revision, made.head.compiler.revision
    whole = with_suspects(replace(made, notes=()), source, revisions=(older, newer))
    where = f"between {hunted.names[hunted.found.good]} and {hunted.names[hunted.found.bad]}"
    files = {
        one.commit: (one.title, known.files)
        for root in whole.root_causes
        if (known := root.looked_up)
        for one in root.suspects
    }
    try:
        for sha, (title, touched) in files.items():
            inside = {one.sha for file in touched for one in source.commits(file, *step)}
            answer = "is confirmed to lie" if sha in inside else "is cleared: it does not lie"
            yield f"suspect {sha[:10]} ({clip(title, _TITLE)}) {answer} {where}"
    except Interrupted:
        raise
    except BotError as error:
        yield f"{UNFINISHED}{error.line}"
    yield from whole.notes


def _commands(hunted: Hunted, request: Request) -> Iterator[str]:
    """What makes the report of the step again, and what tells all of it."""
    places = hunted.found.good, hunted.found.bad
    named = [hunted.specs[place] for place in places] if hunted.specs else []
    base, head = _in_time(hunted, (named[0], named[1])) if named else _kept(request)
    cell = ["--model", hunted.key.model, "--target", hunted.key.target]
    config = ["--config", str(request.config or "default")]
    command = "report" if is_snapshot(base) and is_snapshot(head) else "compare"
    out = ["--out", str(request.out)]
    yield shlex.join(["code-size-bot", command, "--base", base, "--head", head, *cell, *config, *out])
    yield shlex.join(["code-size-bot", "explain", str(request.out / "report.json"), *cell])


def _kept(request: Request) -> tuple[str, str]:
    return str(request.out / "base.json"), str(request.out / "head.json")
