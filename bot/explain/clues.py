"""Score commits of a compiler by what a root cause names.

A root cause names a pass, or a knob and how its value changed. A commit counts for the
words of these in its title, message and diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from bot.core.explanation import PassChange
from bot.core.trace import REGION
from bot.explain.compiler_history import Commit
from bot.explain.knobs import PIPELINE, turned

_FOLDERS = {"llvm-cpu": "LLVMCPU", "vmvx": "VMVX", "cuda": "LLVMGPU", "rocm": "LLVMGPU"}
_CHOICES = {
    "LLVMCPU": ("LLVMCPU/KernelDispatch.cpp",),
    "VMVX": ("VMVX/KernelDispatch.cpp",),
    "LLVMGPU": (
        "LLVMGPU/KernelConfig.cpp",
        "GPU/TargetUtils/ConfigUtils.cpp",
        "TargetUtils/ReductionConfigUtils.cpp",
    ),
    "SPIRV": ("SPIRV/KernelConfig.cpp",),
}
"""Folder of code generation → the files that choose configurations there.

By the ends of their paths, from 3.5.0 to 3.13.0.
"""
_TARGETS = {
    "x86_64": "x86|avx",
    "aarch64": r"aarch64|neon|\bsve\b",
    "riscv64": r"risc-?v|\brvv\b",
    "vmvx": "vmvx",
    "cuda": r"cuda|nvidia|nvgpu|nvptx|nvvm|\bsm_?\d\d",
    "rocm": r"rocm|amdgpu|rocdl|gfx\d",
    "vulkan": "vulkan|spir-?v",
    "metal": r"metal\b",
}
"""Part of a target's name → what commits call it."""
_KINDS = {
    "reduction": "reduction",
    "softmax": "softmax",
    "attention": "attention",
    "elementwise": "elementwise",
    "transpose": "transpose",
    "unpack": "unpack",
    "fft": "fft",
    "matmul": "matmul|gemm|contraction",
    "conv": "conv",
    "pack": "(?<!un)pack",
}
"""Part of a dispatch's name → what commits call it."""
_FIX = re.compile(
    r"(?:\[[^\]]*\] *)*fix\b.*(?:crash|assert|fail|overflow)", re.IGNORECASE | re.DOTALL
)
_BLOCK = re.compile(r"((?:^-(?!-- ).*\n)+)((?:^\+(?!\+\+ ).*\n?)+)", re.MULTILINE)
_LINE = re.compile(r"^(?:-(?!-- )|\+(?!\+\+ )).*", re.MULTILINE)
_OWN = 2
"""The score of a name in the root cause."""
_LARGEST = 6
"""The score of the root cause's largest operation."""
_TURN = 20
"""The score of exactly this change of the knob's value."""
_FORMING = [
    (r"\bfus(?:e[sd]?|ing|ion)\b", _LARGEST),
    (r"\bdispatch(?:es)?\b|\bregions?\b", 1),
]
"""Words of commits that form other dispatch regions, and what each counts."""
_PLACES = {"title": 3, "message": 2, "diff": 1}


class Clue(NamedTuple):
    """What a root cause names: the pass, or the knob and how its value changed.

    `dispatch`: its largest dispatch.
    """

    passed: PassChange | None
    knob: str
    targets: Sequence[str]
    backends: Collection[str]
    dispatch: str

    @property
    def turn(self) -> tuple[str, str]:
        """Return the knob, and how its value changed; two empty texts for a pass."""
        if self.passed:
            return "", ""
        knob, _, change = self.knob.partition(", with ")[0].partition(" ")
        return knob, change

    def files(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return those `paths` that implement the pass or choose the configuration."""
        if self.passed is None:
            return self._choosing_files(paths)
        stem = self.passed.class_name.rpartition("::")[2].removesuffix("Pass")
        if not stem:
            return ()
        names = (f"{stem}.cpp", f"{stem}Pass.cpp")
        named = []
        of_backend = []
        for path in sorted(paths):
            *folders, name = path.split("/")
            if name not in names:
                continue
            named.append(path)
            if not self._folders.isdisjoint(folders[1:]):
                of_backend.append(path)
        return tuple(of_backend or named)

    def _choosing_files(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return those `paths` that choose the configuration."""
        ends = list[str]()
        for folder in self._folders:
            ends += _CHOICES[folder]
            # a pass before the choice may have made it another one
            if self.turn[0] == PIPELINE:
                ends.append(f"{folder}/Passes.cpp")
        suffixes = tuple([f"/{end}" for end in ends])
        return tuple(sorted(path for path in paths if path.endswith(suffixes)))

    @property
    def _folders(self) -> set[str]:
        """Return the folders of code generation for the backends."""
        return {_FOLDERS.get(backend, "SPIRV") for backend in self.backends}

    def words(self) -> list[tuple[str, int]]:
        """Return patterns of words in a commit that made the change, and scores."""
        patterns = list[tuple[str, int]]()
        for name, pattern in _TARGETS.items():
            if any(name in target for target in self.targets):
                patterns.append((pattern, 1))
        for folder in sorted(self._folders):
            patterns.append((rf"\b{folder}\b", 1))
        kind = self.dispatch.partition("dispatch_")[2]
        for name, pattern in _KINDS.items():
            if f"_{name}_" in kind:
                patterns.append((pattern, 1))
        if self.passed is not None:
            return patterns + _pass_patterns(self.passed)
        return patterns + _knob_patterns(*self.turn)

    def is_turned_by(self, diff: str) -> bool:
        """Return whether a replaced line of the diff makes this change of the knob.

        That is mostly a line of a test.
        """
        knob, change = self.turn
        changes = {part for part in change.split(" and ") if part.count(" → ") == 1}
        if not changes:
            return False
        for old, new in _BLOCK.findall(diff):
            pairs = zip_longest(old.split("\n"), new.split("\n"), fillvalue="")
            for old_line, new_line in pairs:
                if knob not in old_line:
                    continue
                turns = turned(old_line, new_line).get(knob, "")
                if changes.intersection(turns.split(" and ")):
                    return True
        return False

    def score(
        self, group: Sequence[Commit], diffs: Mapping[str, str]
    ) -> tuple[int, str, bool]:
        """Score commits that belong together by the words in their messages and diffs.

        Returns:
            The score, the words that it counts, and whether any of these is the clue's
            own.
        """
        texts = [diffs.get(commit.sha, "") for commit in group]
        changed = list[str]()
        for text in texts:
            changed += _LINE.findall(text)
        by_place = {
            "title": "\n".join(commit.title for commit in group),
            "message": "\n".join(commit.message for commit in group),
            "diff": "\n".join(changed),
        }
        score, is_own, matches = self._matches(by_place)
        if any(map(self.is_turned_by, texts)):
            score += _TURN
            is_own = True
            words = [word for word in matches.get("diff", []) if word not in self.knob]
            matches["diff"] = [*words, " ".join(self.turn)]
        titled = _titled_targets(group[0])
        # A commit for only one target explains only a change of this target, whatever
        # words it uses.
        if self.passed is not None and titled:
            is_own = is_own or all(map(_names_any(titled), self.targets))
        is_foreign = bool(titled) and not any(map(_names_any(titled), self.targets))
        is_fix = _FIX.match(group[0].message)  # what changed was compiled on both sides
        reasons = []
        for place, found_texts in matches.items():
            reasons.append(f"its {place} has {', '.join(dict.fromkeys(found_texts))}")
        if is_foreign:
            score //= 2
        if is_fix:
            score //= 2
        return score, "; ".join(reasons), is_own

    def _matches(
        self, by_place: Mapping[str, str]
    ) -> tuple[int, bool, dict[str, list[str]]]:
        """Find the clue's words. Each counts once, in the first place that has it.

        Args:
            by_place: place in a commit (title, message or diff) → its text.

        Returns:
            The score, whether a word is the clue's own, and place → the words there.
        """
        score = 0
        is_own = False
        matches = dict[str, list[str]]()
        for pattern, counts in self.words():
            for place, text in by_place.items():
                match = re.search(pattern, text, re.IGNORECASE)
                if match is None:
                    continue
                score += _PLACES[place] * counts
                is_own = is_own or counts >= _OWN
                matches.setdefault(place, []).append(match[0])
                break
        return score, is_own, matches


def _titled_targets(commit: Commit) -> set[str]:
    """Return the targets that a commit's title names."""
    names = set[str]()
    for name, pattern in _TARGETS.items():
        if re.search(pattern, commit.title, re.IGNORECASE):
            names.add(name)
    return names


def _names_any(names: Collection[str]) -> Callable[[str], bool]:
    """Return a test whether a target has one of the names in its own."""
    return lambda target: any(name in target for name in names)


def _pass_patterns(passed: PassChange) -> list[tuple[str, int]]:
    """Return the words in a commit that touched the operations of a pass."""
    patterns = list[tuple[str, int]]()
    if passed.experiment or REGION in passed.operations:
        patterns += _FORMING
    names = dict[str, None]()
    for operation in passed.operations:
        if operation != REGION:
            names[operation.partition(" ")[0]] = None
    for place, name in enumerate(names):
        counts = _OWN if place else _LARGEST
        # `affine.delinearize_index` is `affine::AffineDelinearizeIndexOp` in
        # C++; nothing else has a long part.
        dialect, _, operation = name.partition(".")
        parts = [re.escape(part) for part in (operation or dialect).split("_")]
        if len(parts) > 1:
            long_parts = [part for part in parts if len(part) > 8]
            patterns.append(("|".join(["_?".join(parts), *long_parts]), counts))
            continue
        prefix = rf"\b{re.escape(dialect)}(?:\.|::\w*?)"
        patterns.append((rf"{prefix}{parts[0]}(?:Op)?\b", counts))
        patterns.append((rf"\b{parts[0]}s?\b", 1))
    return patterns


def _knob_patterns(knob: str, change: str) -> list[tuple[str, int]]:
    """Return the words in a commit that changed a knob of the configuration."""
    patterns = list[tuple[str, int]]()
    if knob != PIPELINE and "_" in knob:
        patterns.append((knob.replace("_", "_?"), 2 * _OWN))
        for part in knob.split("_"):
            if len(part) > 3:
                patterns.append((part, 1))
    elif knob != PIPELINE:
        patterns.append((rf'"{knob}"|\b{knob} ?=', 2 * _OWN))
    for name in dict.fromkeys(re.findall(r"[A-Z][a-z]+[A-Z]\w+", change)):
        patterns.append((name, 2 * _OWN))
    return patterns
