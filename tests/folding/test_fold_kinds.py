"""Executables of each kind, found by a real compiler's bindings, made one, compiled, and run beside the original."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flow_regions import WRITTEN
from flow_texts import program
from fold_programs import FOLDABLE
from fold_stage import RUN, FoldStage, stage

from bot.compiler.rewriting import Groups
from bot.core.fold import FOLD_KINDS
from bot.running.runner import Runtime

pytestmark = pytest.mark.compiler

NEW, OLD = "3.13.0", "3.11.0"
COMPILED = {"f16": ("here",)}
"""Programs that not every target here compiles, folded or not."""
VALUE = re.compile(r"%[\w$.-]+")
PASSED = re.compile(rf"({VALUE.pattern}) = arith\.constant (.+)(?= : \S+ loc\()")
"""A constant beside a site: name, value."""


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldStage]:
    with stage(NEW, tmp_path_factory.mktemp("new")) as found:
        yield found


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldStage]:
    with stage(OLD, tmp_path_factory.mktemp("old")) as found:
        yield found


def executables(program: Path) -> int:
    return program.read_text(encoding="utf-8").count("flow.executable private")


def made_one(at: FoldStage, flow: Path, level: str, operands: tuple[str, ...]) -> Path:
    """The folded program: all its executables are one group at this level, and none at a stricter one."""
    found = at.groups(flow)
    names = tuple(found.entries)
    wanted = {kind: () if FOLD_KINDS.index(kind) < FOLD_KINDS.index(level) else (names,) for kind in FOLD_KINDS}
    assert found.groups == wanted and found.unfit == {} and len(names) >= 2
    folded, told = at.fold(flow, names)
    assert [(one.members, one.operands) for one in told.folded] == [(names, operands)] and told.left == ()
    assert (executables(flow), executables(folded)) == (len(names), told.executables) == (len(names), 1)
    again, entries = at.groups(folded), {names[0]: found.entries[names[0]]}
    assert again == Groups(entries, {}, dict.fromkeys(FOLD_KINDS, ()), again.classes, again.elements)
    return folded


def told_equal(at: FoldStage, runtime: Runtime, before: Path, after: Path) -> None:
    equal, note = at.equal(runtime, before, after)
    assert equal is True and "proved nothing" not in note, note


@pytest.mark.parametrize("target", RUN)
@pytest.mark.parametrize("name", FOLDABLE)
def test_what_a_model_is_compiled_to_is_made_one_and_each_site_keeps_its_values(
    new: FoldStage, runtime: Runtime, name: str, target: str
) -> None:
    one = FOLDABLE[name]
    if target not in COMPILED.get(name, RUN):
        pytest.skip("this target does not compile the model")
    at = new.on(target, *one.flags)
    flow = at.flow(one.source)
    folded = made_one(at, flow, one.level, one.operands)
    told_equal(at, runtime, flow, folded)
    if one.level != "static-shapes":
        # With the values of its sites exchanged it is another program: what is told equal could have differed.
        other = at.written(exchanged(folded.read_text(encoding="utf-8"), len(one.operands)))
        equal, note = at.equal(runtime, flow, other)
        assert equal is False and "differs in" in note


@pytest.mark.parametrize("target", RUN)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_at_the_end_of_flow_is_made_one_and_gives_the_same(
    new: FoldStage, runtime: Runtime, name: str, target: str
) -> None:
    one, at = WRITTEN[name], new.on(target)
    flow = at.written(program(at.header, one.regions))
    told_equal(at, runtime, flow, made_one(at, flow, one.level, one.operands))


@pytest.mark.parametrize("name", [*FOLDABLE, *WRITTEN])
def test_an_older_release_folds_and_compiles_the_same(old: FoldStage, name: str) -> None:
    one = FOLDABLE.get(name)
    at = old.on("here", *one.flags if one else ())
    flow = at.flow(one.source) if one else at.written(program(at.header, WRITTEN[name].regions))
    level, operands = (one.level, one.operands) if one else (WRITTEN[name].level, WRITTEN[name].operands)
    assert at.artifact(made_one(at, flow, level, operands)).stat().st_size > 0


def exchanged(text: str, count: int) -> str:
    """The program, each site with the values that the next passes, the last with those of the first."""
    head, main, tail = text.partition("util.func public @main")
    launches = [line.partition(") : ")[0] for line in tail.splitlines() if "flow.dispatch" in line]
    names = [name for line in launches for name in VALUE.findall(line)[-count:]]
    values = {name: value for name, value in PASSED.findall(tail) if name in names}
    assert len(values) == len(names) >= 2 * count
    passed = dict(zip(names, [values[name] for name in names[count:] + names[:count]], strict=True))
    return head + main + PASSED.sub(lambda found: f"{found[1]} = arith.constant {passed.get(found[1], found[2])}", tail)
