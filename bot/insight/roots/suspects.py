"""From a root cause to the commits of the compiler that may have made it.

They are those that touched the file of the pass, or of what chooses the configuration, between the two compilers. A
commit is a *suspect*, never a cause: that it touched the file and speaks of what changed proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from bot.core.record import Record
from bot.core.values.explanation import PassChange
from bot.core.values.root_cause import RootCause, Suspect, Suspicion
from bot.core.values.whole_report import Report
from bot.errors import BotError
from bot.insight.roots.knobs import PIPELINE, turned

MOST_CAUSES, MOST_SUSPECTS = 10, 3
_MOST_DIFFS = 40
"""Commits of one root cause whose diffs are read, those first whose messages say most."""
_SHA = re.compile(r"[0-9a-f]{40}")
LLVM = "third_party/llvm-project"
_FOLDERS = {
    "llvm-cpu": "LLVMCPU", "vmvx": "VMVX", "cuda": "LLVMGPU", "rocm": "LLVMGPU", "vulkan-spirv": "SPIRV",
    "metal-spirv": "SPIRV",
}  # fmt: skip
"""Backend → the folder of its code generation in `compiler/src/iree/compiler/Codegen`."""
_CHOICES = {
    "LLVMCPU": ("LLVMCPU/KernelDispatch.cpp",),
    "VMVX": ("VMVX/KernelDispatch.cpp",),
    "LLVMGPU": ("LLVMGPU/KernelConfig.cpp", "GPU/TargetUtils/ConfigUtils.cpp", "TargetUtils/ReductionConfigUtils.cpp"),
    "SPIRV": ("SPIRV/KernelConfig.cpp",),
}
"""Folder → the ends of the files that choose configurations for it, as 3.5.0 to 3.13.0 have them."""
_NAMES = {
    "x86_64": "x86|avx", "aarch64": "aarch64|neon|\\bsve\\b|\\bsme\\b", "riscv64": "risc-?v|\\brvv\\b",
    "cuda": "cuda|nvidia|nvgpu|nvptx", "rocm": "rocm|amdgpu|rocdl|gfx\\d|\\bcdna", "vulkan": "vulkan|spir-?v",
    "metal": "metal\\b|apple", "vmvx": "vmvx",
}  # fmt: skip
"""End or beginning of a target's name → what commits call it."""
_KINDS = ("matmul", "conv", "reduction", "softmax", "attention", "elementwise", "transpose", "unpack", "pack", "fft")
_IDLE = re.compile(r"\bNFCI?\b|clang-format|\breformat|^(?:\[[^\]]*\] *)*(?:rename|typo|format)\b", re.IGNORECASE)
_AGAIN = re.compile(r'^(revert|reapply|reland|re-land|roll ?back)\b[^"“]*["“](.*)["”]', re.IGNORECASE)
_NUMBER = re.compile(r"\s*\(#\d+\)")


_OWN = 2
_TURN = 20
"""What it counts that a diff has the very change of a value: a test of the compiler expects it now."""
_UNIQUE = 9
"""A part of an operation's name that has so many letters is meant by nothing else: `delinearize`."""


class Commit(Record, frozen=True):
    """One commit; `message` begins with its title, `date` is `2026-07-14`."""

    sha: str
    date: str
    message: str

    @property
    def title(self) -> str:
        """The first line."""
        return self.message.strip().partition("\n")[0]


class Source(Protocol):
    """The history of a compiler's repository; every call raises BotError where it has no answer."""

    @property
    def name(self) -> str:
        """What it is, in words: `iree-org/iree`."""

    def paths(self, revision: str) -> Mapping[str, str]:
        """Path → id of the object there, of a submodule its commit."""

    def commits(self, path: str, base: str, head: str) -> Sequence[Commit]:
        """Those that touched a file and that one of the two revisions has and the other has not; the newest first."""

    def diff(self, sha: str) -> str:
        """What a commit changes, as a unified diff."""

    def llvm_commits(self, base: str, head: str) -> int | None:
        """How many commits of LLVM lie between two; None where that cannot be known here."""

    def url(self, sha: str) -> str:
        """The page of a commit; empty where nobody knows it."""


@dataclass(frozen=True, slots=True)
class Clue:
    """What a root cause names.

    Attributes:
        passed: the pass; None where it is a knob.
        knob: the words of a changed configuration: `vector_common_parallel 1 → 8, with distribution`.
        folders: of the code generation of its targets.
    """

    passed: PassChange | None
    knob: str
    targets: tuple[str, ...]
    folders: tuple[str, ...]
    dispatch: str

    def files(self, paths: Collection[str]) -> tuple[str, ...]:
        """Those of `paths` that implement the pass or choose the configuration."""
        if self.passed is None:
            ends = tuple(f"/{end}" for folder in self.folders for end in _CHOICES[folder])
            return tuple(sorted(path for path in paths if path.endswith(ends)))
        stem = self.passed.class_name.rpartition("::")[2].removesuffix("Pass")
        named = tuple(sorted(p for p in paths if stem and p.rpartition("/")[2] in (f"{stem}.cpp", f"{stem}Pass.cpp")))
        own = tuple(path for path in named if any(f"/{folder}/" in path for folder in self.folders))
        return own or named

    def words(self) -> list[tuple[str, re.Pattern[str], int]]:
        """What a commit that did it may well speak of: as it is told, as it is sought, and what it counts.

        The operations, the knob and its named values come first, which count _OWN or more: who names none of them is
        no suspect. What is told with no word is a part of a name.
        """
        found: list[tuple[str, str, int]] = []
        if self.passed is not None:
            names = list(dict.fromkeys(name.partition(" ")[0] for name in self.passed.operations))
            found += [(name, _operation(name), _OWN if place else 6) for place, name in enumerate(names)]
        else:
            knob, values = self._turned
            if knob != PIPELINE:
                found.append((knob, knob.replace("_", "_?") if "_" in knob else rf'"{knob}"|\b{knob} ?=', 4))
                found += [("", part, 1) for part in knob.split("_") if len(part) > 3 and "_" in knob]
            found += [(name, name, 4) for name in dict.fromkeys(re.findall(r"[A-Z][a-z]+[A-Z]\w+", values))]
        for target in self.targets:
            found += [(name, sought, 1) for name, sought in _NAMES.items() if name in target]
        kind = self.dispatch.partition("dispatch_")[2]
        found += [(name, rf"(?<!un){name}" if name == "pack" else name, 1) for name in _KINDS if f"_{name}_" in kind]
        return [(name, re.compile(sought, re.IGNORECASE), counts) for name, sought, counts in found]

    @property
    def _turned(self) -> tuple[str, str]:
        """The knob, and how its values changed."""
        knob, _, values = self.knob.partition(", with ")[0].partition(" ")
        return knob, values

    def turned_by(self, diff: _Diff) -> str:
        """The change of the knob's value that a line of the diff has, too; empty where none has."""
        knob, values = self._turned
        wanted = {one for one in values.split(" and ") if one.count(" → ") == 1}
        for left, right in diff.replaced if wanted else ():
            if knob == PIPELINE:
                same = {one for one in wanted if all(map(str.__contains__, (left, right), one.split(" → ")))}
            else:
                same = wanted & set(turned(left, right).get(knob, "").split(" and ")) if knob in left else set[str]()
            if same:
                return f"{knob} {', '.join(sorted(same))}"
        return ""


def _operation(name: str) -> str:
    """`affine.delinearize_index` is `affine::AffineDelinearizeIndexOp` in C++: a long name is unique by itself."""
    dialect, _, own = name.partition(".")
    parts = [re.escape(part) for part in (own or dialect).split("_")]
    whole = "_?".join(parts)
    if len(parts) == 1:
        return rf"\b{re.escape(dialect)}(?:\.|::\w*?){whole}(?:Op)?\b"
    return "|".join([whole, *(part for part in parts if len(part) >= _UNIQUE)])


def clue_of(root: RootCause, backends: Mapping[str, str]) -> Clue | None:
    """None where it is neither a pass nor a configuration."""
    knob = root.what if root.cause == "strategy" else ""
    passed = root.passed if root.cause == "codegen" else None
    if passed is None and not knob:
        return None
    return clue(passed, knob, root.targets, root.example.dispatch, backends)


def clue(
    passed: PassChange | None, knob: str, targets: Sequence[str], dispatch: str, backends: Mapping[str, str]
) -> Clue:
    """As Clue has it; `backends`: target → its backend."""
    folders = {folder for target in targets if (folder := _FOLDERS.get(backends.get(target, "")))}
    return Clue(passed, knob, tuple(targets), tuple(sorted(folders)), dispatch)


def with_suspects(made: Report, source: Source, touched: Collection[str] = ()) -> Report:
    """The report, its largest root causes with what the compiler's repository says of them.

    Args:
        touched: paths of the compiler's repository that the pull request itself changes.
    """
    backends = {**made.base.targets, **made.head.targets}
    revisions = made.base.compiler.revision, made.head.compiler.revision
    clues = [(place, one) for place, root in enumerate(made.root_causes) if (one := clue_of(root, backends))]
    suspicions, why = suspicions_of([one for _, one in clues[:MOST_CAUSES]], revisions, source, touched)
    roots = list(made.root_causes)
    for (place, _), suspicion in zip(clues, suspicions, strict=False):
        roots[place] = replace(roots[place], suspicion=suspicion)
    notes = (f"commits of the compiler were not looked up to the end: {why}",) if why else ()
    return replace(made, root_causes=tuple(roots), notes=(*made.notes, *notes))


def suspicions_of(
    clues: Sequence[Clue], revisions: tuple[str, str], source: Source, touched: Collection[str] = ()
) -> tuple[list[Suspicion | None], str]:
    """What is known of each clue, and why no more is; nothing where both compilers are of one revision.

    First the lists of commits are asked for and then their diffs, so that where requests are few the largest root
    causes have most of them.
    """
    own = [one.files(touched) for one in clues]
    found: list[Suspicion | None] = [Suspicion(files, is_pull=True) if files else None for files in own]
    base, head = revisions
    if not clues or (base == head and base):
        return found, ""
    for side, revision in (("base", base), ("head", head)):
        if not _SHA.fullmatch(revision):
            told = f"was built from {revision[:60]!r}, which is no commit" if revision else "does not say its revision"
            return found, f"the {side} compiler {told}"
    hunts, why = list[tuple[int, _Hunt]](), ""
    commits, diff = cache(lambda path: source.commits(path, base, head)), cache(lambda sha: _Diff(source.diff(sha)))
    try:
        paths = source.paths(head)
        for place, one in enumerate(clues):
            files = one.files(paths)
            note = "" if files else _without_file(one, source, paths, base)
            hunts.append((place, _Hunt(one, files, {c.sha: c for path in files for c in commits(path)}, note)))
        for _, hunt in hunts:
            hunt.read(diff)
    except BotError as error:
        why = error.line
    for place, hunt in hunts:
        found[place] = replace(hunt.suspicion(source), is_pull=bool(own[place]))
    return found, why


def _without_file(one: Clue, source: Source, paths: Mapping[str, str], base: str) -> str:
    """What is said of a pass that is not of the compiler's own repository, or not named as its file."""
    if one.passed is None:
        return "no file is known that chooses this configuration"
    if one.passed.class_name and one.passed.name.startswith("iree-"):
        return f"no file is named after {one.passed.class_name}"
    left, right = source.paths(base).get(LLVM), paths.get(LLVM)
    if not left or not right:
        return "a pass of LLVM, whose revision is not known"
    if left == right:
        return f"a pass of LLVM, whose revision is the same on both sides ({left[:10]})"
    count = source.llvm_commits(left, right)
    return f"a pass of LLVM, {left[:10]} → {right[:10]}{'' if count is None else f', {count:,} commits'}"


_BLOCK = re.compile(r"((?:^-(?!-- ).*\n)+)((?:^\+(?!\+\+ ).*\n?)+)", re.MULTILINE)
_LINE = re.compile(r"^(?:-(?!-- )|\+(?!\+\+ )).*", re.MULTILINE)


class _Diff:
    """A diff: `text` is all lines that it takes away or adds; `replaced` those that another line stands for now."""

    def __init__(self, diff: str) -> None:
        self.text = "\n".join(_LINE.findall(diff))
        blocks = [[half.splitlines() for half in block] for block in _BLOCK.findall(diff)]
        self.replaced = [pair for gone, new in blocks if len(gone) == len(new) for pair in zip(gone, new, strict=True)]


class _Hunt:
    """The commits that touched the files of one clue, and as many of their diffs as can be had."""

    def __init__(self, one: Clue, files: tuple[str, ...], commits: Mapping[str, Commit], note: str) -> None:
        self._words, self._turned_by, self._files, self._note = one.words(), cache(one.turned_by), files, note
        self._commits, self._diffs = list(commits.values()), dict[str, _Diff]()

    def read(self, diff: Callable[[str], _Diff]) -> None:
        """The lines that they take away and add, of those first whose messages say most."""
        for commit in sorted(self._commits, key=lambda one: -self._score([one])[0])[:_MOST_DIFFS]:
            self._diffs[commit.sha] = diff(commit.sha)

    def _score(self, group: Sequence[Commit]) -> tuple[int, str]:
        """What commits that belong together speak of, and in which words that is told: most in title and values."""
        diffs = [self._diffs[one.sha] for one in group if one.sha in self._diffs]
        places = {
            "title": (3, [one.title for one in group]),
            "message": (2, [one.message for one in group]),
            "diff": (1, [one.text for one in diffs]),
        }
        score, told, is_own = 0, dict[str, list[str]](), False
        for name, sought, counts in self._words:
            for place, (times, texts) in places.items():
                if match := next(filter(None, map(sought.search, texts)), None):
                    score += times * counts
                    is_own |= counts >= _OWN
                    told.setdefault(f"its {place} has", []).extend([match[0]] if name else [])
                    break
        if is_own and (turn := next(filter(None, map(self._turned_by, diffs)), "")):
            score += _TURN
            told.setdefault("its diff has", []).append(turn)
        return score * is_own, "; ".join(
            f"{where} {', '.join(dict.fromkeys(names))}" for where, names in told.items() if names
        )

    def suspicion(self, source: Source) -> Suspicion:
        """The likeliest first: what speaks of most, then the newest; without what has no function or was taken back."""
        groups: dict[str, list[Commit]] = {}
        for commit in self._commits:
            groups.setdefault(_subject(commit.title), []).append(commit)
        ranked = []
        for group in groups.values():
            score, why = self._score(group)
            if score and not _is_idle(group):
                ranked.append((-score, group, why))
        ranked.sort(key=lambda one: one[0])
        suspects = tuple(_suspect(group, why, source) for _, group, why in ranked[:MOST_SUSPECTS])
        return Suspicion(self._files, len(self._commits) if self._files else None, suspects, self._note)


def _subject(title: str) -> str:
    """What a commit is about, the same for its revert and the revert of that."""
    while again := _AGAIN.match(title):
        title = again[2]
    return _NUMBER.sub("", title).strip().casefold()


def _is_idle(group: Sequence[Commit]) -> bool:
    """Without function, or taken back by the newest of those that belong together."""
    newest = _AGAIN.match(group[0].title)
    undone = len(group) > 1 and newest is not None and newest[1].casefold().startswith(("revert", "roll"))
    return undone or all(_IDLE.search(one.title) for one in group)


def _suspect(group: Sequence[Commit], why: str, source: Source) -> Suspect:
    newest, *older = group
    others = f"; together with {', '.join(one.sha[:10] for one in older)}" if older else ""
    return Suspect(newest.sha, newest.title, newest.date, source.url(newest.sha), f"{why}{others}")
