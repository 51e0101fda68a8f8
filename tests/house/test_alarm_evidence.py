"""When an alarm is true, what is held against the compiler's tools, and that the edits of models are models."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import Any

import cause_members
import cause_reading
import compiler_figures
import pytest
from against_compiler import Compared, Found, Unread, lines
from alarm_evidence import Alarm, Anew, answered
from alarm_evidence import lines as alarm_lines
from alarm_sources import FLAGS, WANTED
from compiler_figures import STATISTICS, compiled, function_bytes, section_bytes
from evidence_work import home_of
from model_edits import EDITS, Edit
from places import FIXTURES

from bot.compiler.tools.toolchain import resolve
from bot.core.metrics import METRIC_IDS
from bot.readers.formats.artifact import read_artifact
from bot.readers.formats.elf import ElfReader
from bot.system.defaults import default_cache
from bot.system.processes import Cancel

DENSE = FIXTURES / "binaries" / "dense.mlir"
COMMAND = (
    "iree-compile - --iree-llvmcpu-debug-symbols=false --iree-vm-bytecode-module-strip-source-map "
    "--iree-vm-emit-polyglot-zip=false --iree-hal-target-backends=llvm-cpu "
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu --iree-llvmcpu-target-cpu=x86-64-v3 "
    "-o dense.vmfb < dense.mlir"
)


def finding(kind: str, allowed: int | None = 4096, limit: str = "4KiB", metric: str | None = "x") -> dict[str, Any]:
    return {"kind": kind, "metric": metric, "limit": limit, "allowed": allowed}


def side(value: int | None, ran: bool = True) -> Anew:
    return Anew(ran, {"x": value})


# Judging


@pytest.mark.parametrize(
    ("kind", "base", "head", "answer"),
    [
        ("change", 1000, 5097, "true"),
        ("change", 1000, 5096, "false"),  # what the level allows, and no more
        ("change", 5097, 1000, "false"),
        ("change", None, 5097, "false"),
        ("change", 1000, None, "false"),
        ("limit", None, 4097, "true"),
        ("limit", 9000, 4096, "false"),
        ("limit", 1000, None, "false"),
        ("unknown", 1000, None, "true"),
        ("unknown", 1000, 1000, "false"),
        ("unknown", None, None, "false"),
    ],
)
def test_an_alarm_is_true_where_the_figures_anew_break_the_rule(
    kind: str, base: int | None, head: int | None, answer: str
) -> None:
    assert answered(finding(kind), side(base), side(head))[0] == answer


@pytest.mark.parametrize(
    ("base", "head", "answer"), [(True, False, "true"), (True, True, "false"), (False, False, "false")]
)
def test_newly_broken_is_true_where_head_alone_fails(base: bool, head: bool, answer: str) -> None:
    broken = finding("state", None, "newly-broken", None)
    assert answered(broken, side(None, base), side(None, head))[0] == answer


def test_what_has_no_two_commands_is_not_judged() -> None:
    assert answered(finding("state", None, "removed", None), side(1), side(1))[0] == "not judged"


def test_every_alarm_that_is_not_true_is_told_by_name() -> None:
    kinds = [("steps", "a → b"), ("flags", "--flag"), ("edits", "nothing | new")]
    found = [
        Alarm("steps", "a → b", "m on cpu", "fail", "artifact_bytes +9", "true", "anew 1 → 10"),
        Alarm("steps", "a → b", "n on cpu", "warn", "vm_bytes +9", "false", "anew 1 → 2"),
        Alarm("flags", "--flag", "o on cpu", "warn", "removed", "not judged", "no commands"),
    ]
    told = list(alarm_lines(dict.fromkeys(kinds, 5), found))
    assert "| steps | a → b | 5 | 1 | 1 | 1 | 1 | 0 |" in told
    assert "| edits | nothing \\| new | 5 | 0 | 0 | 0 | 0 | 0 |" in told
    assert "| **all** | 3 comparisons | 15 | 1 | 2 | 1 | 1 | 1 |" in told
    assert [line for line in told if line.startswith("- ")] == [
        "- false: a → b, `n on cpu`: warn, vm_bytes +9; anew 1 → 2",
        "- not judged: --flag, `o on cpu`: warn, removed; no commands",
    ]


# Sources of alarms


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
@pytest.mark.compiler
def test_an_edited_model_is_another_one_and_still_a_model(edit: Edit) -> None:
    before, after = edit.texts
    assert before != after
    binary = resolve("3.13.0", default_cache(), Cancel(), print).binary
    command = [str(binary), "-", "--compile-to=input", "--iree-hal-target-backends=vmvx", "-o", "/dev/null"]
    done = subprocess.run(command, input=after.encode(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_there_are_ten_edits_and_flags_to_spare() -> None:
    assert len({edit.name for edit in EDITS}) == len(EDITS) == WANTED <= len(set(FLAGS)) == len(FLAGS)


@pytest.mark.parametrize("edit", [one for one in EDITS if one.name != "a batch of 48 in place of 32"])
def test_an_edit_of_a_model_without_its_place_is_refused(edit: Edit) -> None:
    with pytest.raises(ValueError, match="there"):
        edit.change("module {}")


def test_a_printed_path_is_found_where_it_is_relative_to(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a b.mlir").touch()
    assert home_of("iree-compile - -o x.vmfb < 'models/a b.mlir'", tmp_path / "models", tmp_path) == tmp_path
    with pytest.raises(ValueError, match="is in none"):
        home_of("iree-compile - < models/other.mlir", tmp_path)


# Against the compiler's tools


@pytest.mark.compiler
def test_the_tools_say_what_the_readers_say(tmp_path: Path) -> None:
    binary = resolve("3.13.0", default_cache(), Cancel(), print).binary
    seen = compiled(COMMAND, binary, DENSE.parent, tmp_path)
    reading = read_artifact((tmp_path / "a.vmfb").read_bytes())
    names = ("artifact_bytes", "executable_bytes", "vm_bytes", "rodata_bytes", "unattributed_bytes")
    assert {name: seen.figures[name] for name in names} == {name: getattr(reading, name) for name in names}
    assert set(seen.figures) == {*names, *STATISTICS} <= set(METRIC_IDS)
    assert (seen.figures["dispatch_sites"], seen.figures["executables"]) == (2, 2)


@pytest.mark.compiler
def test_a_command_that_fails_has_no_figures(tmp_path: Path) -> None:
    binary = resolve("3.13.0", default_cache(), Cancel(), print).binary
    seen = compiled(COMMAND.replace("x86-64-v3", "none-such"), binary, DENSE.parent, tmp_path)
    assert not seen.ran and not seen.figures


def test_readelf_is_read() -> None:
    library, object_ = (FIXTURES / "binaries" / f"dense.llvm-cpu-x86_64.{kind}" for kind in ("so", "o"))
    assert section_bytes(library, ".text") == ElfReader().read(library.read_bytes()).parts["text"] > 0
    assert section_bytes(library, ".none") == 0
    sizes = function_bytes(object_)
    told = ElfReader().read(object_.read_bytes()).entry_points
    assert told and {one.name: one.code_bytes for one in told}.items() <= sizes.items()


def test_every_figure_that_is_not_the_same_is_told() -> None:
    found: list[Found] = [
        Compared("readelf", "`.text`", "m on cpu", "10", "10"),
        Compared("readelf", "`.text`", "n on cpu", "10", "12"),
        Compared("spirv-val", "modules", "m on vulkan", "", "error: a | b"),
        Unread("o on cpu", "its command fails"),
    ]
    told = list(lines(found, {"ptxas": "ptxas is not here"}))
    assert told[0] == "3 figures compared: 1 equal, 2 not."
    assert "| readelf | `.text` | 1 | 1 |" in told
    assert told[-4:] == [
        "- ptxas was left out: ptxas is not here",
        "- not compared: `o on cpu`, its command fails",
        "- 1 of '.text', such as `n on cpu`: the bot has 10, readelf has 12",
        "- 1 of modules, such as `m on vulkan`: spirv-val says: error: a \\| b",
    ]


@pytest.mark.parametrize("module", [compiler_figures, cause_members, cause_reading])
def test_the_second_sources_share_no_code_with_the_bot(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not {name for name in names if name and name.split(".")[0] == "bot"}
