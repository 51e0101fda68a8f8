"""Find the compiler's commits that may have made a root cause.

They touched the file of its pass, or of what chooses configurations.

Such a commit is a *suspect*, never a cause: that it touched the file and speaks of what
changed proves nothing.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from bot.core.backends import backends_of
from bot.core.explanation import EARLY_CAUSES, LookedUp, PassChange, RootCause, Suspect
from bot.core.parting import IN_LLVM
from bot.core.report import Report
from bot.core.snapshot import Snapshot
from bot.errors import BotError, Interrupted
from bot.explain.clues import Clue
from bot.explain.compiler_history import Commit, CompilerHistory

LLVM = "third_party/llvm-project"
LLVM_ITSELF = "LLVM"
UNFINISHED = "the search for compiler commits stopped early: "
_MOST_CAUSES = 10
_MOST_SUSPECTS = 3
_DIFFS = (3, 40)
"""The limits of diffs that are read for one cause: in its first turn, and its second.

The likeliest commits come first.
"""
_IDLE = re.compile(
    r"\bNFCI?\b|clang-format|\breformat|^(?:\[[^\]]*\] *)*(?:rename|typo|format)\b",
    re.IGNORECASE,
)
_SHA = re.compile("[0-9a-f]{40}")
_AGAIN = re.compile(r'^(revert|reapply|reland|roll ?back)\b[^"]*"(.*)"', re.IGNORECASE)
Answer = tuple[LookedUp | None, tuple[Suspect, ...]]
Wanted = Callable[[RootCause], bool]


def every_cause(_root: RootCause) -> bool:
    """Ask for suspects of every root cause that names a pass or a knob."""
    return True


def with_suspects(
    report: Report,
    source: CompilerHistory,
    touched: Collection[str] = (),
    *,
    is_wanted: Wanted = every_cause,
) -> Report:
    """Return the report, its largest root causes with suspects.

    Args:
        touched: paths of the compiler that a pull request has.
        is_wanted: which root causes get suspects, such as only proved ones.
    """
    backends = backends_of(report.base.targets, report.head.targets)
    clues = dict[int, Clue]()
    for place, root in enumerate(report.root_causes):
        if len(clues) >= _MOST_CAUSES:
            break
        passed = _pass_of(root)
        if (passed or root.cause == "strategy") and is_wanted(root):
            clues[place] = Clue(
                passed=passed,
                knob=root.what,
                targets=root.targets,
                backends={backends.get(target, "") for target in root.targets},
                dispatch=root.example.dispatch,
            )
    answers, reason = looked_up(
        [*clues.values()],
        sides=(report.base, report.head),
        source=source,
        touched=touched,
    )
    roots = list(report.root_causes)
    for place, (answer, suspects) in zip(clues, answers, strict=True):
        roots[place] = replace(roots[place], looked_up=answer, suspects=suspects)
    notes = report.notes
    if reason:
        notes = (*notes, f"{UNFINISHED}{reason}")
    return replace(report, root_causes=tuple(roots), notes=notes)


def _pass_of(root: RootCause) -> PassChange | None:
    """Return the pass that a root cause names.

    Return LLVM as a whole if the sides differ in it, and no pass is named.
    """
    if root.passed is not None and (
        root.cause == "codegen" or root.cause in EARLY_CAUSES
    ):
        return root.passed
    is_in_llvm = root.cause == "codegen" and IN_LLVM in root.what
    if is_in_llvm:
        return PassChange(LLVM_ITSELF, {})
    return None


class _FileHistory(NamedTuple):
    """The files of one clue, and the commits that touched them."""

    files: tuple[str, ...]
    # SHA → commit, of those that touched the files, the newest first
    commits: Mapping[str, Commit]
    note: str


def looked_up(
    clues: Sequence[Clue],
    sides: tuple[Snapshot, Snapshot],
    source: CompilerHistory,
    touched: Collection[str] = (),
) -> tuple[list[Answer], str]:
    """Return the answer for each clue, and why no more is known.

    Nothing is looked up if both compilers are of one revision.
    """
    base, head = (side.compiler.revision for side in sides)
    touched_files = [clue.files(touched) for clue in clues]
    answers = list[Answer]()
    for files in touched_files:
        answer = LookedUp(files, this_pull_request=files) if files else None
        answers.append((answer, ()))
    if not clues or (base == head and base):
        return answers, ""
    reason = _unnamed_revision(base, head)
    if reason:
        return answers, reason
    diffs = dict[str, str]()
    histories = dict[int, _FileHistory]()
    try:
        _read_histories(
            clues,
            source=source,
            revisions=(base, head),
            histories=histories,
            diffs=diffs,
        )
    except Interrupted:
        raise
    except BotError as error:
        reason = error.line
    for place, history in histories.items():
        answer = _answer(history, touched_files[place], diffs)
        suspects = _suspects(
            clues[place],
            commits=[*history.commits.values()],
            diffs=diffs,
            address=source.address,
        )
        answers[place] = (answer, suspects)
    return answers, reason


def _read_histories(
    clues: Sequence[Clue],
    source: CompilerHistory,
    revisions: tuple[str, str],
    histories: dict[int, _FileHistory],
    diffs: dict[str, str],
) -> None:
    """Ask the compiler's history for each clue, and read the likeliest diffs.

    The likeliest diffs of every clue come before the further ones of any.

    Args:
        revisions: base's and head's.
        histories: gets the history by the place of a clue.
        diffs: gets the diffs by SHA. Both keep what was read before an error.
    """
    base, head = revisions
    listed = lru_cache(None)(lambda file: source.commits(file, base, head))
    paths = source.paths(head)
    for limit in _DIFFS:
        for place, clue in enumerate(clues):
            if place not in histories:
                histories[place] = _file_history(
                    clue, source=source, paths=paths, base=base, listed=listed
                )
            likely = _likely(clue, histories[place].commits.values())
            for commit in likely[:limit]:
                if commit.sha not in diffs:
                    diffs[commit.sha] = source.diff(commit.sha)


def _unnamed_revision(base: str, head: str) -> str:
    """Return which compiler does not name its source commit; empty if both do."""
    for side, revision in (("base", base), ("head", head)):
        if not _SHA.fullmatch(revision):
            return (
                f"the {side} compiler does not name its source commit (revision:"
                f" {revision[:60]!r})"
            )
    return ""


def _answer(
    history: _FileHistory, touched: tuple[str, ...], diffs: Mapping[str, str]
) -> LookedUp:
    """Return the answer that a report shows about a clue's files.

    Args:
        history: what the compiler's history has for the clue.
        touched: the files that the pull request changes.
        diffs: SHA → diff, of the commits whose diff was read.
    """
    note = history.note
    if unread := len(history.commits.keys() - diffs.keys()):
        note = f"the bot read only the messages of {unread} of these commits, not their diffs"
    return LookedUp(
        files=history.files,
        commits=len(history.commits) if history.files else None,
        note=note,
        this_pull_request=touched,
    )


def _file_history(
    clue: Clue,
    source: CompilerHistory,
    paths: Mapping[str, str],
    base: str,
    listed: Callable[[str], Sequence[Commit]],
) -> _FileHistory:
    """Look up the files of a clue, and the commits that touched them."""
    files = clue.files(paths)
    commits = {}
    of_each_file = map(listed, files)
    for commit in heapq.merge(
        *of_each_file, key=lambda commit: commit.date, reverse=True
    ):
        commits[commit.sha] = commit
    note = ""
    if not files:
        note = _without_file(clue, source=source, paths=paths, base=base)
    return _FileHistory(files, commits, note)


def _likely(clue: Clue, commits: Iterable[Commit]) -> list[Commit]:
    """Return commits by the words of their messages; commits without code come last."""
    ranked = sorted(commits, key=lambda commit: -clue.score([commit], {})[0])
    return sorted(ranked, key=lambda commit: bool(_IDLE.search(commit.title)))


def _without_file(
    clue: Clue, source: CompilerHistory, paths: Mapping[str, str], base: str
) -> str:
    """Return why no file was found for a pass or a knob.

    A pass may be outside the compiler's own repository, or have another name than its
    file.
    """
    if clue.passed is None or (
        clue.passed.class_name and clue.passed.name.startswith("iree-")
    ):
        return (
            "the bot found no file with"
            f" {clue.passed.class_name if clue.passed else 'the choice of this knob'}"
        )
    base_revision = source.paths(base).get(LLVM, "")
    head_revision = paths.get(LLVM, "")
    if clue.passed.name == LLVM_ITSELF:
        subject = "LLVM"
    else:
        subject = "a pass of LLVM"
    if base_revision and base_revision == head_revision:
        return (
            f"{subject}, whose revision {base_revision[:10]} is the same on both sides"
        )
    return f"{subject}, {base_revision[:10] or 'unknown'} → {head_revision[:10] or 'unknown'}"


def _suspects(
    clue: Clue, commits: Sequence[Commit], diffs: Mapping[str, str], address: str
) -> tuple[Suspect, ...]:
    """Return the likeliest commits: those that speak of most, then the newest.

    A commit that changes no code comes last. One that was taken back is left out.
    """
    groups: dict[str, list[Commit]] = {}
    for commit in commits:
        groups.setdefault(_subject(commit), []).append(commit)
    scored = []
    for group in groups.values():
        score, reason, is_own = clue.score(group, diffs)
        is_idle = all(_IDLE.search(commit.title) for commit in group)
        scored.append((is_idle, -score, reason, is_own, group))
    scored.sort(key=lambda row: row[:2])
    suspects = list[Suspect]()
    for _, _, reason, is_own, (newest, *older) in scored:
        is_undone = older and _is_revert(newest.title)
        if not is_own or is_undone or len(suspects) >= _MOST_SUSPECTS:
            continue
        if older:
            shas = ", ".join(commit.sha[:10] for commit in older)
            reason = f"{reason}; together with {shas}"
        suspects.append(
            Suspect(
                commit=newest.sha,
                title=newest.title,
                date=newest.date[:10],
                url=f"{address}/commit/{newest.sha}" if address else "",
                why=reason,
            )
        )
    return tuple(suspects)


def _is_revert(title: str) -> bool:
    """Return whether a title takes its subject back; a revert of a revert does not."""
    is_revert = False
    while again := _AGAIN.match(title):
        if again[1].lower().startswith(("revert", "roll")):
            is_revert = not is_revert
        title = again[2]
    return is_revert


def _subject(commit: Commit) -> str:
    """Return a commit's title without a number, and without `Revert` or `Reland`."""
    subject = commit.title
    while again := _AGAIN.match(subject):
        subject = again[2]
    return re.sub(r"\s*\(#\d+\)", "", subject).strip().casefold()
