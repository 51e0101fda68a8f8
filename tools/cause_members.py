"""Each member of each root cause held against the words of its cause, by something that shares no code with the bot.

`python -m cause_members REPORT_DIR --base IREE_COMPILE --head IREE_COMPILE --home DIR`,
with the native compilers of both sides and the directory that the printed commands are
relative to.

A knob: `report.json` has the configuration of every member, which is parsed here anew;
that of the largest members is taken from the compilers' own dumps, too. A pass: the
largest members are compiled alone by both compilers with their IR printed, whose
operations are counted here anew; before the pass the sides have to be at most half as
far apart as after it, and after it to differ by just the operations that the report
has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cause_reading import Function, functions, same
from evidence_work import home_of

SIDES = ("base", "head")
KNOB = re.compile(
    r"(\w+) (.+? → .+?|.+ in \d+ configurations? (?:fewer|more))(?:, with ([\w, ]+))?"
)
PASS = re.compile(r"(.+?): ([\d,]+)(?: to ([\d,]+))? (.+) (more|fewer)")
MLIR_HEADER = re.compile(r"// -----// IR Dump After \S+?:? \(?([\w-]+)")
LLVM_HEADER = re.compile(
    r"\*\*\* IR Dump (Before|After) (.+?)(?: \(([\w-]+)\))?(?: on .*)? \*\*\*"
)
OPERATION = re.compile(r'(?:^|= |\{ )\s*"?([a-z_]\w*\.[\w.]+)')
INSTRUCTION = re.compile(r"(?:^|= )(?:\d+B)?\s*(?:[a-z][\w-]* )*([A-Z]\w+)")
LLVM_INSTRUCTION = re.compile(
    r"^  (?:%\S+ = )?(?:(?:tail|musttail|notail) )?(call .*?@llvm\.[\w.]+|[a-z]\w+)"
)
TYPES = re.compile(
    r"(?:vector|tensor|memref)<[^<>,]*|<\d+ x"
    r" \w+>|\b(?:index|[iu]\d+|bf16|[fF]\d+\w*)\b"
)
SUFFIX = re.compile(r"\.(?:(?:nx)?v\d+\w+|[fip]\d+|bf16)(?=\.|\Z)")
NO_CODE = re.compile(
    r"\W(?:llvm\.)?(?:intr\.)?(?:assume|lifetime\.\w+)\b|IMPLICIT_DEF|KILL|CFI_INSTR|LIFETIME_|assume_"
)
"""What becomes no code; nor does the report count it."""
PASSES_OF_LLVM = {
    "VectorCombinePass": "vector-combine",
    "InstCombinePass": "instcombine",
    "SLPVectorizerPass": "slp-vectorizer",
    "SROAPass": "sroa",
    "EarlyCSEPass": "early-cse",
    "GVNPass": "gvn",
    "SimplifyCFGPass": "simplifycfg",
    "LoopUnrollPass": "loop-unroll",
    "LoopVectorizePass": "loop-vectorize",
}
"""Class that LLVM's dumps name → the pass as `--print-after` calls it.

Of other passes all changes are printed.
"""


@dataclass(frozen=True)
class Member:
    """A dispatch of a cell, as `report.json` has it."""

    cell: Mapping[str, Any]
    row: Mapping[str, Any]

    @property
    def change_bytes(self) -> int:
        """Return head's code − base's; 0 if it is the same.

        If only one side has the dispatch, the size is that of its whole
        executable.
        """
        base = self.row["base"]
        head = self.row["head"]
        if not (base and head):
            only_row = head or base
            size = only_row.get("executable_bytes")
            return ((only_row["code_bytes"] if size is None else size) or 0) * (
                1 if head else -1
            )
        same_code = base["code"] is not None and base["code"] == head["code"]
        return 0 if same_code else (head["code_bytes"] or 0) - (base["code_bytes"] or 0)

    def __str__(self) -> str:
        """Return a name such as `main_dispatch_9 of bert_l4 on llvm-cpu-x86_64`."""
        return f"{self.row['name']} of {self.cell['model']} on {self.cell['target']}"


@dataclass
class Checked:
    """A root cause, and what became of its members."""

    root: Mapping[str, Any]
    members: list[Member] = field(default_factory=list)
    true: int = 0  # how many fit the words by what the report's files say
    compiled: int = 0  # how many of these were compiled anew, and fit
    alone: int = 0  # of the members of a knob, how many have no other knob that differs
    false: list[str] = field(default_factory=list)  # members that do not fit, and why
    # members that could not be compiled anew, and why
    open: list[str] = field(default_factory=list)


# Knobs


def knob_values(text: str) -> dict[str, list[str]]:
    """Return name → its values in order, of a configuration.

    The first word without a name is the `pipeline`.
    """
    values = defaultdict[str, list[str]](list)
    unnamed = []
    position = 0
    while position < len(text):
        if not (word := re.compile(r"#?[\w.+-]+").match(text, position)):
            position += 1
            continue
        position = word.end()
        if text[position : position + 3] != " = ":
            unnamed.append(word[0])
            continue
        position += 3
        if text[position] == "[":
            end = position
            depth = 0
            while end < len(text) and (depth or end == position):
                depth += {"[": 1, "]": -1}.get(text[end], 0)
                end += 1
        else:
            end = position + len(re.compile(r"#?[\w.+-]*").match(text, position)[0])  # type: ignore[index] # may be empty
        if end > position:
            values[word[0]].append(text[position:end])
        position = max(end, position)
    plain_words = [word for word in unnamed if not word.startswith("#")]
    if "pipeline" not in values and plain_words:
        values["pipeline"] = [plain_words.pop(0)]
    return {**{word: ["set"] for word in plain_words}, **values}


def knob_problem(words: str, base: str, head: str) -> str:
    """Return why the words of a knob's cause are not true of these two configurations.

    Empty if they are true.
    """
    claim = KNOB.fullmatch(words)
    if claim is None:
        return "the words name no knob"
    base_values = knob_values(base)
    head_values = knob_values(head)
    old = base_values.get(claim[1], [])
    new = head_values.get(claim[1], [])
    for other_knob in filter(None, (claim[3] or "").split(", ")):
        if base_values.get(other_knob) == head_values.get(other_knob):
            return f"{other_knob} does not differ"
    gone = Counter(old) - Counter(new)
    come = Counter(new) - Counter(old)
    if counted := re.fullmatch(r"(.+) in (\d+) configurations? (fewer|more)", claim[2]):
        changed, other_way = (gone, come) if counted[3] == "fewer" else (come, gone)
        fits = (
            changed.total() == int(counted[2])
            and set(changed) == set(counted[1].split("; "))
            and not other_way
        )
    elif re.fullmatch(r"-?\d+ → -?\d+(?: and -?\d+ → -?\d+)*", claim[2]):
        numbers = [re.findall(r"-?\d+", "; ".join(side)) for side in (old, new)]
        pairs = {
            f"{old_number} → {new_number}"
            for old_number, new_number in zip(*numbers, strict=False)
            if old_number != new_number
        }
        fits = len(numbers[0]) == len(numbers[1]) and pairs == set(
            claim[2].split(" and ")
        )
    else:
        sides = [
            [] if setting == "not set" else setting.split("; ")
            for setting in claim[2].split(" → ", 1)
        ]
        fits = [Counter(old), Counter(new)] == [Counter(side) for side in sides]
    return (
        ""
        if fits
        else (
            f"{claim[1]} is {'; '.join(old) or 'not set'} on base and"
            f" {'; '.join(new) or 'not set'} on head"
        )
    )


def is_alone(words: str, base: str, head: str) -> bool:
    """Return whether nothing but the knob of these words differs."""
    base_values = knob_values(base)
    head_values = knob_values(head)
    return {
        name
        for name in {**base_values, **head_values}
        if base_values.get(name) != head_values.get(name)
    } == {words.split()[0]}


# The members of a cause


def members_of(report: Mapping[str, Any]) -> list[Checked]:
    """Return the root causes with a knob or a pass, and the dispatches that fit each.

    A dispatch that several knobs fit belongs to the pipeline, else to the cause
    with most bytes. As in the report, each delta counts one byte more. If the members do not add up to what the
    cause counts, those that are missing are false.
    """
    checked = [Checked(root) for root in report["root_causes"] if named(root)]
    by_weight = sorted(
        checked,
        key=lambda cause: (
            not cause.root["what"].startswith("pipeline "),
            -cause.root["bytes"]["absolute"] - cause.root["bytes"]["deltas"],
        ),
    )
    backends = {**report["base"]["targets"], **report["head"]["targets"]}
    for cell in report["cells"]:
        for row in cell.get("dispatches", ()):
            if row["cause"] not in (*EARLY, "strategy", "codegen") or not (
                (row["base"] and row["head"]) or row.get("pass")
            ):
                continue
            for cause in by_weight:
                near = {backends.get(target) for target in cause.root["targets"]}
                if (
                    row["cause"] == cause.root["cause"]
                    and backends.get(cell["target"]) in near
                    and fits(cause.root, row)
                ):
                    cause.members.append(Member(cell, row))
                    break
    for cause in checked:
        for target, tally in cause.root["by_target"].items():
            sizes = [
                member.change_bytes
                for member in cause.members
                if member.cell["target"] == target
            ]
            sums = {
                "deltas": len(sizes),
                "net": sum(sizes),
                "absolute": sum(map(abs, sizes)),
            }
            cause.true += min(len(sizes), tally["deltas"])
            missing = max(tally["deltas"] - len(sizes), int(sums != tally))
            cause.false += [
                f"{target}: {sums} fit the words, the report has {tally}"
            ] * missing
    return checked


EARLY = ("input", "fusion")
"""Causes with a pass over the whole program; none of these is compiled anew."""
REGION = "flow.dispatch.region"
"""The operation of new dispatches, which a cause names before any other one."""


def named(root: Mapping[str, Any]) -> bool:
    """Return whether a root cause has a knob or a pass in its words."""
    if root["cause"] == "strategy":
        return KNOB.fullmatch(root["what"]) is not None
    return bool(root["cause"] in (*EARLY, "codegen") and root["pass"])


def fits(root: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether the report's own row of a dispatch says what the cause says."""
    if root["cause"] == "strategy":
        return not knob_problem(
            root["what"], row["base"]["strategy"] or "", row["head"]["strategy"] or ""
        )
    claim = PASS.fullmatch(root["what"])
    operations = row.get("operations")
    if claim is None or not operations or row.get("pass") != claim[1]:
        return False
    largest = max(
        operations,
        key=lambda name: (abs(operations[name]), [-ord(letter) for letter in name]),
    )
    name = REGION if REGION in operations else largest
    smallest_count, largest_count = (
        int((number or claim[2]).replace(",", "")) for number in (claim[2], claim[3])
    )
    count = operations[name]
    fits_count = bool(
        (count > 0) == (claim[5] == "more")
        and smallest_count <= abs(count) <= largest_count
    )
    return fits_count and bool(name == claim[4])


# What the compilers say


@dataclass(frozen=True)
class Compilers:
    """The native compilers of both sides, and the folders that they work with.

    Printed commands run in `homes`, and dumps are kept in `scratch`.
    """

    binaries: Mapping[str, Path]
    homes: Mapping[str, Path]
    scratch: Path

    def flags(self, cell: Mapping[str, Any], side: str) -> list[str]:
        """Return the words between model and artifact in the printed command."""
        command = shlex.split(cell["command"][side])
        return command[command.index("iree-compile") + 2 : command.index("-o")]

    def dumped(
        self, cell: Mapping[str, Any], side: str, phase: str, option: str
    ) -> Path:
        """Run the printed command up to a phase, with a dump option.

        Returns the directory that it filled.
        """
        line = cell["command"][side]
        binary = self.binaries[side]
        out = (
            self.scratch
            / hashlib.sha256(f"{binary} {phase} {line}".encode()).hexdigest()[:16]
        )
        if not out.is_dir():
            with tempfile.TemporaryDirectory(dir=self.scratch) as name:
                dumping = f"{binary} - --compile-to={phase} {option}={name}/dump"
                line = line.replace("iree-compile -", dumping, 1).replace(
                    f"-o {cell['model']}.vmfb", "-o /dev/null"
                )
                home = home_of(line, self.homes[side])
                subprocess.run(
                    ["sh", "-c", line], cwd=home, capture_output=True, check=True
                )
                (Path(name) / "dump").rename(out)
        return out

    def function(self, member: Member, side: str) -> Function:
        """Return source and configuration of a dispatch in the compiler's dumps."""
        out = self.dumped(
            member.cell,
            side,
            "executable-configurations",
            "--dump-compilation-phases-to",
        )
        sources, configured = (
            next(out.glob(f"*.executable-{phase}.mlir")).read_text(encoding="utf-8")
            for phase in ("sources", "configurations")
        )
        name = same(member.row[side]["name"])
        return next(
            function
            for function in functions(sources, configured)
            if function.name == name
        )

    def dumps(self, member: Member, side: str, options: Sequence[str]) -> Iterator[str]:
        """Yield the lines that a compile of the dispatch alone prints."""
        out = self.dumped(
            member.cell,
            side,
            "executable-sources",
            "--iree-hal-dump-executable-sources-to",
        )
        executable = re.compile(
            r"hal\.executable (?:public |private"
            rf" )?@{re.escape(member.row[side]['executable'])}\s"
        )
        source = next(
            path
            for path in sorted(out.glob("*.mlir"))
            if executable.search(path.read_text(encoding="utf-8")[:4096])
        )
        command = [
            *(str(self.binaries[side]), str(source), *self.flags(member.cell, side)),
            *(
                "--compile-from=executable-sources",
                "--compile-mode=hal-executable",
                "--mlir-disable-threading",
            ),
            *(*options, "-o", "/dev/null"),
        ]
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                yield line[:65536].decode(errors="replace").rstrip("\n")
            if process.wait():
                raise ValueError(
                    f"the traced compile of {side} ended with {process.returncode}"
                )


State = tuple[str, Counter[str]]  # A pass, and the operations with their types after it


def mlir_states(lines: Iterable[str], function: str) -> Iterator[State]:
    """Yield the function after each pass that printed it."""
    opening = re.compile(
        rf"( *)(?:func|llvm|spirv|vm)\.func\b[^@]*@{re.escape(function)}\(.*\{{$"
    )
    name = ""
    closing = ""
    counts = Counter[str]()
    for line in lines:
        if header := MLIR_HEADER.match(line):
            name = header[1]
            closing = ""
        elif closing and line == closing:
            yield name, counts
            closing = ""
        elif closing:
            tail = " ".join(dict.fromkeys(TYPES.findall(line.rpartition(" : ")[2])))
            counts.update(
                f"{operation} {tail}".strip()
                for operation in OPERATION.findall(line)
                if not NO_CODE.search(f" {operation}")
            )
        elif name and (function_at := opening.match(line)):
            closing = function_at[1] + "}"
            counts = Counter()


def llvm_states(
    lines: Iterable[str], function: str
) -> Iterator[tuple[str, str, Counter[str]]]:
    """Yield `Before` or `After`, the pass, and the function at that time."""
    opening = re.compile(
        rf"(?:# Machine code for function {re.escape(function)}:|define"
        rf' [^@]*@"?{re.escape(function)}"?\()'
    )
    when = name = closing = ""
    form = INSTRUCTION
    counts = Counter[str]()
    for line in lines:
        if header := LLVM_HEADER.search(line):
            when = header[1]
            name = header[3] or header[2]
            closing = ""
        elif closing and line.startswith(closing):
            yield when, name, counts
            closing = ""
        elif closing and (item := form.search(line)) and not NO_CODE.search(f" {line}"):
            is_machine = form is INSTRUCTION
            plain = (
                item[1] if is_machine else SUFFIX.sub("", item[1].rpartition("@")[2])
            )
            types = "" if is_machine else " ".join(dict.fromkeys(TYPES.findall(line)))
            counts[f"{plain} {types}".strip()] += 1
        elif name and opening.match(line):
            form = INSTRUCTION if line.startswith("#") else LLVM_INSTRUCTION
            closing = "# End machine code" if line.startswith("#") else "}"
            counts = Counter()


def by_name(counts: Mapping[str, int]) -> Counter[str]:
    """Return the counts by name, without types."""
    sums = Counter[str]()
    for name, count in counts.items():
        sums[name.partition(" ")[0]] += count
    return sums


def distance(base: Counter[str], head: Counter[str]) -> int:
    """Return how many operations one side has and the other has not.

    It is the number of the side with more of them.
    """
    return max((head - base).total(), (base - head).total())


def bare(name: str) -> str:
    """Return a pass's name without what releases spell differently."""
    return name.replace("codegen-", "").replace("-", "").lower()


def pass_problem(member: Member, compilers: Compilers) -> str:
    """Return why the pass that the report names does not part the two compiles.

    Empty if it does.
    """
    name = member.row["pass"]
    operations = member.row["operations"]
    mlir = [
        "--mlir-print-ir-after-all",
        "--mlir-print-ir-after-change",
        "--mlir-elide-elementsattrs-if-larger=8",
    ]
    entries = {side: member.row[side]["name"] for side in SIDES}
    states = {
        side: list(mlir_states(compilers.dumps(member, side, mlir), entries[side]))
        for side in SIDES
    }
    if any(
        bare(pass_name) == bare(name) for side in SIDES for pass_name, _ in states[side]
    ):
        return _mlir_problem(states, name, operations)
    llvm_name = PASSES_OF_LLVM.get(name, name)
    spelled = ",".join(
        {
            llvm_name,
            llvm_name.replace("-", ""),
            "prolog-epilog" if llvm_name == "prologepilog" else llvm_name,
        }
    )
    around = [f"--print-before={spelled}", f"--print-after={spelled}"]
    states_of_pass = {}
    for side in SIDES:
        options = [*around, f"--filter-print-funcs={entries[side]}"]
        states_of_pass[side] = [
            state
            for state in llvm_states(
                compilers.dumps(member, side, options), entries[side]
            )
            if bare(state[1]) == bare(name)
        ]
    pairs = {
        side: list(
            zip(states_of_pass[side][::2], states_of_pass[side][1::2], strict=False)
        )
        for side in SIDES
    }
    if not all(pairs.values()):
        raise ValueError(
            f"{name} was printed on {sum(map(bool, pairs.values()))} sides"
        )
    problems = [
        _problem(
            before[2],
            head_before=other_before[2],
            base=after[2],
            head=other_after[2],
            claim=operations,
        )
        for (before, after), (other_before, other_after) in zip(
            pairs["base"], pairs["head"], strict=False
        )
    ]
    return "" if "" in problems else problems[-1]


class _Moment(NamedTuple):
    """A place in the states of a side.

    Attributes:
        runs_pass: False if the side lacks the pass; the place is then its last common pass.
    """

    place: int
    runs_pass: bool


def _mlir_problem(
    states: Mapping[str, list[State]], name: str, operations: Mapping[str, int]
) -> str:
    """Return why the pass does not part the two compiles, at any time that it runs.

    If one side has no such pass, its state after the last common pass counts.
    """
    places = {side: _places(states[side], name) for side in SIDES}
    problems = []
    for number in range(max(map(len, places.values()))):
        moments = dict[str, _Moment]()
        for side, other_side in (SIDES, SIDES[::-1]):
            if number < len(places[side]):
                moments[side] = _Moment(places[side][number], runs_pass=True)
                continue
            other_place = places[other_side][number]
            moment = _last_common_pass(states[side], states[other_side][:other_place])
            if moment is None:
                return f"{name}: {side} is not comparable"
            moments[side] = moment
        base_before, base = _around(states["base"], moments["base"])
        head_before, head = _around(states["head"], moments["head"])
        problems.append(
            _problem(
                base_before,
                head_before=head_before,
                base=base,
                head=head,
                claim=operations,
            )
        )
    if "" in problems and not distance(states["base"][-1][1], states["head"][-1][1]):
        return "the sides meet again before LLVM"
    return "" if "" in problems else problems[-1]


def _places(states: Iterable[State], name: str) -> list[int]:
    """Return the places at which a pass runs."""
    places = []
    for place, (pass_name, _) in enumerate(states):
        if bare(pass_name) == bare(name):
            places.append(place)
    return places


def _last_common_pass(
    states: Sequence[State], other_states: Sequence[State]
) -> _Moment | None:
    """Return where a side has the last pass of the other side that it runs, too.

    Args:
        states: those of the side that lacks a pass.
        other_states: those of the other side before that pass.
    """
    names = {bare(pass_name) for pass_name, _ in states}
    common = [pass_name for pass_name, _ in other_states if bare(pass_name) in names]
    if not common:
        return None
    count = len(_places(other_states, common[-1]))
    places = _places(states, common[-1])
    return _Moment(places[min(count, len(places)) - 1], runs_pass=False)


def _around(
    states: Sequence[State], moment: _Moment
) -> tuple[Counter[str], Counter[str]]:
    """Return the operations before and after a moment; equal if the side lacks the pass."""
    after = states[moment.place][1]
    if not moment.runs_pass:
        return after, after
    if moment.place == 0:
        return Counter(), after
    return states[moment.place - 1][1], after


def _problem(
    base_before: Counter[str],
    head_before: Counter[str],
    base: Counter[str],
    head: Counter[str],
    claim: Mapping[str, int],
) -> str:
    for name, count in claim.items():
        sides = (base, head) if " " in name else (by_name(base), by_name(head))
        if (actual := sides[1][name] - sides[0][name]) != count:
            return f"{name} differs by {actual:+,}, not by {count:+,}"
    before = distance(base_before, head_before)
    after = distance(base, head)
    return (
        f"{before:,} operations are apart before it, {after:,} after it"
        if 2 * before > after
        else ""
    )


def check(out: Path, compilers: Compilers, most: int, jobs: int = 1) -> list[Checked]:
    """Check all root causes of a report that have a knob or a pass.

    Args:
        out: the directory with `report.json`.
        most: how many members are compiled anew for passes, and again for knobs. The
            largest member of each cause comes first.
    """
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    checked = members_of(report)
    for cause_checked in checked:
        cause_checked.members.sort(
            key=lambda member: (-abs(member.change_bytes), str(member))
        )
        if cause_checked.root["cause"] == "strategy":
            pairs = [
                [member.row[side]["strategy"] or "" for side in SIDES]
                for member in cause_checked.members
            ]
            cause_checked.alone = sum(
                is_alone(cause_checked.root["what"], *pair) for pair in pairs
            )
        elif cause_checked.root["cause"] == "codegen":
            changed = [
                str(member)
                for member in cause_checked.members
                if member.row["base"]["strategy"] != member.row["head"]["strategy"]
            ]
            cause_checked.false += [
                f"{name}: its configuration differs, too" for name in changed
            ]
    for cause in ("strategy", "codegen"):
        ranked = [
            (rank > 0, -abs(member.change_bytes), str(member), cause_checked, member)
            for cause_checked in checked
            if cause_checked.root["cause"] == cause
            for rank, member in enumerate(cause_checked.members)
        ]
        chosen = [
            (cause_checked, member)
            for *_, cause_checked, member in sorted(
                ranked, key=lambda place: place[:3]
            )[:most]
        ]
        with ThreadPoolExecutor(jobs) as pool:
            answers = [
                pool.submit(problem_of, cause_checked, member, compilers)
                for cause_checked, member in chosen
            ]
        for (cause_checked, member), answer in zip(chosen, answers, strict=True):
            try:
                problem = answer.result()
            except NoAnswer as error:
                cause_checked.open.append(f"{member}: no answer: {error}")
                continue
            if problem:
                cause_checked.false.append(f"{member}: {problem}")
            else:
                cause_checked.compiled += 1
    return checked


class NoAnswer(Exception):
    """The compilers gave no answer about a member."""


def problem_of(cause: Checked, member: Member, compilers: Compilers) -> str:
    """Return what both compilers contradict; empty if nothing. Raises NoAnswer."""
    try:
        if cause.root["cause"] == "codegen":
            return pass_problem(member, compilers)
        base, head = (compilers.function(member, side) for side in SIDES)
        if base.source != head.source:
            return "its source differs, too"
        # each once, as the report has them
        texts = [" | ".join(dict.fromkeys(side.settings)) for side in (base, head)]
        return knob_problem(cause.root["what"], *texts)
    except (OSError, ValueError, StopIteration, subprocess.CalledProcessError) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}"[:300]) from error


def main() -> int:
    """Print a line for each root cause; 1 where a member does not fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    for side in SIDES:
        parser.add_argument(
            f"--{side}", type=Path, required=True, metavar="IREE_COMPILE"
        )
    parser.add_argument("--home", type=Path, default=Path.cwd())
    parser.add_argument(
        "--most",
        type=int,
        default=20,
        help="members of passes, and of knobs, that are compiled anew",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--scratch",
        type=Path,
        help="directory that keeps the dumps (default: they are deleted)",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="members-") as name:
        scratch = options.scratch or Path(name)
        scratch.mkdir(parents=True, exist_ok=True)
        binaries = {side: getattr(options, side).resolve() for side in SIDES}
        checked = check(
            options.out,
            Compilers(binaries, dict.fromkeys(SIDES, options.home), scratch),
            options.most,
            options.jobs,
        )
    for cause in checked:
        alone_note = (
            f", {cause.alone} differ in nothing else"
            if cause.root["cause"] == "strategy"
            else ""
        )
        print(
            f"{cause.true} of {cause.root['bytes']['deltas']} members, {cause.compiled}"
            f" compiled anew, {len(cause.false)} false{alone_note}: {cause.root['what']}"
        )
        for line in (*cause.false, *cause.open):
            print(f"    {line}")
    return 1 if any(cause.false for cause in checked) else 0


if __name__ == "__main__":
    sys.exit(main())
