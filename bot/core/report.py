"""The report behind every view: two snapshots, their deltas and the verdict."""

from __future__ import annotations

from collections.abc import Mapping

from bot.core.defaults import TriedDefault
from bot.core.delta import CellDelta
from bot.core.explanation import Explanation, RootCause
from bot.core.findings import Verdict
from bot.core.flag_changes import TriedFlag
from bot.core.record import Count, Record, Small, always
from bot.core.run_times import RunTimes
from bot.core.snapshot import CellKey, ModelEdit, Snapshot


class Baseline(Record, frozen=True, omit_defaults=True):
    """How the base side was found."""

    rule: str  # in words (`--base 3.11.0`, `snapshot of the base commit`)
    sha: str | None = always(None)
    # how many commits the baseline is older than the base; None if that has no
    # meaning
    distance: Count | None = always(None)


class Adoption(Small, frozen=True):
    """A change without a base: base has no configuration or no compiler."""

    file: str  # the configuration's path in the repository; empty if it is not known
    # why base has no compiler, as a clause: its pin names a release that does not
    # exist; empty if base has no configuration
    no_compiler: str = ""


class Report(Small, frozen=True):
    """All results of one comparison."""

    base: Snapshot
    head: Snapshot
    baseline: Baseline
    deltas: tuple[CellDelta, ...]
    verdict: Verdict
    report_id: str = "default"  # names the comment that this report updates
    notes: tuple[str, ...] = ()  # what broke or was left out while the report was made
    # what the comment remembers, as a hidden line; empty if there is no comment to
    # come back to
    state_line: str = ""
    resolved: bool = False  # True if an earlier alarm of the comment is gone
    # label and URL, for the end of the comment; only https is ever drawn as a link
    links: tuple[tuple[str, str], ...] = ()
    # True if the pull request's own run measured, so that a hostile one could have
    # made up the numbers
    untrusted: bool = False
    # what broke in the analysis, in one line; empty if nothing did. The report is
    # then incomplete.
    broke: str = ""
    # why a cell changed; every cell that both sides measured and that is not the same
    # has one, unless the compiler gives other numbers each time
    explanations: Mapping[CellKey, Explanation] = {}
    root_causes: tuple[RootCause, ...] = ()
    # the models whose text changed, and those that one side alone has
    edits: tuple[ModelEdit, ...] = ()
    adoption: Adoption | None = None  # None if base has a configuration
    # flags in which the sides differ, with their experiments
    changed_flags: tuple[TriedFlag, ...] = ()
    # changed defaults of compiler options; empty if no compiler could report them
    changed_defaults: tuple[TriedDefault, ...] = ()
    # run times of the builds that fail the check; None if they were not asked for
    run_times: RunTimes | None = None
    # https address of `report.html`, so that the comment links to its cells, dispatches
    # and root causes; empty if the page is only in an artifact
    page: str = ""
