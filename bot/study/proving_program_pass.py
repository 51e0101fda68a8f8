"""Find the pass of one phase that forms other dispatch regions.

Base's passes run first, and head's passes run on their result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial

from bot.core.program_proof import (
    BASE_ONLY,
    BOTH,
    HEAD_ONLY,
    ProgramPassProof,
    RunsOn,
    regions_status,
)
from bot.core.proof import PROVED, REFUTED
from bot.readers.flow_regions import distance, regions_of
from bot.readers.pass_runs import PassRun
from bot.study.program_side import NoText, ProgramSide, phase_before, read_generic

_MOST_CANDIDATES = 6
_MOST_RUNS = 12
"""If a pass runs more often (`cse`), only its found run is as base has it."""


@dataclass(frozen=True, slots=True)
class PhaseCut:
    """The phase that forms the regions.

    `before`, `after`: how far the regions are from base's, with base's IR before the
    phase and after it.
    """

    phase: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class FoundPass:
    """A pass that forms the regions, and what its experiment leaves."""

    proof: ProgramPassProof
    flow: (
        str  # head's program at `flow` with base's pass; empty if that does not compile
    )
    # digests of the regions that are as often there as on base, and were not before
    restored: frozenset[str]


@dataclass(frozen=True, slots=True)
class Programs:
    """The program on both sides, and what an experiment has to bring back."""

    base: ProgramSide
    head: ProgramSide
    wanted: Mapping[str, int]  # base's regions, as head's compiler prints them
    regions: int  # how many regions one side alone has

    def fed(self, text: str, phase: str) -> str:
        """Return the IR at `flow` of base's IR in head's compiler."""
        try:
            return self.head.flow_from(text, phase)
        except NoText as stopped:
            try:
                return read_generic(
                    partial(self.head.flow_from, phase=phase), self.base.generic(text)
                )
            except NoText:
                raise stopped from None

    def distance_fed(self, text: str, phase: str) -> int:
        """Return how far from base's regions base's IR comes in head's compiler."""
        return self.distance_at_flow(self.fed(text, phase))

    def restored(self, before: str, after: str) -> frozenset[str]:
        """Return the regions whose count an experiment makes equal to base's.

        Before the experiment, the program had another number of them.
        """
        first = regions_of(before)
        second = regions_of(after)
        digests = first.keys() | second.keys() | self.wanted.keys()

        def is_back(digest: str) -> bool:
            count = self.wanted.get(digest, 0)
            return second.get(digest, 0) == count and first.get(digest, 0) != count

        return frozenset(filter(is_back, digests))

    def distance_at_flow(self, flow: str) -> int:
        """Return how far from base's regions a program is."""
        return distance(regions_of(flow), self.wanted)


@dataclass(frozen=True, slots=True)
class _Step:
    """One run of a pass, by the compiler of one side."""

    side: ProgramSide
    run: PassRun


@dataclass(frozen=True, slots=True)
class _Place:
    """One place in the passes of both sides: a pass of both, or of one side alone."""

    base: PassRun | None
    head: PassRun | None

    @property
    def name(self) -> str:
        """Return the name of the pass."""
        run = self.head or self.base
        if run:
            return run.name
        return ""

    @property
    def class_name(self) -> str:
        """Return the class that implements the pass."""
        run = self.head or self.base
        if run:
            return run.class_name
        return ""

    @property
    def runs_on(self) -> RunsOn:
        """Return the sides that run the pass."""
        if self.base is None:
            return HEAD_ONLY
        if self.head is None:
            return BASE_ONLY
        return BOTH

    @property
    def is_suspicious(self) -> bool:
        """Return whether only one side runs it, or the sides' options for it differ."""
        if self.base is None or self.head is None:
            return True
        return self.base.options != self.head.options


def proved_pass(programs: Programs, cut: PhaseCut) -> FoundPass:
    """Return the pass that forms the regions; raises NoText if no experiment names one.

    Passes that only one side runs, or runs with other options, are tried first. Then
    base's passes run up to a place, and head's after it. Bisection finds the place
    where base's regions appear.
    """
    phase = _Phase(programs, cut)
    phase.require_own_regions()
    best: FoundPass | None = None
    tried = dict[str, FoundPass | None]()
    for place in phase.suspicious():
        found_pass = phase.tried_in_head(place)
        tried[place.name] = found_pass
        if found_pass is not None and found_pass.proof.status == PROVED:
            return found_pass
        best = _better(best, found_pass)
    try:
        best = _better(best, phase.found_by_halves(tried))
    except NoText:
        if best is None:
            raise
    if best is None:
        raise NoText(f"no single pass of {cut.phase} forms them")
    return best


def _better(first: FoundPass | None, second: FoundPass | None) -> FoundPass | None:
    """Return the proof that restores more regions; None if neither restores one."""
    candidates = []
    for item in (first, second):
        if item is not None and item.proof.status != REFUTED:
            candidates.append(item)
    return max(candidates, key=lambda item: item.proof.restored_regions, default=None)


class _Phase:
    """The passes of one phase on both sides, side by side."""

    def __init__(self, programs: Programs, cut: PhaseCut) -> None:
        self._programs, self._cut = programs, cut
        self._base, self._head = programs.base, programs.head
        before = phase_before(cut.phase)
        self._base_start, self._head_start = (
            self._base.at(before),
            self._head.at(before),
        )
        pairs = _paired(
            self._base.passes_of(cut.phase), self._head.passes_of(cut.phase)
        )
        self._places = self._with_options(list(pairs))
        # Head's program at `flow`, and how far it is from base's regions.
        self._own_flow = self._head.flow_from(self._head.at(cut.phase), cut.phase)
        self._own = programs.distance_at_flow(self._own_flow)

    def require_own_regions(self) -> None:
        """Check that head's passes form head's own regions if they run one by one.

        Raises:
            NoText: they form other regions than head's compiler does.
        """
        phase = self._cut.phase
        again = self._flow_after(self._head_start, self._head_steps(self._places))
        if regions_of(again) != regions_of(self._own_flow):
            raise NoText(
                f"head's passes of {phase}, run one by one, form other regions than its"
                " compiler does"
            )

    def _with_options(self, places: Sequence[_Place]) -> list[_Place]:
        """Copy the options of passes to a side whose compiler prints none.

        Defaults of passes are not the compiler's values. So a pass that gets no options
        is left out if it changes nothing in this program.
        """
        runs = {
            self._base: [place.base for place in places if place.base is not None],
            self._head: [place.head for place in places if place.head is not None],
        }
        silent = list[ProgramSide]()
        for side, side_runs in runs.items():
            if not any(run.options for run in side_runs):
                silent.append(side)
        if len(silent) != 1:
            return list(places)
        changing_runs = silent[0].passes_of(self._cut.phase, only_changing=True)
        changing = {run.name for run in changing_runs}
        kept_places = list[_Place]()
        for place in places:
            if silent[0] is self._base:
                silent_run = place.base
            else:
                silent_run = place.head
            is_lone = place.runs_on != BOTH and silent_run is not None
            if not is_lone:
                kept_places.append(_lent(place))
            elif place.name in changing:
                kept_places.append(place)
        return kept_places

    def suspicious(self) -> list[_Place]:
        """Return the first run of each pass that may well form other regions."""
        places_by_name = dict[str, _Place]()
        for place in self._places:
            if place.is_suspicious:
                places_by_name.setdefault(place.name, place)
        return list(places_by_name.values())[:_MOST_CANDIDATES]

    def tried_in_head(self, place: _Place) -> FoundPass | None:
        """Run head's passes with one pass as base has it; None if that fails."""
        try:
            flow = self._flow_after(self._head_start, self._steps_with_base(place))
        except NoText:
            return None
        restored = self._own - self._programs.distance_at_flow(flow)
        return FoundPass(
            self._proof(place, restored),
            flow,
            self._programs.restored(self._own_flow, flow),
        )

    def _proof(
        self, place: _Place, restored_regions: int, reason: str = ""
    ) -> ProgramPassProof:
        restored_regions = min(restored_regions, self._programs.regions)
        runs_on = {run.runs_on for run in self._runs_of(place)}
        return ProgramPassProof(
            name=place.name,
            class_name=place.class_name,
            runs_on=runs_on.pop() if len(runs_on) == 1 else BOTH,
            status=regions_status(restored_regions, self._programs.regions),
            restored_regions=restored_regions,
            why=reason,
        )

    def _runs_of(self, place: _Place) -> list[_Place]:
        """Return all places of the pass at this place."""
        return [run for run in self._places if run.name == place.name]

    def _steps_with_base(self, place: _Place) -> list[_Step]:
        """Return head's steps, in which all runs of one pass are base's."""
        same = self._runs_of(place)
        meant = same if len(same) <= _MOST_RUNS else [place]
        steps = list[_Step]()
        for other_place in self._places:
            is_meant = any(other_place is run for run in meant)
            if is_meant and other_place.base is not None:
                steps.append(_Step(self._base, other_place.base))
            elif not is_meant and other_place.head is not None:
                steps.append(_Step(self._head, other_place.head))
        return steps

    def found_by_halves(self, tried: Mapping[str, FoundPass | None]) -> FoundPass:
        """Return the pass at which base's regions come.

        Args:
            tried: pass → the result in head alone, None if that failed; of passes that
                were tried already.
        """
        cut = self._cut
        low = 0
        high = len(self._places)
        flows = {cut_place: self._flow_cut(cut_place) for cut_place in (low, high)}
        differences = {}
        for cut_place, flow in flows.items():
            differences[cut_place] = self._programs.distance_at_flow(flow)
        if differences != {low: cut.before, high: cut.after}:
            description = (
                f"base's passes of {cut.phase}, run one by one, form other regions than"
                " its compiler does"
            )
            raise NoText(description)
        while high - low > 1:
            middle = (low + high) // 2
            flows[middle] = self._flow_cut(middle)
            differences[middle] = self._programs.distance_at_flow(flows[middle])
            if 2 * differences[middle] <= cut.before + cut.after:
                high = middle
            else:
                low = middle
        place = self._places[high - 1]
        restored = differences[low] - differences[high]
        if place.name in tried:
            in_head = tried[place.name]
        else:
            in_head = self.tried_in_head(place)
        if in_head is not None and in_head.proof.restored_regions >= restored:
            return in_head
        reason = "head with base's pass alone does not compile"
        if in_head is not None:
            count = max(0, in_head.proof.restored_regions)
            reason = f"head with base's pass alone has {count:,} of base's regions"
        return FoundPass(
            self._proof(place, restored, reason),
            "",
            self._programs.restored(flows[low], flows[high]),
        )

    def _flow_cut(self, place: int) -> str:
        """Return the program at `flow`: base's passes up to a place, then head's."""
        steps = [
            *self._base_steps(self._places[:place]),
            *self._head_steps(self._places[place:]),
        ]
        return self._flow_after(self._base_start, steps)

    def _head_steps(self, places: Sequence[_Place]) -> list[_Step]:
        steps = []
        for place in places:
            if place.head is not None:
                steps.append(_Step(self._head, place.head))
        return steps

    def _base_steps(self, places: Sequence[_Place]) -> list[_Step]:
        steps = []
        for place in places:
            if place.base is not None:
                steps.append(_Step(self._base, place.base))
        return steps

    def _flow_after(self, text: str, steps: Sequence[_Step]) -> str:
        """Run steps over a program, and then head's compiler from the phase's end."""
        before: ProgramSide | None = None
        for side, runs in _by_side(steps):
            text = self._handed(text, before=before, side=side, runs=runs)
            before = side
        if before is self._base and self._base is not self._head:
            return self._programs.fed(text, self._cut.phase)
        return self._head.flow_from(text, self._cut.phase)

    def _handed(
        self,
        text: str,
        before: ProgramSide | None,
        side: ProgramSide,
        runs: Sequence[PassRun],
    ) -> str:
        """Run passes of one side over the other's IR, as is or in the generic form."""
        try:
            return side.run_passes(text, runs)
        except NoText:
            # The text at the start is base's if no pass ran over it.
            writer = before or (self._base if text == self._base_start else self._head)
            if writer is side:
                raise
            return read_generic(
                partial(side.run_passes, runs=runs), writer.generic(text)
            )


def _by_side(steps: Sequence[_Step]) -> Iterator[tuple[ProgramSide, list[PassRun]]]:
    """Yield the runs of one side that follow each other."""
    place = 0
    while place < len(steps):
        side = steps[place].side
        runs = list[PassRun]()
        while place < len(steps) and steps[place].side is side:
            runs.append(steps[place].run)
            place += 1
        yield side, runs


def _lent(place: _Place) -> _Place:
    """Give both runs of a pass the options that one of them has."""
    base = place.base
    head = place.head
    if base is None or head is None:
        return place
    options = base.options or head.options
    return _Place(replace(base, options=options), replace(head, options=options))


def _paired(base: Sequence[PassRun], head: Sequence[PassRun]) -> Iterator[_Place]:
    """Yield the passes side by side, by their names and what they run in."""
    base_runs = [(run.anchors, run.name) for run in base]
    head_runs = [(run.anchors, run.name) for run in head]
    for kind, i, i_end, j, j_end in SequenceMatcher(
        None, base_runs, head_runs, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            for before, after in zip(base[i:i_end], head[j:j_end], strict=True):
                yield _Place(before, after)
        else:
            for run in base[i:i_end]:
                yield _Place(run, None)
            for run in head[j:j_end]:
                yield _Place(None, run)
