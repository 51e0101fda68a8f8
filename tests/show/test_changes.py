"""What a change consists of: compilers as they were typed, flags by target and model, edited models, targets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot
from bot.show.blocks import plain
from bot.show.facts import build_facts
from bot.show.report import changes, compiler_name

MODELS = ("bert", "gpt2", "vit")
TARGETS = {"cuda": "cuda", "llvm-cpu-aarch64": "llvm-cpu", "llvm-cpu-x86_64": "llvm-cpu"}
V3, V4 = "--iree-llvmcpu-target-cpu=x86-64-v3", "--iree-llvmcpu-target-cpu=x86-64-v4"
Flags = Callable[[CellKey], str]


def said(base: Snapshot, head: Snapshot) -> list[str]:
    return [plain(one) for one in changes(build_facts(make.report(base, head)))]


def side(flags: Flags = lambda _key: "", edit: make.Edit = lambda _key, found: found) -> Snapshot:
    """A side of one compiler, with these words more in the commands."""

    def edited(key: CellKey, found: Cell) -> Cell | None:
        words = f"iree-compile - --common {flags(key)} -o m.vmfb < m.mlir"
        return edit(key, replace(found, command=words))

    made = make.snapshot("3.13.0", edited, MODELS, TARGETS)
    return replace(made, compiler=replace(made.compiler, digest="c" * 64))


def on(target: str, flag: str, elsewhere: str = "") -> Flags:
    return lambda key: flag if key.target.endswith(target) else elsewhere


# Flags.


def test_a_flag_names_its_values_and_the_targets_or_cells_that_have_it() -> None:
    x86, cuda, bert = on("x86_64", V3), CellKey("vit", "cuda"), "bert"
    for base, head, words in (
        (x86, x86, []),
        (x86, on("x86_64", V4), [f"flag {V3} → x86-64-v4 on x86_64"]),
        (on("", "--a --b"), on("", "--b --a"), []),
        (on("cuda", "", "--x"), on("", "--x"), ["flag --x added on cuda"]),
        (on("!", ""), lambda key: "--x" if key.model == bert else "", ["flag --x added for bert on every target"]),
        (on("!", ""), lambda key: "--x" if key == cuda else "", ["flag --x added for vit on cuda"]),
        (
            on("cuda", "--sm=80", "--cpu=a"),
            on("cuda", "--sm=90", "--cpu=b"),
            ["flag --sm=80 → 90 on cuda", "flag --cpu=a → b on aarch64, x86_64"],
        ),
    ):
        assert said(side(base), side(head)) == words
    many = said(side(), side(lambda key: f"--of={key.model}-{key.target}"))
    assert len(many) == 5 and many[-1] == "5 more differences of flags"


def test_flags_that_came_went_and_changed_everywhere() -> None:
    for base, head, words in (
        ("--opt=1", "--opt=2", "flag --opt=1 → 2"),
        ("--x", "", "flag --x removed"),
        ("", "--x=1", "flag --x=1 added"),
        ("--old=1", "--new=1", "flags --old=1 removed, --new=1 added"),
        ("--a=1 --b", "--a=2 --c", "flags --a=1 → 2, --b removed, --c added"),
        ("--a=1", "--a", "flag --a=1 → --a"),
        ("", "--a --b --c --d --e --f", "flags --a added, --b added, --c added, --d added and 2 more flags"),
        ("'--a=b c'", "'--a=d e'", "flag --a=b c → d e"),
    ):
        assert said(side(on("", base)), side(on("", head))) == [words]


def test_the_lifted_limit_of_a_refused_cell_is_no_change_of_flags() -> None:
    def refused(key: CellKey, found: Cell) -> Cell:
        lifted = found.command.replace("--common", f"--common {LIFTED_LIMIT_FLAG}")
        return replace(make.over(found, 40_000), command=lifted) if key.model == "bert" else found

    assert said(side(), side(edit=refused)) == []
    assert said(side(edit=refused), side()) == []


def test_a_limit_of_the_users_own_is_a_flag_like_others() -> None:
    limit = "--iree-llvmcpu-stack-allocation-limit"

    def refused(_key: CellKey, found: Cell) -> Cell:
        return make.over(found, 200_000)

    mine, more = side(lambda _: f"{limit}=65536"), side(lambda _: f"{limit}=131072", refused)
    assert said(mine, more) == [f"flag {limit}=65536 → 131072"]
    assert said(mine, side(lambda _: f"{limit}=65536", refused)) == []


@pytest.mark.parametrize("command", ["iree-compile 'unclosed --x", ""])
def test_of_a_command_that_cannot_be_read_nothing_is_said(command: str) -> None:
    def edit(key: CellKey, found: Cell) -> Cell:
        return replace(found, command=command) if key.target == "cuda" else found

    unread, gone = side(edit=edit), side(edit=lambda key, found: None if key.target == "cuda" else found)
    assert said(gone, side()) == []
    assert said(unread, side()) == said(side(), unread) == said(unread, unread) == []
    assert said(unread, side(lambda _: "--x")) == ["flag --x added"], "of those that can be compared it is all"


# Compilers.


def test_a_compiler_is_named_as_it_was_typed() -> None:
    for version, spec, words in (
        ("3.13.0rc20261016", "3.13.0", "IREE 3.13.0"),
        ("3.13.0rc20261016", "iree-base-compiler==3.13.0", "IREE 3.13.0"),
        ("3.13.0rc20261016", "3.14.0rc20261101", "IREE 3.14.0rc20261101"),
        ("3.13.0rc20261016", "wheels/x.whl", "IREE 3.13.0rc20261016 (wheels/x.whl)"),
        ("3.13.0.dev0+abc", "../build", "IREE 3.13.0.dev0+abc (../build)"),
        ("3.13.0rc1", "", "IREE 3.13.0rc1"),
        ("3.14.0", "nightly = iree-base-compiler==3.14.0rc20261101", "IREE 3.14.0rc20261101 (nightly)"),
        ("3.13.0", "mine = 3.12.0", "IREE 3.13.0 (mine = 3.12.0)"),
        ("", "", "not known"),
    ):
        assert plain(compiler_name(CompilerInfo(version, "", "d", spec))) == words


def compilers(base: CompilerInfo, head: CompilerInfo) -> list[str]:
    return said(replace(side(), compiler=base), replace(side(), compiler=head))


def test_compilers_differ_where_their_code_does() -> None:
    old, new = CompilerInfo("3.12.0rc1", "", "d", "3.12.0"), CompilerInfo("3.13.0rc1", "", "e", "3.13.0")
    assert compilers(old, new) == ["compiler IREE 3.12.0 → IREE 3.13.0"]
    assert compilers(old, replace(old, spec="iree-base-compiler==3.12.0")) == []
    assert compilers(old, replace(old, digest="f")) == ["compiler IREE 3.12.0, another build on head"]
    assert compilers(CompilerInfo("", "", ""), new) == ["compiler not known → IREE 3.13.0"]


# Models and targets.


def test_models_and_targets_that_were_edited_came_or_went() -> None:
    base, head = side(), side()
    edited = {**head.models, "bert": "other", "gpt2": "other", "new": "n"}
    del edited["vit"]
    changed = replace(head, models=edited, targets={**head.targets, "vmvx": "vmvx"})
    assert said(base, changed) == [
        "model bert edited",
        "model gpt2 edited",
        "model new new",
        "model vit removed",
        "target vmvx new",
    ]
    assert said(changed, base)[-1] == "target vmvx removed"
    many = replace(head, models=dict.fromkeys("abcdef", ""))
    assert said(replace(base, models={}), many) == ["models a, b, c and 3 more new"]


def test_the_order_is_compiler_flags_models() -> None:
    head = side(lambda _: "--x")
    head = replace(head, compiler=CompilerInfo("3.14.0", "", "e", "3.14.0"), models={**head.models, "bert": "other"})
    assert said(side(), head) == ["compiler IREE 3.13.0 → IREE 3.14.0", "flag --x added", "model bert edited"]


words = st.lists(st.lists(st.sampled_from(["--a", "--b=1", "--b=2", "x"]), max_size=3), min_size=3, max_size=3)


@given(words, words)
def test_every_target_whose_flags_differ_is_told_and_no_other(base: list[list[str]], head: list[list[str]]) -> None:
    flags = [dict(zip(TARGETS, each, strict=True)) for each in (base, head)]
    sides = [side(lambda key, told=told: " ".join(told[key.target])) for told in flags]  # type: ignore[misc]
    told = said(*sides)
    for target, name in zip(TARGETS, ("cuda", "aarch64", "x86_64"), strict=True):
        left, right = ({word for word in one[target] if word.startswith("--")} for one in flags)
        lines = [line for line in told if " on " not in line or name in line.partition(" on ")[2].split(", ")]
        assert bool(lines) == (left != right)
