"""Find the compiler's commits that may have made a root cause.

They touched the file of its pass, or of what chooses configurations.

Such a commit is a *suspect*, never a cause: that it touched the file and speaks of what
changed proves nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from bot.compiler.storage import add, touch
from bot.core.explanation import EARLY_CAUSES, LookedUp, PassChange, RootCause, Suspect
from bot.core.json_text import canonical
from bot.core.parting import IN_LLVM
from bot.core.record import Small
from bot.core.report import Report
from bot.core.snapshot import Snapshot
from bot.core.trace import REGION
from bot.errors import BotError, InputError, Interrupted
from bot.explain.knobs import PIPELINE, turned
from bot.system.cancel import Cancel
from bot.system.files import whole_or_nothing
from bot.system.git import Git

LLVM = "third_party/llvm-project"
LLVM_ITSELF = "LLVM"
UNFINISHED = "the search for compiler commits stopped early: "
_MOST_REQUESTS = 20
_MOST_CAUSES = 10
_MOST_SUSPECTS = 3
_DIFFS = (3, 40)
"""The limits of diffs that are read for one cause: in its first turn, and its second.

The likeliest commits come first.
"""
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
_IDLE = re.compile(
    r"\bNFCI?\b|clang-format|\breformat|^(?:\[[^\]]*\] *)*(?:rename|typo|format)\b",
    re.IGNORECASE,
)
_SHA = re.compile("[0-9a-f]{40}")
_FIX = re.compile(
    r"(?:\[[^\]]*\] *)*fix\b.*(?:crash|assert|fail|overflow)", re.IGNORECASE | re.DOTALL
)
_AGAIN = re.compile(r'^(revert|reapply|reland|roll ?back)\b[^"]*"(.*)"', re.IGNORECASE)
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
_PAGE = 100
_MOST_DIFF_CHARACTERS = 1 << 20
Answer = tuple[LookedUp | None, tuple[Suspect, ...]]
_T = TypeVar("_T")


class Commit(NamedTuple):
    """One commit.

    The message begins with the title, the date with the day (`2026-07-14`).
    """

    sha: str
    date: str
    message: str

    @property
    def title(self) -> str:
        """Return the first line of the message."""
        return self.message.partition("\n")[0]


class CompilerHistory(NamedTuple):
    """The history of a compiler's repository, with its page's address.

    Every call raises BotError if there is no answer.

    Attributes:
        paths: revision → path → id of the object there; of a submodule its commit.
        commits: path, base, head → the commits that touched the path and that only one
            of the revisions has, the newest first.
    """

    address: str
    paths: Callable[[str], Mapping[str, str]]
    commits: Callable[[str, str, str], Sequence[Commit]]
    diff: Callable[[str], str]


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
        folders = {_FOLDERS.get(backend, "SPIRV") for backend in self.backends}
        if self.passed is None:
            ends = [f"/{end}" for folder in folders for end in _CHOICES[folder]]
            # a pass before the choice may have made it another one
            if self.turn[0] == PIPELINE:
                ends += [f"/{folder}/Passes.cpp" for folder in folders]
            return tuple(sorted(path for path in paths if path.endswith(tuple(ends))))
        stem = self.passed.class_name.rpartition("::")[2].removesuffix("Pass")
        if not stem:
            return ()
        names = (f"{stem}.cpp", f"{stem}Pass.cpp")
        named = sorted(path for path in paths if path.rpartition("/")[2] in names)
        of_backend = []
        for path in named:
            if not folders.isdisjoint(path.split("/")[1:-1]):
                of_backend.append(path)
        return tuple(of_backend or named)

    def words(self) -> list[tuple[str, int]]:
        """Return patterns of words in a commit that made the change, and scores."""
        patterns = list[tuple[str, int]]()
        for name, pattern in _TARGETS.items():
            if any(name in target for target in self.targets):
                patterns.append((pattern, 1))
        folders = {_FOLDERS.get(name, "SPIRV") for name in self.backends}
        patterns += [(rf"\b{folder}\b", 1) for folder in sorted(folders)]
        kind = self.dispatch.partition("dispatch_")[2]
        patterns += [(_KINDS[name], 1) for name in _KINDS if f"_{name}_" in kind]
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
        changed = [line for text in texts for line in _LINE.findall(text)]
        by_place = {
            "title": "\n".join(commit.title for commit in group),
            "message": "\n".join(commit.message for commit in group),
            "diff": "\n".join(changed),
        }
        score, is_own, matches = self._matches(by_place)
        if any(map(self.is_turned_by, texts)):
            score += _TURN
            is_own = True
            in_diff = matches.get("diff", [])
            matches["diff"] = [word for word in in_diff if word not in self.knob]
            matches["diff"].append(" ".join(self.turn))
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
        return score >> is_foreign + bool(is_fix), "; ".join(reasons), is_own

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
    operations = [name for name in passed.operations if name != REGION]
    names = dict.fromkeys(name.partition(" ")[0] for name in operations)
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
        patterns += [(part, 1) for part in knob.split("_") if len(part) > 3]
    elif knob != PIPELINE:
        patterns.append((rf'"{knob}"|\b{knob} ?=', 2 * _OWN))
    names = dict.fromkeys(re.findall(r"[A-Z][a-z]+[A-Z]\w+", change))
    return patterns + [(name, 2 * _OWN) for name in names]


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
    backends = {**report.base.targets, **report.head.targets}
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


class _Looked(NamedTuple):
    """The result of a look at the compiler's history for one clue."""

    files: tuple[str, ...]
    commits: Mapping[str, Commit]  # SHA → commit, of those that touched the files
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
    looked = dict[int, _Looked]()
    try:
        _look(clues, source=source, revisions=(base, head), looked=looked, diffs=diffs)
    except Interrupted:
        raise
    except BotError as error:
        reason = error.line
    for place, history in looked.items():
        answer = _answer(history, touched_files[place], diffs)
        suspects = _suspects(
            clues[place],
            commits=[*history.commits.values()],
            diffs=diffs,
            address=source.address,
        )
        answers[place] = (answer, suspects)
    return answers, reason


def _look(
    clues: Sequence[Clue],
    source: CompilerHistory,
    revisions: tuple[str, str],
    looked: dict[int, _Looked],
    diffs: dict[str, str],
) -> None:
    """Ask the compiler's history for each clue, and read the likeliest diffs.

    The likeliest diffs of every clue come before the further ones of any.

    Args:
        revisions: base's and head's.
        looked: gets the history by the place of a clue.
        diffs: gets the diffs by SHA. Both keep what was read before an error.
    """
    base, head = revisions
    listed = lru_cache(None)(lambda file: source.commits(file, base, head))
    paths = source.paths(head)
    for limit in _DIFFS:
        for place, clue in enumerate(clues):
            if place not in looked:
                looked[place] = _looked(
                    clue, source=source, paths=paths, base=base, listed=listed
                )
            likely = _likely(clue, looked[place].commits.values())
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
    looked: _Looked, touched: tuple[str, ...], diffs: Mapping[str, str]
) -> LookedUp:
    """Return the answer that a report shows about a clue's files.

    Args:
        looked: what the compiler's history has for the clue.
        touched: the files that the pull request changes.
        diffs: SHA → diff, of the commits whose diff was read.
    """
    note = looked.note
    if unread := len(looked.commits.keys() - diffs.keys()):
        note = f"only the messages of {unread} of these commits could be read"
    return LookedUp(
        files=looked.files,
        commits=len(looked.commits) if looked.files else None,
        note=note,
        this_pull_request=touched,
    )


def _looked(
    clue: Clue,
    source: CompilerHistory,
    paths: Mapping[str, str],
    base: str,
    listed: Callable[[str], Sequence[Commit]],
) -> _Looked:
    """Look up the files of a clue, and the commits that touched them."""
    files = clue.files(paths)
    commits = {commit.sha: commit for file in files for commit in listed(file)}
    note = ""
    if not files:
        note = _without_file(clue, source=source, paths=paths, base=base)
    return _Looked(files, commits, note)


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
    scored = [(*clue.score(group, diffs), group) for group in groups.values()]
    scored.sort(key=lambda row: -row[0])
    scored.sort(key=lambda row: all(_IDLE.search(commit.title) for commit in row[3]))
    suspects = list[Suspect]()
    for _, reason, is_own, (newest, *older) in scored:
        is_undone = older and re.match("revert|roll", newest.title, re.IGNORECASE)
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


def _subject(commit: Commit) -> str:
    """Return a commit's title without a number, and without `Revert` or `Reland`."""
    subject = commit.title
    while again := _AGAIN.match(subject):
        subject = again[2]
    return re.sub(r"\s*\(#\d+\)", "", subject).strip().casefold()


def clone_source(directory: Path, repository: str, cancel: Cancel) -> CompilerHistory:
    """Return a clone, which is only read; the network is not asked."""
    git = Git(directory, cancel)
    # a clone without all objects would fetch them
    environment = {"GIT_NO_LAZY_FETCH": "1"}
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature")

    def text(revision: str, *arguments: str) -> str:
        if not git(
            "cat-file", "-e", f"{revision}^{{commit}}", environment=environment
        ).ok:
            raise InputError(
                f"has no commit {revision[:10]}", where=f"the clone {directory.name}"
            )
        return git.text(*arguments, environment=environment)

    def paths(revision: str) -> Mapping[str, str]:
        objects = dict[str, str]()
        for entry in text(revision, "ls-tree", "-r", "-z", revision).split("\0"):
            kind, _, path = entry.partition("\t")
            if path:
                objects[path] = kind.split(" ")[2]
        return objects

    def commits(path: str, base: str, head: str) -> Sequence[Commit]:
        log = text(
            base,
            "log",
            "-z",
            *plain,
            "--format=%H%x00%cs%x00%B",
            f"{base}...{head}",
            "--",
            path,
        ).split("\0")
        # The text after the last NUL is no field of a commit.
        return list(map(Commit, log[::3], log[1::3], map(str.strip, log[2::3])))

    show = ("show", *plain, "--format=", "--unified=0")
    if repository:
        address = f"https://github.com/{repository}"
    else:
        address = ""
    return CompilerHistory(
        address=address,
        paths=paths,
        commits=commits,
        diff=lambda sha: text(sha, *show, sha)[:_MOST_DIFF_CHARACTERS],
    )


class _TreeEntry(Small, frozen=True):
    path: str
    sha: str


class _Tree(Small, frozen=True):
    """The files of a revision."""

    sha: str
    truncated: bool
    tree: list[_TreeEntry]


class _Committer(Small, frozen=True):
    date: str


class _CommitText(Small, frozen=True):
    committer: _Committer
    message: str


class _Listed(Small, frozen=True):
    """A commit in a list."""

    sha: str
    commit: _CommitText


class _ChangedFile(Small, frozen=True):
    # empty for a binary file and for a large change
    patch: str = ""


class _Changes(Small, frozen=True):
    """The changes of a commit."""

    files: list[_ChangedFile]


def github_source(
    api_url: str, server_url: str, token: str, repository: str, cache: Path
) -> CompilerHistory:
    """Return the repository on GitHub, for a few requests with short waits.

    `token` may be empty.
    """
    # each costs a tenth of a second to import
    from bot.system.hub import connect
    from bot.system.refusals import explain

    hub = connect(
        api_url, token, repository, timeout_seconds=10, retries=1, max_wait_seconds=5
    )
    requests = list[str]()

    def ask(kind: type[_T], place: str, **query: str | int) -> _T:
        """Return an answer of GitHub.

        The cache keeps it: answers about full revisions do not change.
        """
        address = f"{place}?{urlencode(query)}"
        key = hashlib.sha256(f"{api_url} {repository} {address}".encode()).hexdigest()
        file = cache / "history" / f"{key}.json"
        with suppress(msgspec.DecodeError):
            stored = msgspec.json.decode(whole_or_nothing(file), type=kind)
            touch(file)
            return stored
        if len(requests) >= _MOST_REQUESTS:
            raise InputError(
                f"the limit of {_MOST_REQUESTS} requests was reached", where=repository
            )
        requests.append(address)
        with explain(f"read the history of {repository}", "contents: read"):
            stored = hub.get(kind, place, **query)
        add(cache, file, canonical(stored))
        return stored

    def tree(answer: _Tree) -> dict[str, str]:
        if answer.truncated:
            problem = f"has too many files at {answer.sha[:10]}"
            raise InputError(problem, where=repository)
        return {entry.path: entry.sha for entry in answer.tree}

    def listed(answer: list[_Listed]) -> list[Commit]:
        return [
            Commit(entry.sha, entry.commit.committer.date, entry.commit.message)
            for entry in answer
        ]

    def patches(answer: _Changes) -> str:
        text = "\n".join(file.patch for file in answer.files)
        return text[:_MOST_DIFF_CHARACTERS]

    def commits(path: str, base: str, head: str) -> Sequence[Commit]:
        one_sided = set[Commit]()
        total = 0
        since = ""
        for sha in (head, base):
            side = listed(
                ask(list[_Listed], "commits", sha=sha, path=path, per_page=_PAGE)
            )
            total += len(side)
            # What both have is taken away.
            one_sided ^= set(side)
            # Commits older than a full page are not known: no commit as old as its
            # last one is named.
            if len(side) == _PAGE:
                since = max(since, min(commit.date for commit in side))
        if since and len(one_sided) == total:
            raise InputError(
                f"more than {_PAGE} commits touched {path}", where=repository
            )
        newer = [commit for commit in one_sided if commit.date > since]
        newer.sort(key=lambda commit: (commit.date, commit.sha), reverse=True)
        return newer

    return CompilerHistory(
        address=f"{server_url}/{repository}",
        paths=lambda revision: tree(ask(_Tree, f"git/trees/{revision}", recursive=1)),
        commits=commits,
        diff=lambda sha: patches(ask(_Changes, f"commits/{sha}", per_page=_PAGE)),
    )
