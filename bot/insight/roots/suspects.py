"""From a root cause to the commits of the compiler that may have made it.

They are those that touched the file of the pass, or of what chooses the configuration, between the two compilers. A
commit is a *suspect*, never a cause: that it touched the file and speaks of what changed proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from bot.core.record import Record
from bot.core.values.explanation import PassChange
from bot.core.values.root_cause import RootCause, Suspect, Suspicion
from bot.core.values.whole_report import Report
from bot.errors import BotError
from bot.insight.roots.knobs import PIPELINE, turned

LLVM = "third_party/llvm-project"
UNFINISHED = "commits of the compiler were not looked up to the end: "
_MOST_CAUSES, _MOST_SUSPECTS, _MOST_DIFFS = 10, 3, 40
_FOLDERS = {"llvm-cpu": "LLVMCPU", "vmvx": "VMVX", "cuda": "LLVMGPU", "rocm": "LLVMGPU"}
_CHOICES = {
    "LLVMCPU": ("LLVMCPU/KernelDispatch.cpp",),
    "VMVX": ("VMVX/KernelDispatch.cpp",),
    "LLVMGPU": ("LLVMGPU/KernelConfig.cpp", "GPU/TargetUtils/ConfigUtils.cpp", "TargetUtils/ReductionConfigUtils.cpp"),
    "SPIRV": ("SPIRV/KernelConfig.cpp",),
}
"""Folder of code generation → the ends of the files that choose configurations there, from 3.5.0 to 3.13.0."""
_TARGETS = {
    "x86_64": "x86|avx", "aarch64": r"aarch64|neon|\bsve\b", "riscv64": r"risc-?v|\brvv\b", "vmvx": "vmvx",
    "cuda": r"cuda|nvidia|nvgpu|nvptx|nvvm|\bsm_?\d\d", "rocm": r"rocm|amdgpu|rocdl|gfx\d",
    "vulkan": "vulkan|spir-?v", "metal": r"metal\b",
}  # fmt: skip
"""Part of a target's name → what commits call it."""
_KINDS = ("matmul", "conv", "reduction", "softmax", "attention", "elementwise", "transpose", "unpack", "pack", "fft")
_IDLE = re.compile(r"\bNFCI?\b|clang-format|\breformat|^(?:\[[^\]]*\] *)*(?:rename|typo|format)\b", re.IGNORECASE)
_AGAIN = re.compile(r'^(revert|reapply|reland|roll ?back)\b[^"]*"(.*)"', re.IGNORECASE)
_BLOCK = re.compile(r"((?:^-(?!-- ).*\n)+)((?:^\+(?!\+\+ ).*\n?)+)", re.MULTILINE)
_LINE = re.compile(r"^(?:-(?!-- )|\+(?!\+\+ )).*", re.MULTILINE)
_OWN, _LARGEST, _TURN = 2, 6, 20
"""What counts: a name that the root cause has, its largest operation, and the very change of the knob's value."""


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
    """The history of a compiler's repository; every call raises BotError where it has no answer.

    Attributes:
        address: of the repository's page; empty where nobody knows it.
    """

    address: str

    def paths(self, revision: str) -> Mapping[str, str]:
        """Path → id of the object there, of a submodule its commit."""

    def commits(self, path: str, base: str, head: str) -> Sequence[Commit]:
        """Those that touched a file and that one of the two revisions has and the other has not; the newest first."""

    def diff(self, sha: str) -> str:
        """What a commit changes, as a unified diff."""

    def llvm_commits(self, base: str, head: str) -> int | None:
        """How many commits of LLVM lie between two; None where that cannot be known here."""


@dataclass(frozen=True, slots=True)
class Clue:
    """What a root cause names: a pass, or a knob (`vector_common_parallel 1 → 8, with distribution`).

    Attributes:
        passed: None where it is a knob.
        backends: of its targets.
        dispatch: the name of its largest one.
    """

    passed: PassChange | None
    knob: str
    targets: Sequence[str]
    backends: Collection[str]
    dispatch: str

    @staticmethod
    def of(root: RootCause, backends: Mapping[str, str]) -> Clue | None:
        """None where it is neither; `backends`: target → its backend."""
        if not (root.cause == "strategy" or (root.cause == "codegen" and root.passed)):
            return None
        passed, own = root.passed if root.cause == "codegen" else None, {backends.get(one, "") for one in root.targets}
        return Clue(passed, root.what, root.targets, own, root.example.dispatch)

    def files(self, paths: Collection[str]) -> tuple[str, ...]:
        """Those of `paths` that implement the pass or choose the configuration."""
        folders = {_FOLDERS.get(backend, "SPIRV") for backend in self.backends}
        if self.passed is None:
            ends = tuple(f"/{end}" for folder in folders for end in _CHOICES[folder])
            if self.turn[0] == PIPELINE:  # a pass before the choice may have made it another one
                ends += tuple(f"/{folder}/Passes.cpp" for folder in folders)
            return tuple(sorted(path for path in paths if path.endswith(ends)))
        stem = self.passed.class_name.rpartition("::")[2].removesuffix("Pass")
        named = tuple(sorted(p for p in paths if stem and p.rpartition("/")[2] in (f"{stem}.cpp", f"{stem}Pass.cpp")))
        return tuple(path for path in named if any(f"/{folder}/" in path for folder in folders)) or named

    def words(self) -> list[tuple[re.Pattern[str], int]]:
        """What a commit that did it may well speak of, and what each counts."""
        found = [(sought, 1) for name, sought in _TARGETS.items() if any(name in target for target in self.targets)]
        kind = self.dispatch.partition("dispatch_")[2]
        found += [(rf"(?<!un){name}" if name == "pack" else name, 1) for name in _KINDS if f"_{name}_" in kind]
        if self.passed is not None:
            names = dict.fromkeys(name.partition(" ")[0] for name in self.passed.operations)
            found += [(_operation(name), _OWN if place else _LARGEST) for place, name in enumerate(names)]
        else:
            knob, values = self.turn
            if knob != PIPELINE:
                found.append((knob.replace("_", "_?") if "_" in knob else rf'"{knob}"|\b{knob} ?=', 2 * _OWN))
                found += [(part, 1) for part in knob.split("_") if len(part) > 3 and "_" in knob]
            found += [(name, 2 * _OWN) for name in dict.fromkeys(re.findall(r"[A-Z][a-z]+[A-Z]\w+", values))]
        return [(re.compile(sought, re.IGNORECASE), counts) for sought, counts in found]

    @property
    def turn(self) -> tuple[str, str]:
        """The knob, and how its values changed; two empty ones for a pass."""
        knob, _, values = ("" if self.passed else self.knob).partition(", with ")[0].partition(" ")
        return knob, values

    def turned_by(self, diff: str) -> str:
        """The change of the knob's value that a replaced line of a diff has, too; empty where none has."""
        knob, values = self.turn
        wanted = {one for one in values.split(" and ") if one.count(" → ") == 1}
        blocks = [[half.splitlines() for half in block] for block in _BLOCK.findall(diff)] if wanted else []
        for left, right in (
            pair for gone, new in blocks if len(gone) == len(new) for pair in zip(gone, new, strict=True)
        ):
            if knob == PIPELINE:
                same = {one for one in wanted if all(map(str.__contains__, (left, right), one.split(" → ")))}
            else:
                same = wanted & set(turned(left, right).get(knob, "").split(" and ")) if knob in left else set[str]()
            if same:
                return f"{knob} {', '.join(sorted(same))}"
        return ""


def _operation(name: str) -> str:
    """`affine.delinearize_index` is `affine::AffineDelinearizeIndexOp` in C++; a long part is meant by nothing else."""
    dialect, _, own = name.partition(".")
    parts = [re.escape(part) for part in (own or dialect).split("_")]
    whole = "_?".join(parts)
    if len(parts) == 1:
        return rf"\b{re.escape(dialect)}(?:\.|::\w*?){whole}(?:Op)?\b"
    return "|".join([whole, *(part for part in parts if len(part) > 8)])


def with_suspects(made: Report, source: Source, touched: Collection[str] = ()) -> Report:
    """The report, its largest root causes with what the compiler's repository says of them.

    Args:
        touched: paths of the compiler's repository that the pull request itself changes.
    """
    backends = {**made.base.targets, **made.head.targets}
    clues = {place: one for place, root in enumerate(made.root_causes) if (one := Clue.of(root, backends))}
    places, roots = list(clues)[:_MOST_CAUSES], list(made.root_causes)
    revisions = made.base.compiler.revision, made.head.compiler.revision
    known, why = suspicions_of([clues[place] for place in places], revisions, source, touched)
    for place, suspicion in zip(places, known, strict=True):
        roots[place] = replace(roots[place], suspicion=suspicion)
    return replace(made, root_causes=tuple(roots), notes=(*made.notes, *([f"{UNFINISHED}{why}"] if why else [])))


def suspicions_of(
    clues: Sequence[Clue], revisions: tuple[str, str], source: Source, touched: Collection[str] = ()
) -> tuple[list[Suspicion | None], str]:
    """What is known of each clue, and why no more is; nothing where both compilers are of one revision.

    First the lists of commits are asked for and then their diffs, of each clue first those of the three whose messages
    say most: requests may be few.
    """
    own = [one.files(touched) for one in clues]
    found: list[Suspicion | None] = [Suspicion(files, is_pull=True) if files else None for files in own]
    base, head = revisions
    if not clues or (base == head and base):
        return found, ""
    if unknown := _unknown(revisions):
        return found, unknown
    commits, diff = cache(lambda path: source.commits(path, base, head)), cache(source.diff)
    hunts, diffs, why = dict[int, tuple[tuple[str, ...], list[Commit], str]](), dict[str, str](), ""
    try:
        paths = source.paths(head)
        for place, one in enumerate(clues):
            files = one.files(paths)
            note = "" if files else _without_file(one, source, paths, base)
            hunts[place] = (
                files,
                list({commit.sha: commit for file in files for commit in commits(file)}.values()),
                note,
            )
        wanted = []
        for place, (_, listed, _) in hunts.items():
            likely = sorted(listed, key=lambda commit: -_score(clues[place], [commit], {})[0])
            wanted += [(depth // 3, place, depth, commit.sha) for depth, commit in enumerate(likely[:_MOST_DIFFS])]
        for *_, sha in sorted(wanted):
            diffs[sha] = diff(sha)
    except BotError as error:
        why = error.line
    for place, hunt in hunts.items():
        found[place] = replace(_suspicion(clues[place], *hunt, diffs, source.address), is_pull=bool(own[place]))
    return found, why


def _suspicion(
    clue: Clue, files: tuple[str, ...], listed: Sequence[Commit], note: str, diffs: Mapping[str, str], address: str
) -> Suspicion:
    if unread := sum(commit.sha not in diffs for commit in listed):
        note = f"{unread} of these commits known by their messages alone"
    return Suspicion(files, len(listed) if files else None, _suspects(clue, listed, diffs, address), note)


def _unknown(revisions: tuple[str, str]) -> str:
    """Which compiler was built from nobody knows what; empty where both say a commit."""
    for side, revision in zip(("base", "head"), revisions, strict=True):
        if not re.fullmatch("[0-9a-f]{40}", revision):
            told = f"was built from {revision[:60]!r}, which is no commit" if revision else "does not say its revision"
            return f"the {side} compiler {told}"
    return ""


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


def _score(clue: Clue, group: Sequence[Commit], diffs: Mapping[str, str]) -> tuple[int, str, bool]:
    """What commits that belong together speak of, in which words that is told, and whether of the clue's own names."""
    texts = [diffs.get(one.sha, "") for one in group]
    places = {
        "title": (3, [one.title for one in group]),
        "message": (2, [one.message for one in group]),
        "diff": (1, ["\n".join(_LINE.findall(text)) for text in texts]),
    }
    turn = next(filter(None, map(clue.turned_by, texts)), "")
    score, told, is_own = _TURN * bool(turn), dict[str, dict[str, None]](), bool(turn)
    for sought, counts in clue.words():
        for place, (times, said) in places.items():
            if match := next(filter(None, map(sought.search, said)), None):
                score, is_own = score + times * counts, is_own or counts >= _OWN
                told.setdefault(place, {})[match[0]] = None
                break
    if turn:
        told["diff"] = {**{word: None for word in told.get("diff", {}) if word not in turn}, turn: None}
    titled = {name for name, sought in _TARGETS.items() if re.search(sought, group[0].title, re.IGNORECASE)}
    if titled and not any(name in target for name in titled for target in clue.targets):
        score //= 2  # it says that it is about another target
    why = "; ".join(f"its {place} has {', '.join(words)}" for place, words in told.items() if words)
    return score, why, is_own


def _suspects(clue: Clue, commits: Sequence[Commit], diffs: Mapping[str, str], address: str) -> tuple[Suspect, ...]:
    """The likeliest first: what speaks of most, then the newest; without what has no function or was taken back."""
    groups: dict[str, list[Commit]] = {}
    for commit in commits:
        subject = commit.title
        while again := _AGAIN.match(subject):
            subject = again[2]
        groups.setdefault(re.sub(r"\s*\(#\d+\)", "", subject).strip().casefold(), []).append(commit)
    ranked = [(_score(clue, group, diffs), group) for group in groups.values() if not _is_idle(group)]
    ranked.sort(key=lambda one: -one[0][0])
    suspects = []
    for (_, why, _), (newest, *older) in [one for one in ranked if one[0][2]][:_MOST_SUSPECTS]:
        others = f"; together with {', '.join(one.sha[:10] for one in older)}" if older else ""
        url = f"{address}/commit/{newest.sha}" if address else ""
        suspects.append(Suspect(newest.sha, newest.title, newest.date, url, f"{why}{others}"))
    return tuple(suspects)


def _is_idle(group: Sequence[Commit]) -> bool:
    """Without function, or taken back by the newest of those that belong together."""
    newest = _AGAIN.match(group[0].title)
    undone = len(group) > 1 and newest is not None and newest[1].casefold().startswith(("revert", "roll"))
    return undone or all(_IDLE.search(one.title) for one in group)
