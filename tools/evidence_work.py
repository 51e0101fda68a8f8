"""Share what all parts of docs/evidence.md need: compilers, suite, cache and folder.

The folder outlives an interruption. Everything that is measured goes through the cache
of cells, so that a part that was interrupted goes on from there.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from places import ROOT

from bot.compiler.toolchain import resolve
from bot.system.cancel import Cancel
from bot.system.defaults import cores, default_cache

SUITES = {
    "quick": ROOT / "configs" / "quick.yml",
    "full": ROOT / "configs" / "default.yml",
}
RELEASES = ("3.8.0", "3.9.0", "3.10.0", "3.11.0", "3.12.0", "3.13.0")
# What most parts compare; a part that needs one compiler alone takes the second
PAIR = (
    "3.11.0",
    "3.13.0",
)
ANSWERED = (0, 1)
CACHE_LIMIT = "50GiB"
"""A part must not lose its own cells while it runs.

The next ordinary run prunes the cache to the usual limit.
"""


@dataclass(frozen=True)
class Section:
    """The lines of a part, in Markdown, and whether all of it is as it should be."""

    lines: Sequence[str]
    sound: bool = True


@dataclass(frozen=True)
class Machine:
    """A machine as a process sees it; None is this one's own."""

    processors: int | None = None  # how many it may use
    memory_bytes: int | None = None  # of address space, for each process

    def enter(self) -> None:
        """Limit this process, and what it starts, to what that machine has."""
        if self.processors is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.processors])
        if self.memory_bytes is not None:
            resource.setrlimit(
                resource.RLIMIT_AS, (self.memory_bytes, self.memory_bytes)
            )


@dataclass(frozen=True)
class Work:
    """What was asked for, and where the work is done."""

    suite: str  # its name in the page: `full`, `quick`, or a configuration's file name
    config: Path
    selectors: tuple[str, ...]  # `--model` and `--target` with their globs
    releases: tuple[str, ...]
    cache: Path
    home: Path  # a directory for each part, which stays until the part is done
    jobs: int

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the selectors that a part with models of its own keeps."""
        return tuple(word for word in self.selectors if word.startswith("--target="))

    def say(self, line: str) -> None:
        """Show progress."""
        print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)

    def folder(self, *names: str) -> Path:
        """Return a directory for this name, made if it is not there."""
        path = self.home.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def done(self, part: str) -> None:
        """Forget what a part had to keep."""
        shutil.rmtree(self.home / part, ignore_errors=True)

    def binary(self, release: str) -> Path:
        """Return the native compiler of a release, fetched if it is not here."""
        return _binary(release, self.cache)

    def empty_cache(self, home: Path) -> Path:
        """Return a cache without cells that shares the compilers."""
        cache = home / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        if not (cache / "toolchains").is_symlink():
            (cache / "toolchains").symlink_to(self.cache / "toolchains")
        return cache

    def program(
        self,
        words: Sequence[str],
        cwd: Path,
        cache: Path | None = None,
        machine: Machine | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start the program as a process of its own.

        Its configuration is the one among the words, else this suite's.
        """
        has_own = any(word.partition("=")[0].endswith("-config") for word in words)
        chosen = [] if has_own else ["--config", str(self.config)]
        cache_options = [
            "--cache",
            str(cache or self.cache),
            "--cache-limit",
            CACHE_LIMIT,
        ]
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bot",
                words[0],
                "--quiet",
                *words[1:],
                *chosen,
                *self.selectors,
                *cache_options,
            ],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            preexec_fn=machine.enter if machine else None,
        )

    def compared(self, out: Path, *words: str) -> Path:
        """Compare, and return the directory of the report.

        Raises ValueError if there is no verdict.
        """
        command = ["compare", "--jobs", str(self.jobs), "--out", str(out), *words]
        self.say(shlex.join(command[:1] + list(words)))
        require(self.program(command, out.parent), command)
        return out


@lru_cache
def _binary(release: str, cache: Path) -> Path:
    return resolve(
        release, cache, Cancel(), lambda line: print(line, file=sys.stderr)
    ).binary


def require(process: subprocess.Popen[bytes], words: Sequence[str]) -> None:
    """Wait for the program; raises ValueError if it had no answer."""
    if (code := process.wait()) not in ANSWERED:
        raise ValueError(
            f"code-size-bot {shlex.join(words[:1])} ended with exit code {code}: its"
            " message is above"
        )


def home_of(command: str, *candidates: Path) -> Path:
    """Return the directory that the path in a printed command is relative to.

    Raises ValueError if none has that file.
    """
    model = shlex.split(command.rpartition(" < ")[2])[0]
    for home in (*candidates, ROOT):
        if (home / model).is_file():
            return home
    raise ValueError(f"{model} is in none of the directories that were compared")


def plain(text: str) -> str:
    """Return text as a cell of a Markdown table shows it."""
    line = " ".join(text.split())
    for letter, escaped in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("`", "'")):
        line = line.replace(letter, escaped)
    return line


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every part has."""
    parser.add_argument(
        "--suite",
        choices=sorted(SUITES),
        default="full",
        help="which models (default: %(default)s)",
    )
    parser.add_argument(
        "--config", type=Path, help="a configuration in place of a suite"
    )
    parser.add_argument(
        "--releases",
        default=",".join(RELEASES),
        help="oldest first (default: %(default)s)",
    )
    parser.add_argument("--model", action="append", default=[], metavar="GLOB")
    parser.add_argument("--target", action="append", default=[], metavar="GLOB")
    parser.add_argument(
        "--jobs",
        type=int,
        default=cores(),
        help="compiles side by side (default: %(default)s)",
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), metavar="DIR")
    about = (
        "where a part keeps what an interrupted run goes on with (default: %(default)s)"
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=default_cache() / "evidence",
        metavar="DIR",
        help=about,
    )


def work_of(given: argparse.Namespace) -> Work:
    """Return the work that these options ask for."""
    config = (given.config or SUITES[given.suite]).resolve()
    selectors = [
        f"--{name}={glob}"
        for name in ("model", "target")
        for glob in getattr(given, name)
    ]
    releases = tuple(filter(None, given.releases.replace(",", " ").split()))
    if len(releases) < 2:
        raise SystemExit(
            "--releases: name two or more, such as --releases 3.12.0,3.13.0"
        )
    suite = given.config.name if given.config else given.suite
    home = given.work.resolve()
    return Work(
        suite=suite,
        config=config,
        selectors=tuple(selectors),
        releases=releases,
        cache=given.cache.resolve(),
        home=home,
        jobs=given.jobs,
    )


def alone(section: Callable[[Work], Section], about: str | None) -> int:
    """Run one part from its command line; its section goes to standard output."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    finished = section(work_of(parser.parse_args()))
    print("\n".join(finished.lines))
    return 0 if finished.sound else 1
