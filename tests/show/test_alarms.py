"""What alarms, what changed, what was compared, and what there is no room for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots

from bot.config.configuration import load_config
from bot.core.findings import Finding, Status, Verdict
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.policy import judge
from bot.core.report import Report
from bot.core.rules import DEFAULT_STATES
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Failure, Snapshot
from bot.show.alarms import BROKEN, Alarm, AlarmGroup, alarms
from bot.show.blocks import Code, Sentence, fair, fair_in_order, plain
from bot.show.changes import changes, compiler_name
from bot.show.compared import reproduce
from bot.show.facts import Facts, build_facts, cells_phrase
from bot.show.failures import trimmed, unmeasured
from bot.show.findings import findings
from bot.show.fit import drawable
from bot.show.views import COMMENT, View

ROOMY = View(
    place="summary",
    grid_models=5_000,
    grid_width=10_000,
    failures=500,
    lines=50,
    alarms=40,
    findings=5_000,
    changed=5_000,
    names=50_000,
    commands=5_000,
    causes=5_000,
)

MANY = make.many()
MODELS = ("bert", "gpt2", "vit")
TARGETS = {
    "cuda": "cuda",
    "llvm-cpu-x86_64": "llvm-cpu",
    "vmvx": "vmvx",
}
KEY = make.GROWN.key


def of(base: make.Edit, head: make.Edit) -> Report:
    return make.report(
        make.snapshot("1", base, MODELS, TARGETS),
        make.snapshot("2", head, MODELS, TARGETS),
    )


def same(_key: CellKey, cell: Cell) -> Cell:
    return cell


CHANGED = of(
    same, lambda _key, cell: replace(make.grown(cell, artifact_bytes=8), compiles=2)
)


def told(report: Report, view: View = ROOMY) -> list[Alarm]:
    return [
        line
        for group in alarms(build_facts(report), view, view.alarms)
        for line in group.lines
    ]


def lines(report: Report, view: View = ROOMY) -> list[str]:
    return [f"{line.mark} {plain(line.text)}" for line in told(report, view)]


def groups(report: Report, view: View = ROOMY) -> dict[str, AlarmGroup]:
    return {group.title: group for group in alarms(build_facts(report), view)}


def with_(*findings: Finding, report: Report = CHANGED) -> Report:
    return replace(report, verdict=Verdict("fail", findings))


# One line for one metric and one root cause.

ARTIFACT = "code size, bert on vmvx: 50,438 → 83,990 B (+66.5 %); limit"


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (make.GROWN, f"❌ {ARTIFACT} 54,534 B"),
        (replace(make.GROWN, limit="1.5%", allowed=756), f"❌ {ARTIFACT} 51,194 B"),
        (replace(make.GROWN, accepted="a"), f"☑️ {ARTIFACT} 54,534 B"),
        (
            make.OVER,
            "❌ stack frame, bert on vmvx: 8,000 → 9,011 B (+12.6 %); limit 8 KiB",
        ),
        (
            replace(make.OVER, base=None),
            "❌ stack frame, bert on vmvx: 9,011 B; limit 8 KiB",
        ),
        (
            replace(make.GROWN, level="warn", head=None),
            "⚠️ code size, bert on vmvx: 50,438 B on base, unknown on head",
        ),
        (
            replace(
                make.GROWN, metric="executables", base=0, head=2, limit="0", allowed=0
            ),
            "❌ executables, bert on vmvx: 0 → 2 (new); limit 0",
        ),
    ],
)
def test_a_line_says_what_where_how_much_and_what_is_allowed(
    finding: Finding, line: str
) -> None:
    assert lines(with_(finding)) == [line]


def test_cells_of_one_metric_and_cause_are_one_line() -> None:
    equal_findings = [
        replace(make.GROWN, key=CellKey(model, "vmvx")) for model in MODELS
    ]
    distinct = [
        replace(finding, head=83_990 + number)
        for number, finding in enumerate(equal_findings)
    ]
    assert lines(with_(*distinct)) == [
        "❌ code size, 3 builds: bert on vmvx 50,438 → 83,990 B (+66.5 %), gpt2 on vmvx"
        " 50,438 → 83,991 B (+66.5 %), vit on vmvx 50,438 → 83,992 B (+66.5 %); limit:"
        " the larger of +4 KiB and +5 %"
    ]
    (line_of_all,) = told(with_(*distinct))
    assert line_of_all.cells == tuple(finding.key for finding in distinct)


def test_a_part_of_an_artifact_is_reported_where_its_whole_is_not_as_bad() -> None:
    part = replace(make.GROWN, metric="vm_bytes")
    assert len(lines(with_(part, make.GROWN))) == 1
    assert lines(with_(part, replace(make.GROWN, level="warn")))[0].startswith(
        "❌ VM bytecode, "
    )
    accepted = replace(make.GROWN, accepted="a")
    assert lines(with_(accepted, part))[0].startswith("❌ VM bytecode, "), (
        "what fails is told before what is accepted"
    )


def test_the_title_of_the_findings_counts_what_is_listed_below_it() -> None:
    def title(report: Report) -> str:
        return plain(findings(build_facts(report), COMMENT).title)

    assert (
        title(with_(replace(make.GROWN, metric="vm_bytes"), make.GROWN))
        == "Findings: 1 of this change, 1 of parts of the same artifacts"
    )
    twice = make.usual()
    broken_warn: Mapping[str, Status] = {**DEFAULT_STATES, "broken": "warn"}
    for states in (DEFAULT_STATES, broken_warn):
        verdict = judge(
            twice.deltas, load_config(None, models=False).thresholds, states
        )
        assert (
            title(replace(twice, verdict=verdict))
            == "Findings: 9 that base had, 3 already failing on base"
        )


# Newly broken cells.


def failing(**messages: Failure) -> make.Edit:
    def edit(key: CellKey, cell: Cell) -> Cell:
        failure = messages.get(key.model)
        return (
            cell
            if failure is None
            else Cell(
                key.model,
                key.target,
                "failed",
                failure=failure,
                command=cell.command,
                compiles=2,
            )
        )

    return edit


def newly(report: Report) -> list[str]:
    return lines(replace(report, verdict=judge(report.deltas, [])))


def test_alike_are_reported_once_and_only_what_is_true_of_all() -> None:
    failure = Failure("compile", "error: uses 81920 bytes", 1)
    larger_failure = replace(failure, message="error: uses 90000 bytes")
    message = "💥 every model on every target: does not compile (exit code 1)"
    assert newly(of(same, failing(bert=failure, gpt2=failure, vit=failure))) == [
        f"{message}: error: uses 81920 bytes"
    ]
    assert newly(of(same, failing(bert=failure, gpt2=failure, vit=larger_failure))) == [
        f"{message}, for example: error: uses 81920 bytes"
    ]


def test_a_crash_is_not_reported_with_a_refusal() -> None:
    refused = Failure("compile", "error: no", 1)
    crashed = Failure("compile", "error: no", None, "SIGSEGV")
    assert newly(of(same, failing(bert=refused, vit=crashed))) == [
        "💥 bert on every target: does not compile (exit code 1): error: no",
        "💥 vit on every target: compiler crashed (SIGSEGV): error: no",
    ]


def test_figures_of_several_cells_are_a_range() -> None:
    needs = {"bert": 40_000, "gpt2": 73_728, "vit": 50_000}
    report = of(
        same,
        lambda key, cell: (
            make.over(cell, needs[key.model]) if "x86" in key.target else cell
        ),
    )
    (line,) = newly(report)
    assert line.startswith(
        "💥 every model on x86_64: above the compiler's stack limit: a function needs"
        " 40,000 B to 73,728 B"
    )


def test_cells_of_which_some_are_accepted_are_not_called_accepted() -> None:
    report = of(same, failing(bert=Failure("compile", "error: no", 1)))
    first, *remaining = judge(report.deltas, []).findings
    accepted = replace(first, accepted="a")
    assert [
        (line.mark, line.level)
        for line in told(with_(accepted, *remaining, report=report))
    ] == [("💥", "fail"), ("☑️", "warn")]
    all_accepted = with_(
        *(replace(finding, accepted="a") for finding in (first, *remaining)),
        report=report,
    )
    assert [(line.mark, line.level) for line in told(all_accepted)] == [("☑️", "warn")]


def test_a_newly_broken_cell_counts_once_whatever_else_is_wrong_with_it() -> None:
    report = of(
        same,
        lambda key, cell: (
            make.over(make.grown(cell, artifact_bytes=90_000), 40_000)
            if key == KEY
            else cell
        ),
    )
    broken = judge(report.deltas, []).findings
    titled = groups(
        with_(
            *broken,
            make.GROWN,
            replace(make.OVER, metric="stack_alloca_bytes"),
            report=report,
        )
    )
    assert [(title, group.cells) for title, group in titled.items()] == [(BROKEN, 1)]
    assert (
        len(
            lines(with_(replace(make.OVER, metric="stack_alloca_bytes"), report=report))
        )
        == 1
    ), "where the state is allowed, what the metrics broke is told"


@given(snapshots(), snapshots())
def test_every_alarming_cell_has_a_line_where_there_is_room(
    base: Snapshot, head: Snapshot
) -> None:
    report = make.report(base, head)
    for group in alarms(
        build_facts(replace(report, verdict=judge(report.deltas, []))), ROOMY
    ):
        keys = {key for line in group.lines for key in line.cells}
        assert len(keys) == group.cells


def test_diagnostics_are_trimmed_and_lose_absolute_paths() -> None:
    message = (
        "/home/me/work/m.mlir:1:2: error:"
        ' x\n\n"C:\\Users\\me\\m.mlir"\n--opt=/opt/a/b.so and/or 1/2'
        " https://a.b/c/d\nmore"
    )
    assert trimmed(message, 3) == (
        'm.mlir:1:2: error: x\n"m.mlir"\n--opt=b.so and/or 1/2 https://a.b/c/d',
        1,
    )


# Root causes.


def test_an_alarm_names_the_root_cause_that_holds_most_of_each_of_its_cells() -> None:
    report = make.why()
    facts = build_facts(report)
    matches = [
        (line.cells, re.search(r" cause (\d+) \(([^)]*)\)", plain(line.text)))
        for line in told(report)
    ]
    named = [(cells, int(match[1]), match[2]) for cells, match in matches if match]
    assert named
    for cells, cause, share in named:
        shares = []
        for key in cells:
            sizes = [root.by_cell.get(key, 0) for root in facts.roots]
            unexplained = sum(root.by_cell.get(key, 0) for root in facts.unexplained)
            assert sizes[cause - 1] == max(*sizes, unexplained)
            shares.append(round(100 * max(sizes) / (sum(sizes) + unexplained)))
        assert share == (
            f"{min(shares)} %"
            if len(set(shares)) == 1
            else f"{min(shares)} to {max(shares)} %"
        )


def test_a_cause_that_is_not_shown_is_not_named_by_its_number() -> None:
    report = make.why()
    assert not any(" cause " in line for line in lines(replace(report, root_causes=())))
    assert not re.search(
        r" cause \d", " ".join(lines(report, replace(COMMENT, causes=0)))
    )
    assert {
        *re.findall(
            r" cause (\d+)", " ".join(lines(report, replace(COMMENT, causes=1)))
        )
    } <= {"1"}


def test_an_alarm_that_was_not_repeated_says_so() -> None:
    once = of(same, lambda _key, cell: make.grown(cell, artifact_bytes=8))
    assert lines(with_(make.GROWN, report=once))[0].endswith(
        "limit 54,534 B · not confirmed by a second compile"
    )
    assert "once" not in lines(with_(make.GROWN))[0]


# Below the first screen: fair selections, commands, sides, what is left out.


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def commands_of(facts: Facts) -> dict[str, str]:
    """Alarming cell → its commands."""
    if not (fold := reproduce(facts, ROOMY)):
        return {}
    *pairs, _ = drawable(fold.blocks)
    cells = pairs[::2]
    commands = pairs[1::2]
    return {
        plain(cell.said): command.text
        for cell, command in zip(cells, commands, strict=True)
        if isinstance(cell, Sentence) and isinstance(command, Code)
    }


def test_missing_builds_are_in_one_place_without_those_that_are_never_measured() -> (
    None
):
    facts = build_facts(make.partly())
    assert (
        not alarms(facts, ROOMY)
        and not commands_of(facts)
        and len(facts.report.verdict.news) == 7
    )
    assert any(delta.excused for delta in facts.states["unmeasured"])
    (line,) = map(plain, unmeasured(facts, COMMENT.names))
    assert ": not measured on head" in line


def test_both_commands_where_they_differ() -> None:
    def head(_key: CellKey, cell: Cell) -> Cell:
        return replace(make.failed(cell, "error"), command="iree-compile --new")

    text = next(iter(commands_of(build_facts(judged(same, head))).values()))
    assert re.fullmatch(
        r"# in the repository at .*\n"
        r"pip install iree-base-compiler==3\.12\.0  # base\niree-compile - .*\n"
        r"pip install iree-base-compiler==3\.13\.0  # head\niree-compile --new",
        text,
    )


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=30),
    st.integers(0, 30),
)
def test_fair_takes_turns(items: list[tuple[str, int]], limit: int) -> None:
    chosen = fair(items, lambda item: item[0], limit)
    counts = Counter(name for name, _ in chosen)
    available = Counter(name for name, _ in items)
    assert len(chosen) == min(limit, len(items))
    for name in available:
        assert all(
            counts[name] == available[name] or counts[name] >= counts[second] - 1
            for second in available
        )
    assert sorted(chosen) == sorted(fair_in_order(items, lambda item: item[0], limit))


@given(st.integers(1, 40))
def test_cells_in_words_account_for_all(limit: int) -> None:
    facts = build_facts(make.many())
    keys = [delta.key for delta in facts.states["changed"]]
    spans = cells_phrase(facts, keys, limit)
    total = 0
    for part in plain(spans).split("; "):
        models, _, targets = (
            part.replace("every model", "," * 12)
            .replace("every target", "," * 7)
            .partition(" on ")
        )
        match = re.match(r"(\d+) more build", part)
        total += (
            int(match[1])
            if match
            else (models.count(",") + 1) * (targets.count(",") + 1)
        )
    assert total == len(keys)
    assert sum(span.kind == "code" for span in spans) <= 2 * limit + 8


# What a change consists of: compilers as they were typed, flags by target and model,
# edited models, targets.

ON_THREE = {
    "cuda": "cuda",
    "llvm-cpu-aarch64": "llvm-cpu",
    "llvm-cpu-x86_64": "llvm-cpu",
}
V3 = "--iree-llvmcpu-target-cpu=x86-64-v3"
V4 = "--iree-llvmcpu-target-cpu=x86-64-v4"
Flags = Callable[[CellKey], str]


def said_changes(base: Snapshot, head: Snapshot) -> list[str]:
    return [plain(change) for change in changes(build_facts(make.report(base, head)))]


def side(
    flags: Flags = lambda _key: "", edit: make.Edit = lambda _key, cell: cell
) -> Snapshot:
    """A side of one compiler, with these words more in the commands."""

    def edited(key: CellKey, cell: Cell) -> Cell | None:
        command = f"iree-compile - --common {flags(key)} -o m.vmfb < m.mlir"
        return edit(key, replace(cell, command=command))

    snapshot = make.snapshot("3.13.0", edited, MODELS, ON_THREE)
    return replace(snapshot, compiler=replace(snapshot.compiler, digest="c" * 64))


def on(target: str, flag: str, elsewhere: str = "") -> Flags:
    return lambda key: flag if key.target.endswith(target) else elsewhere


# Flags.


def test_a_flag_names_its_values_and_the_targets_or_cells_that_have_it() -> None:
    x86 = on("x86_64", V3)
    cuda = CellKey("vit", "cuda")
    bert = "bert"
    for base, head, expected in (
        (x86, x86, []),
        (x86, on("x86_64", V4), [f"flag {V3} → x86-64-v4 for every model on x86_64"]),
        (on("", "--a --b"), on("", "--b --a"), ["flags in another order"]),
        (
            on("cuda", "", "--x"),
            on("", "--x"),
            ["flag --x added for every model on cuda"],
        ),
        (
            on("!", ""),
            lambda key: "--x" if key.model == bert else "",
            ["flag --x added for bert on every target"],
        ),
        (
            on("!", ""),
            lambda key: "--x" if key == cuda else "",
            ["flag --x added for vit on cuda"],
        ),
        (
            on("cuda", "--sm=80", "--cpu=a"),
            on("cuda", "--sm=90", "--cpu=b"),
            [
                "flag --sm=80 → 90 for every model on cuda",
                "flag --cpu=a → b for every model on aarch64, x86_64",
            ],
        ),
    ):
        assert said_changes(side(base), side(head)) == expected
    many = said_changes(side(), side(lambda key: f"--of={key.model}-{key.target}"))
    assert len(many) == 5 and many[-1] == "5 more differences of flags"


def test_flags_that_came_went_and_changed_everywhere() -> None:
    for base, head, expected in (
        ("--opt=1", "--opt=2", "flag --opt=1 → 2"),
        ("--x", "", "flag --x removed"),
        ("", "--x=1", "flag --x=1 added"),
        ("--old=1", "--new=1", "flags --old=1 removed, --new=1 added"),
        ("--a=1 --b", "--a=2 --c", "flags --a=1 → 2, --b removed, --c added"),
        ("--a=1", "--a", "flag --a=1 → --a"),
        (
            "",
            "--a --b --c --d --e --f",
            "flags --a added, --b added, --c added, --d added and 2 more",
        ),
        ("--x=a --x=b", "--x=c", "flags --x=a removed, --x=b removed, --x=c added"),
        ("--x=a --x=b", "", "flags --x=a removed, --x=b removed"),
        ("--x --x", "--x", "flag --x removed"),
        ("--x=a --x=b", "--x=b --x=a", "flags in another order"),
        ("'--a=b c'", "'--a=d e'", "flag --a=b c → d e"),
    ):
        assert said_changes(side(on("", base)), side(on("", head))) == [expected]


def test_the_lifted_limit_of_a_refused_cell_is_no_change_of_flags() -> None:
    def refused(key: CellKey, cell: Cell) -> Cell:
        lifted = cell.command.replace("--common", f"--common {LIFTED_LIMIT_FLAG}")
        return (
            replace(make.over(cell, 40_000), command=lifted)
            if key.model == "bert"
            else cell
        )

    assert said_changes(side(), side(edit=refused)) == []
    assert said_changes(side(edit=refused), side()) == []


def test_a_limit_of_the_users_own_is_a_flag_like_others() -> None:
    limit = "--iree-llvmcpu-stack-allocation-limit"

    def refused(_key: CellKey, cell: Cell) -> Cell:
        return make.over(cell, 200_000)

    ours = side(lambda _: f"{limit}=65536")
    doubled = side(lambda _: f"{limit}=131072", refused)
    assert said_changes(ours, doubled) == [f"flag {limit}=65536 → 131072"]
    assert said_changes(ours, side(lambda _: f"{limit}=65536", refused)) == []


@pytest.mark.parametrize("command", ["iree-compile 'unclosed --x", ""])
def test_of_a_command_that_cannot_be_read_nothing_is_said(command: str) -> None:
    def edit(key: CellKey, cell: Cell) -> Cell:
        return replace(cell, command=command) if key.target == "cuda" else cell

    unread = side(edit=edit)
    gone = side(edit=lambda key, cell: None if key.target == "cuda" else cell)
    assert said_changes(gone, side()) == []
    assert (
        said_changes(unread, side())
        == said_changes(side(), unread)
        == said_changes(unread, unread)
        == []
    )
    assert said_changes(unread, side(lambda _: "--x")) == ["flag --x added"], (
        "of those that can be compared it is all"
    )


# Compilers.


def test_a_compiler_is_named_as_it_was_typed() -> None:
    for version, spec, expected in (
        ("3.13.0rc20261016", "3.13.0", "IREE 3.13.0"),
        ("3.13.0rc20261016", "iree-base-compiler==3.13.0", "IREE 3.13.0"),
        ("3.13.0rc20261016", "3.14.0rc20261101", "IREE 3.14.0rc20261101"),
        ("3.13.0rc20261016", "wheels/x.whl", "IREE 3.13.0rc20261016 (wheels/x.whl)"),
        ("3.13.0.dev0+abc", "../build", "IREE 3.13.0.dev0+abc (../build)"),
        ("3.13.0rc1", "", "IREE 3.13.0rc1"),
        (
            "3.14.0",
            "nightly = iree-base-compiler==3.14.0rc20261101",
            "IREE 3.14.0rc20261101 (nightly)",
        ),
        ("3.13.0", "mine = 3.12.0", "IREE 3.13.0 (mine = 3.12.0)"),
        ("", "", "not known"),
    ):
        assert plain(compiler_name(CompilerInfo(version, "", "d", spec))) == expected


def compilers(base: CompilerInfo, head: CompilerInfo) -> list[str]:
    return said_changes(replace(side(), compiler=base), replace(side(), compiler=head))


def test_compilers_differ_where_their_code_does() -> None:
    old = CompilerInfo("3.12.0rc1", "", "d", "3.12.0")
    new = CompilerInfo("3.13.0rc1", "", "e", "3.13.0")
    assert compilers(old, new) == ["compiler IREE 3.12.0 → IREE 3.13.0"]
    assert compilers(old, replace(old, spec="iree-base-compiler==3.12.0")) == []
    assert compilers(old, replace(old, digest="f")) == [
        "compiler IREE 3.12.0, another build on head"
    ]
    assert compilers(CompilerInfo("", "", ""), new) == [
        "compiler not known → IREE 3.13.0"
    ]


# Models and targets.


def test_models_and_targets_that_were_edited_came_or_went() -> None:
    base = side()
    head = side()
    edited = {**head.models, "bert": "other", "gpt2": "other", "new": "n"}
    del edited["vit"]
    changed = replace(head, models=edited, targets={**head.targets, "vmvx": "vmvx"})
    assert said_changes(base, changed) == [
        "model bert edited",
        "model gpt2 edited",
        "model new new",
        "model vit removed",
        "target vmvx new",
    ]
    assert said_changes(changed, base)[-1] == "target vmvx removed"
    many = replace(head, models=dict.fromkeys("abcdef", ""))
    assert said_changes(replace(base, models={}), many) == [
        "models a, b, c and 3 more new"
    ]


FLAG_WORDS = st.lists(
    st.lists(st.sampled_from(["--a", "--b=1", "--b=2", "x"]), max_size=3),
    min_size=3,
    max_size=3,
)


@given(FLAG_WORDS, FLAG_WORDS)
def test_every_target_whose_flags_differ_is_reported_and_no_other(
    base: list[list[str]], head: list[list[str]]
) -> None:
    flags = [dict(zip(ON_THREE, values, strict=True)) for values in (base, head)]
    sides = [side(lambda key, flag=flag: " ".join(flag[key.target])) for flag in flags]  # type: ignore[misc]
    printed = said_changes(*sides)
    for target, name in zip(ON_THREE, ("cuda", "aarch64", "x86_64"), strict=True):
        base_flags, head_flags = (
            [word for word in flag[target] if word.startswith("--")] for flag in flags
        )
        lines = [
            line
            for line in printed
            if " on " not in line or name in line.partition(" on ")[2].split(", ")
        ]
        assert bool(lines) == (base_flags != head_flags)
