"""What a report says of sources that changed, of functions without names, and of overloads.

With a real compiler.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import needs
import pytest
from command_project import bot, report, write

LIBRARY = """
#include "checks.h"
int area(const int *v, int n) {
  int s = 0;
  CHECK(n > 0);
  for (int i = 0; i < n; i++) { CHECK(v[i]); s += v[i]; }
  return s;
}
int twice(int n) { return 2 * n; }
"""
CHECKS = """
void fail(const char *what, int line);
#define CHECK(condition) do { if (!(condition)) { fail(#condition, __LINE__); return 0; } } while (0)
"""
NO_CHECKS = "#define CHECK(condition) do { } while (0)\n"


@pytest.fixture(autouse=True)
def tools() -> None:
    for program in ("c++", "git", "strip"):
        if shutil.which(program) is None:
            needs.missing(f"no {program}")


def commit(home: Path, text: str = "") -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    (home / ".gitignore").write_text("cache\nout\nagain\n")
    if text:
        (home / "checks.h").write_text(text)
    subprocess.run([*git, "init", "-q", "."], cwd=home, check=True)
    subprocess.run([*git, "add", "-A"], cwd=home, check=True)
    subprocess.run([*git, "commit", "-qm", "x"], cwd=home, check=True)


def test_a_changed_header_is_a_changed_source(tmp_path: Path) -> None:
    run = ["cc", "-Os", "-c", "{model}", "-o", "{out}/code.o"]
    write(
        tmp_path,
        run,
        {"lib.c": LIBRARY},
        base="ref:HEAD~1",
        head="ref:HEAD",
        sources=["*.h"],
    )
    commit(tmp_path, CHECKS)
    commit(tmp_path, NO_CHECKS)
    printed = bot(tmp_path, "compare")
    [cell] = report(tmp_path)["cells"]
    assert cell["first"] == "input"
    assert [(row["name"], row["cause"]) for row in cell["dispatches"]] == [
        ("area", "input")
    ]
    [root] = [
        root for root in report(tmp_path)["root_causes"] if root["cause"] == "input"
    ]
    assert root["what"] == "another file that lib reads changed"
    [dispatch] = cell["dispatches"]
    assert dispatch["note"].endswith("another file that the build reads changed")
    assert "same source" not in printed + (tmp_path / "out/comment.md").read_text()


def test_the_same_source_is_said_where_all_files_are_the_same(tmp_path: Path) -> None:
    run = ["{side}", "-c", "{model}", "-o", "{out}/code.o"]
    write(
        tmp_path, run, {"lib.c": LIBRARY}, base="cc -Os", head="cc -O0", sources=["*.h"]
    )
    (tmp_path / "checks.h").write_text(CHECKS)
    bot(tmp_path, "compare")
    [cell] = report(tmp_path)["cells"]
    assert {row["note"] for row in cell["dispatches"]} == {
        "the same source, different code"
    }
    base = json.loads((tmp_path / "out/base.json").read_text())
    # as an older version of this program measured it
    [(name, program)] = base["programs"].items()
    del program["phases"]["sources"]
    text = json.dumps(program, sort_keys=True, separators=(",", ":"))
    renamed = hashlib.sha256(text.encode()).hexdigest()
    old = json.dumps(base | {"programs": {renamed: program}}).replace(name, renamed)
    (tmp_path / "old.json").write_text(old)
    bot(
        tmp_path,
        "report",
        "--base",
        "old.json",
        "--head",
        "out/head.json",
        "--out",
        "again",
    )
    [cell] = report(tmp_path, "again")["cells"]
    assert {row["note"] for row in cell["dispatches"]} == {
        "the same model, different code"
    }


STRIPPED = (
    "int table[9] = {1};\n"
    + "int f%d(int n) { return n * %d / 7 + table[n %% 9]; }\n" * 40
)


@pytest.mark.parametrize("flags", ["-shared -fPIC", "-r"])
def test_functions_without_names_are_not_said_to_be_the_same(
    tmp_path: Path, flags: str
) -> None:
    text = STRIPPED % tuple(value for number in range(40) for value in (number, number))
    run = [
        "sh",
        "-c",
        (
            f"{{side}} -nostdlib {flags} {{model}} -o {{out}}/code.so && strip"
            " {out}/code.so"
        ),
    ]
    write(
        tmp_path, run, {"lib.c": text}, base="cc -Os", head="cc -O3", artifacts=["*.so"]
    )
    printed = bot(tmp_path, "compare")
    [cell] = report(tmp_path)["cells"]
    names = {row["name"] for row in cell["dispatches"]}
    assert "the code of every dispatch is the same" not in cell["why"] + printed
    base = cell["metrics"]["executable_bytes"]["base"]
    head = cell["metrics"]["executable_bytes"]["head"]
    assert base != head
    if not names:
        assert cell["cause"] is None
        assert (
            cell["why"]
            == "its functions have no names, so their code could not be compared"
        )
        parts = {part["what"]: part["change_bytes"] for part in cell["parts"]}
        assert parts["text of functions without a name"] == head - base
    artifacts = cell["metrics"]["artifact_bytes"]
    assert sum(cell["waterfall"].values()) == artifacts["head"] - artifacts["base"]


def pairs(
    home: Path, base: str, head: str, **files: Any
) -> set[tuple[str | None, str | None]]:
    """Names of functions on both sides, of two commits of one source.

    Equal functions are not among them.
    """
    run = ["c++", "-std=c++17", "-O1", "-c", "{model}", "-o", "{out}/code.o"]
    run = ["{side}", *run[1:]]
    sides = {"base": "c++ -DHEAD=0", "head": "c++ -DHEAD=1"}
    write(
        home,
        run,
        {"code.cpp": f"#if HEAD\n{head}\n#else\n{base}\n#endif\n"},
        **sides,
        **files,
    )
    bot(home, "compare")
    [cell] = report(home)["cells"]
    return {
        (row["base"] and row["base"]["name"], row["head"] and row["head"]["name"])
        for row in cell["dispatches"]
    }


def test_members_of_one_class_template_are_not_mixed_up(tmp_path: Path) -> None:
    text = """
template <class T> struct Box { T v; __attribute__((noinline)) T first(T x) { return x * v FIRST; }
  __attribute__((noinline)) T second(T x SECOND) { return x + v; } };
int use(Box<int> &b) { return b.first(2) + b.second(3 USE); }
"""
    base = text.replace("FIRST", "").replace("SECOND", "").replace("USE", "")
    head = (
        text.replace("FIRST", "/ 3")
        .replace("SECOND", ", T y = 1")
        .replace("USE", ", 2")
    )
    matched = pairs(tmp_path, base, head)
    assert ("_ZN3BoxIiE5firstEi", "_ZN3BoxIiE5firstEi") in matched
    assert all(
        base_name is None or head_name is None or base_name[:13] == head_name[:13]
        for base_name, head_name in matched
    ), matched


def test_overloads_with_one_parameter_more_are_paired_by_what_they_take(
    tmp_path: Path,
) -> None:
    base = "int f(int a) { return a * 3; }\nint f(float a) { return a * 5; }\n"
    head = (
        "int f(int a, int b) { return a * 3 + b; }\nint f(float a, int b) { return a *"
        " 5 + b; }\n"
    )
    assert pairs(tmp_path, base, head) == {("_Z1fi", "_Z1fii"), ("_Z1ff", "_Z1ffi")}


def test_overloads_are_not_paired_with_those_of_another_name(tmp_path: Path) -> None:
    base = (
        "int f(int a) { return a * 3; }\nint f(float a) { return a * 5; }\n"
        "int g(int a, int b) { return a * 7 - b; }\n"
    )
    head = (
        "int f(int a, int b) { return a * 3 + b; }\n"
        "int g(int a) { return a * 7; }\nint g(float a) { return a * 9; }\n"
    )
    assert pairs(tmp_path, base, head) == {
        ("_Z1fi", "_Z1fii"),
        ("_Z1ff", None),
        ("_Z1gii", "_Z1gi"),
        (None, "_Z1gf"),
    }


def test_a_new_overload_with_the_code_of_another_takes_no_one_s_place(
    tmp_path: Path,
) -> None:
    base = "int f(int a) { return a * 3; }\n"
    head = "int f(int a) { return a / 3; }\nint f(unsigned a) { return a * 3; }\n"
    assert pairs(tmp_path, base, head) == {("_Z1fi", "_Z1fi"), (None, "_Z1fj")}


def test_overloads_that_are_equally_alike_are_not_paired(tmp_path: Path) -> None:
    base = (
        "template <int N> __attribute__((noinline)) int k(int a) { return a * N + a /"
        " N; }\n"
    )
    base += "int use(int a) { return k<2>(a) + k<3>(a); }\n"
    head = base.replace("k<2>", "k<5>").replace("k<3>", "k<7>")
    matched = {pair for pair in pairs(tmp_path, base, head) if "use" not in str(pair)}
    assert matched == {
        ("_Z1kILi2EEii", None),
        ("_Z1kILi3EEii", None),
        (None, "_Z1kILi5EEii"),
        (None, "_Z1kILi7EEii"),
    }


TTIR = """module {
  tt.func public @mm(%a: !tt.ptr<f16>) {
    %0 = tt.make_tensor_descriptor %a, [%M, %K], [%s, %c1_i64] : <f16>, <tensor<128x64xf16>> loc(#loc36)
    %1 = tt.descriptor_load %0[%x, %y] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16> loc(#loc44)
    tt.descriptor_store %0[%2, %3], %1 : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16> loc(#loc24)
    tt.return
  }
}
"""
"""As Triton 3.6 writes it; 3.8 writes the types of descriptors without `tensor<…>`."""
SHORT_TTIR = TTIR.replace("<tensor<128x64xf16>>", "<128x64xf16>")


@pytest.mark.parametrize(
    ("head", "operation"),
    [
        (SHORT_TTIR, None),
        (
            SHORT_TTIR.replace(
                "[%s, %c1_i64] : <f16>, <128x64xf16>",
                "[%s, %c1_i64] : <f16>, <128x32xf16>",
            ),
            "128x32",
        ),
        (
            TTIR.replace(
                "    tt.return",
                "    %9 = tt.make_tensor_descriptor %a : <f16>, <tensor<8xf16>>\n",
            ),
            "",
        ),
    ],
)
def test_another_spelling_of_a_type_is_not_another_operation(
    tmp_path: Path, head: str, operation: str | None
) -> None:
    run = [
        "sh",
        "-c",
        "cc -c {model} -O{side} -o {out}/code.o; cp {side}.ttir {out}/k.ttir",
    ]
    code = {
        "k.c": (
            "int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * s; return"
            " s; }\n"
        )
    }
    write(tmp_path, run, code, base="0", head="2", sources=["*.ttir"], stages=["ttir"])
    (tmp_path / "0.ttir").write_text(TTIR)
    (tmp_path / "2.ttir").write_text(head)
    bot(tmp_path, "compare")
    [cell] = report(tmp_path)["cells"]
    [row] = cell["dispatches"]
    if operation is None:
        assert not row.get("pass") and "make_tensor_descriptor" not in json.dumps(
            report(tmp_path)
        )
    else:
        assert row["pass"] == "ttir"
        assert any(
            "make_tensor_descriptor" in name and operation in name
            for name in row["operations"]
        )
