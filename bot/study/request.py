"""What a command or an event asks for, and where its user sees the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bot.core.report import Report
from bot.study.resources import Progress


class Show(Protocol):
    """The user's display during a run."""

    def say(self, line: str) -> None:
        """Print one line of news."""

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """Show the finished report, and the files it was written to."""

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Yield the display of long work."""


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a command or an event, as a value."""

    # side, or `both` → SPEC; a side that is not named comes from the configuration
    specs: dict[str, str] = field(default_factory=dict)
    config: Path | None = None
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # for every cell, beside the configuration's
    jobs: int = 1
    cache: Path = Path(".cache")
    out: Path = Path("out")
    shard: tuple[int, int] = (1, 1)  # (index from 1, count) of the part to measure
    # the text that `plan --shards` printed; without it cells are spread by size
    plan: str | None = None
    tried: tuple[str, ...] = ()  # flags for the cells of the head side alone
    # side → a configuration of its own, in place of `config`; None is the packaged one
    configs: Mapping[str, Path | None] = field(default_factory=dict)
    # `latest` or `nightly` → the release that it is for all runners of a plan
    releases: Mapping[str, str] = field(default_factory=dict)
    suspects: bool = False  # whether the compiler's commits are looked up on GitHub
    # a clone of the compiler's repository in which they are looked up instead, if any
    source: Path | None = None
    # what is closed when the command ends
    closing: ExitStack = field(default_factory=ExitStack)
