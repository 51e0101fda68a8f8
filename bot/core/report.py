"""A report: two snapshots, their deltas and the verdict; what every view is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.core.delta import CellDelta
from bot.core.explanation import Explanation, RootCause, Step
from bot.core.policy import Rule, Verdict
from bot.core.record import Count, Record, always
from bot.core.snapshot import CellKey, ModelEdit, Overview, Snapshot

REPORT_SCHEMA = "code-size-report/1"

ONCE = "alarms that rest on a single compile of the head: "
"""What the note begins with that names them; each alarm's own line says so, too."""


class Touched(Record, frozen=True):
    """A folder at the top of a repository (empty: the top itself), and how many files below it are not the same."""

    folder: str
    files: Count


class Between(Record, frozen=True):
    """What lies between the commit of a baseline and the base that it stands for, whose compiler nobody knows.

    Attributes:
        more: how many other folders there are.
        files: how many files are not the same, in all.
        sources: how many of these are source of the compiler.
    """

    folders: tuple[Touched, ...]
    more: Count
    files: Count
    sources: Count


class Baseline(Record, frozen=True, omit_defaults=True):
    """How the base side was found.

    Attributes:
        rule: in words (`--base 3.11.0`, `snapshot of the base commit`).
        distance: how many commits the baseline is older than the base; None where that has no meaning.
        between: what lies between the two; None where the baseline is known to be what the base gives.
    """

    rule: str
    sha: str | None = always(None)
    distance: Count | None = always(None)
    between: Between | None = None


@dataclass(frozen=True, slots=True)
class Adoption:
    """That the change under review brings the configuration, which base has not.

    Attributes:
        file: the configuration's path in the repository; empty where it is not known.
        rules: the thresholds that are in force from now on; empty where they are not known.
        always: True where every pull request gets a comment.
    """

    file: str
    rules: tuple[Rule, ...] = ()
    always: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Everything there is to say about one comparison.

    Attributes:
        report_id: names the comment that this report updates.
        notes: what broke or was left out while the report was made.
        state_line: what the comment remembers, as a hidden line; empty where there is no comment to come back to.
        resolved: True where an earlier alarm of the comment is gone.
        links: label and URL, for the end of the comment; only https is ever drawn as a link.
        untrusted: True where the pull request's own run measured, so that a hostile one could have made up the numbers.
        broke: what broke in the analysis, in one line; empty where nothing did. The report is then incomplete.
        explanations: why a cell changed; every cell that both sides measured and that is not the same has one, unless
            the compiler gives other numbers each time.
        edits: the models whose text changed, and those that one side alone has.
        pin: True where it is asked what another release of the compiler does: root causes come first.
        steps: the way from base to head over releases between them, in order; empty where none was measured.
        adoption: None where base has a configuration.
        page: where `report.html` can be read, an https address, so that the comment links to its cells, dispatches and
            root causes; empty where it is nowhere but in an artifact.
    """

    base: Snapshot
    head: Snapshot
    baseline: Baseline
    deltas: tuple[CellDelta, ...]
    verdict: Verdict
    report_id: str = "default"
    notes: tuple[str, ...] = ()
    state_line: str = ""
    resolved: bool = False
    links: tuple[tuple[str, str], ...] = ()
    untrusted: bool = False
    broke: str = ""
    explanations: Mapping[CellKey, Explanation] = field(default_factory=dict)
    overview: Overview = field(default_factory=Overview)
    root_causes: tuple[RootCause, ...] = ()
    edits: tuple[ModelEdit, ...] = ()
    pin: bool = False
    steps: tuple[Step, ...] = ()
    adoption: Adoption | None = None
    page: str = ""
