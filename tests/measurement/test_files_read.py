"""Every byte that a build reads is part of its key: a file that changed is compiled again."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs
import numpy
import onnx
import prepared_program
import pytest
import real_compilers
import yaml
from real_compilers import own_cache

from bot.compiler.file_options import kind_of
from bot.compiler.inputs import Reader, with_inputs
from bot.compiler.outside import outside_of
from bot.core.planned import Model, PlannedCell, Target
from bot.system.confined import PLACE

RELEASE = "3.13.0"
ADD = """func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
OBJECT = """
#x86 = #hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {
  cpu = "generic", cpu_features = "", native_vector_size = 16 : i64,
  data_layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
  target_triple = "x86_64-unknown-unknown-eabi-elf"}>
module {
  stream.executable private @kernels attributes {
    hal.executable.objects = #hal.executable.objects<{
      #x86 = [#hal.executable.object<{path = "NAME"}>]}>
  } {
    stream.executable.export public @twice workgroups() -> (index, index, index) {
      %c1 = arith.constant 1 : index
      stream.return %c1, %c1, %c1 : index, index, index
    }
    builtin.module {
      func.func private @tile(memref<8xf32>) attributes {hal.import.static}
      func.func @twice(%b: !stream.binding) {
        %c0 = arith.constant 0 : index
        %m = stream.binding.subspan %b[%c0] : !stream.binding -> memref<8xf32>
        func.call @tile(%m) : (memref<8xf32>) -> ()
        return
      }
    }
  }
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = flow.dispatch @kernels::@twice(%a) : (tensor<8xf32>) -> %a
    return %0 : tensor<8xf32>
  }
}
"""
KERNEL = """
void tile(float *base, float *aligned, long offset) {
  for (long i = 0; i < 8; ++i) aligned[offset + i] = COMPUTED;
}
"""
SMALL = "aligned[offset + i] * 2.0f"
LARGE = " + ".join(
    f"aligned[(offset + i + {step}) & 7] * {step}.5f" for step in range(60)
)


def measured(
    home: Path, *arguments: str, cache: str = "cache", codes: tuple[int, ...] = (0,)
) -> str:
    argv = ["measure", "--compiler", RELEASE, *arguments, "--cache", str(home / cache)]
    done = prepared_program.bot(
        *argv, "--out", str(home / "head.json"), cwd=home, codes=codes
    )
    return done.stdout + done.stderr


def cell(home: Path, name: str = "head.json") -> dict[str, Any]:
    [row] = json.loads((home / name).read_text())["cells"]
    stored_row: dict[str, Any] = row
    return stored_row


def artifact_bytes(home: Path) -> int:
    row = cell(home)
    assert row["status"] == "ok", row["failure"]
    size: int = row["metrics"]["artifact_bytes"]
    return size


def write_object(path: Path, computed: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(KERNEL.replace("COMPUTED", computed))
    options = (
        "-O2 -c -fPIC -ffreestanding -fno-asynchronous-unwind-tables -mno-red-zone -o"
    )
    subprocess.run(["gcc", *options.split(), str(path), str(source)], check=True)


def configure(home: Path, flags: list[str], model: str = "model.mlir") -> Path:
    target = {
        "backend": "llvm-cpu",
        "flags": [
            "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
            "--iree-llvmcpu-target-cpu=generic",
            *flags,
        ],
    }
    config = {
        "schema": "code-size-config/1",
        "models": [model],
        "targets": {"generic": target},
    }
    home.mkdir(parents=True, exist_ok=True)
    path = home / "code-size.yml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    own_cache(tmp_path / "cache", RELEASE)
    own_cache(tmp_path / "empty", RELEASE)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("objects/kernel.o", "HOME"),
        pytest.param("objects\\2Fkernel.o", ".", marks=pytest.mark.slow),
        pytest.param("objects/kernel.o", "../HOME_NAME", marks=pytest.mark.slow),
    ],
)
def test_an_object_file_that_the_model_names(
    home: Path, name: str, search: str
) -> None:
    try:
        write_object(home / "objects/kernel.o", SMALL)
    except (OSError, subprocess.CalledProcessError):
        needs.missing("no gcc for x86-64")
    (home / "model.mlir").write_text(OBJECT.replace("NAME", name))
    place = search.replace("HOME_NAME", home.name).replace("HOME", str(home))
    configure(home, [f"--iree-hal-executable-object-search-path={place}"])
    measured(home)
    small = artifact_bytes(home)
    assert "1 from the cache" in measured(home)
    write_object(home / "objects/kernel.o", LARGE)
    assert "0 from the cache" in measured(home)
    large = artifact_bytes(home)
    measured(home, cache="empty")
    assert artifact_bytes(home) == large > small
    write_object(home / "objects/kernel.o", SMALL)
    assert "1 from the cache" in measured(home)
    assert artifact_bytes(home) == small


@pytest.mark.slow
def test_a_report_says_that_a_file_beside_the_model_changed(home: Path) -> None:
    try:
        write_object(home / "kernel.o", SMALL)
    except (OSError, subprocess.CalledProcessError):
        needs.missing("no gcc for x86-64")
    (home / "model.mlir").write_text(OBJECT.replace("NAME", "kernel.o"))
    configure(home, ["--iree-hal-executable-object-search-path=."])
    measured(home)
    (home / "head.json").rename(home / "base.json")
    write_object(home / "kernel.o", LARGE)
    argv = [
        "compare",
        "--base",
        "base.json",
        "--head",
        RELEASE,
        "--cache",
        str(home / "cache"),
    ]
    done = prepared_program.bot(*argv, cwd=home)
    assert "What changed: files read beside the model model" in done.stdout
    assert (
        "deterministic" not in done.stdout
        and "nothing: both sides have the same" not in done.stdout
    )
    report = json.loads((home / "out/report.json").read_text())
    assert report["root_causes"][0]["cause"] == "input"


SPECS = {
    "--iree-codegen-tuning-spec-path=specs/a.mlir": "specs/a.mlir",
    "--iree-codegen-transform-dialect-library=specs/a.mlir@__kernel_config": (
        "specs/a.mlir"
    ),
    "--iree-preprocessing-transform-spec-filename=specs/a.mlir": "specs/a.mlir",
    "--iree-link-bitcode=x86_64=specs/a.bc,specs/b.bc": "specs/b.bc",
    "--iree-parameter-import=scope=specs/a.irpa": "specs/a.irpa",
    "--iree-rocm-bc-dir=specs": "specs/deep/ocml.bc",
    "--iree-hal-substitute-executable-sources-from=specs": "specs/x.mlir",
    "--iree-hal-substitute-executable-object=main=specs/a.o": "specs/a.o",
}


@pytest.mark.parametrize("flag", SPECS)
def test_a_file_that_a_flag_names_is_part_of_the_key(tmp_path: Path, flag: str) -> None:
    (tmp_path / "model.mlir").write_text(ADD)
    path = tmp_path / SPECS[flag]
    path.parent.mkdir(parents=True)
    digests = list[str]()
    for text in ("", "one", "two", "one"):
        path.write_text(text) if text else path.unlink(missing_ok=True)
        [read] = with_inputs([build(tmp_path, flag)], tmp_path, None)
        assert read.unlisted == ""
        digests.append(read.inputs)
    assert len(set(digests)) == 3 and digests[1] == digests[3]
    assert str(tmp_path) in " ".join(read.argv) and str(tmp_path) not in read.command()


SPEC = """module attributes { transform.with_named_sequence } {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}
"""


def test_a_transform_spec_that_changed_is_compiled_again(home: Path) -> None:
    """The spec is read from the folder of the configuration, wherever the command runs."""
    suite = home / "suite"
    flag = "--iree-preprocessing-transform-spec-filename=spec.mlir"
    config = str(configure(suite, [flag]))
    (suite / "model.mlir").write_text(ADD)
    (suite / "spec.mlir").write_text(SPEC)
    assert "0 from the cache" in measured(home, "--config", config)
    assert cell(home)["status"] == "ok", cell(home)["failure"]
    assert "1 from the cache" in measured(home, "--config", config)
    (suite / "spec.mlir").unlink()
    assert "0 from the cache" in measured(home, "--config", config, codes=(5,))
    assert cell(home)["status"] == "failed"


PATTERNS = """pdl.pattern @none : benefit(1) {
  %0 = pdl.operation "no.such"
  pdl.rewrite %0 { pdl.erase %0 }
}
"""
READING_SPEC = """module attributes { transform.with_named_sequence } {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
    %all = transform.apply_registered_pass "iree-preprocessing-apply-pdl-patterns"
      with options = { "patterns-file" = "PATTERNS" } to %root
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


def test_a_spec_that_names_a_pass_turns_the_cache_off(home: Path) -> None:
    """The pass reads a file that no flag and no model names."""
    patterns = home / "patterns.mlir"
    patterns.write_text(PATTERNS)
    (home / "model.mlir").write_text(ADD)
    (home / "spec.mlir").write_text(READING_SPEC.replace("PATTERNS", str(patterns)))
    configure(home, ["--iree-preprocessing-transform-spec-filename=spec.mlir"])
    printed = measured(home)
    assert (
        "1 build is not cached: a pass that spec.mlir names may read any file"
        in printed
    )
    assert cell(home)["status"] == "ok", cell(home)["failure"]
    patterns.unlink()
    measured(home, codes=(5,))
    assert cell(home)["status"] == "failed"


@pytest.mark.parametrize(
    "flag", ["--iree-rocm-bc-dir=specs", "--iree-link-bitcode=a,specs/spec.mlir"]
)
def test_a_folder_with_a_spec_that_names_a_pass_has_no_key(
    tmp_path: Path, flag: str
) -> None:
    (tmp_path / "model.mlir").write_text(ADD)
    (tmp_path / "specs").mkdir()
    text = "x" * ((1 << 20) - 5) + READING_SPEC
    (tmp_path / "specs" / "spec.mlir").write_text(text)
    assert (
        "may read any file" in Reader(tmp_path).of_iree(build(tmp_path, flag)).unlisted
    )


OPTION = re.compile(r"^ +(--[\w.-]+)=<[^>]*>(.*)$", re.MULTILINE)
OF_A_FILE = re.compile(r"\b(files?|paths?|director(?:y|ies)|folders?)\b", re.IGNORECASE)


@pytest.mark.compiler
@pytest.mark.parametrize("release", ["3.11.0", "3.13.0"])
def test_every_option_whose_help_speaks_of_a_file_is_known_or_turns_the_cache_off(
    release: str,
) -> None:
    argv = [str(real_compilers.binary(release)), "--help-hidden"]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    options = dict(OPTION.findall(text))
    assert len(options) > 900
    about_files = {
        option
        for option, description in options.items()
        if OF_A_FILE.search(f"{option} {description}")
    }
    assert not {
        option for option in about_files if kind_of(f"{option}=some/file") == "nothing"
    }


UNKNOWN = "--mir2vec-vocab-path=vocabulary.json"


def test_an_option_that_may_read_any_file_turns_the_cache_off(home: Path) -> None:
    (home / "model.mlir").write_text(ADD)
    configure(home, [UNKNOWN])
    for _ in range(2):
        printed = measured(home)
        assert "0 from the cache" in printed
        assert (
            "1 build is not cached: --mir2vec-vocab-path may read any file" in printed
        )
    assert cell(home)["inputs"] == "unlisted"


@pytest.mark.parametrize(
    "flag", [UNKNOWN, "--iree-llvmcpu-link-embedded=false", "--a-plugin-s=x"]
)
def test_what_may_read_a_file(flag: str) -> None:
    assert kind_of(flag) == "unknown"


@pytest.mark.parametrize(
    "flag",
    [
        "--iree-opt-level=O3",
        "--iree-llvmcpu-target-cpu-features=+avx2",
        "--iree-opt-data-tiling",
        "--iree-opt-data-tiling=false",
        "--iree-llvmcpu-stack-allocation-limit=1073741824",
        "--iree-llvmcpu-link-embedded=true",
    ],
)
def test_what_reads_no_file(flag: str) -> None:
    assert kind_of(flag) == "nothing"


def build(home: Path, *flags: str, model: str = "model.mlir") -> PlannedCell:
    path = home / model
    read = Model(
        name="model",
        path=str(path),
        shown=model,
        digest="0" * 64,
        size_bytes=path.stat().st_size,
    )
    return PlannedCell(read, Target("t", "llvm-cpu", flags))


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("IREE_LOAD_PLUGINS", ADD, "the variable IREE_LOAD_PLUGINS is set"),
        (
            "OTHER",
            ADD + "// preprocessing_pipeline",
            "a pipeline of passes, which the model names",
        ),
        ("OTHER", "ML\xefR hal.executable.objects", "bytecode that names object files"),
    ],
)
def test_a_model_that_may_read_any_file_has_no_key(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    text: str,
    reason: str,
) -> None:
    monkeypatch.setenv(variable, "x")
    (tmp_path / "model.mlir").write_bytes(text.encode("latin-1"))
    assert reason in Reader(tmp_path).of_iree(build(tmp_path)).unlisted


def test_a_folder_of_too_many_files_has_no_key(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(ADD)
    (tmp_path / "many").mkdir()
    for number in range(10_001):
        (tmp_path / "many" / str(number)).touch()
    files = Reader(tmp_path).of_iree(build(tmp_path, "--iree-rocm-bc-dir=many"))
    assert files.unlisted == "the folder many has too many files"


def test_external_data_of_onnx_is_part_of_the_key(tmp_path: Path) -> None:
    make = onnx.helper.make_tensor_value_info
    values = onnx.numpy_helper.from_array(numpy.ones((300,), "float32"), "w")
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["y"])]
    shapes = [make(name, onnx.TensorProto.FLOAT, [300]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", shapes[:1], shapes[1:], [values])
    name = "weights-" + "long" * 40 + ".bin"
    onnx.save_model(
        onnx.helper.make_model(graph),
        str(tmp_path / "model.onnx"),
        save_as_external_data=True,
        location=name,
        size_threshold=0,
    )
    digests = set[str]()
    for data in (b"\0" * 1200, b"\1" * 1200):
        (tmp_path / name).write_bytes(data)
        files = Reader(tmp_path).of_iree(build(tmp_path, model="model.onnx"))
        assert files.unlisted == "" and files.digest
        digests.add(files.digest)
    assert len(digests) == 2


LIBRARY = """#include "size.h"
int sum(const int *v) { int s = 0; for (int i = 0; i < SIZE; ++i) s += v[i] * i; return s; }
"""


def command(
    home: Path, run: list[str], **compiler: Any
) -> Callable[[], tuple[int, str]]:
    """Configure a C compiler.

    Returns what measures, and gives the bytes of text and what was said.
    """
    keys = {"kind": "command", "run": run, "artifacts": ["*.o"], **compiler}
    config = {
        "schema": "code-size-config/1",
        "compiler": keys,
        "models": ["lib.c"],
        "targets": {"here": {}},
    }
    (home / "lib.c").write_text(LIBRARY)
    (home / "code-size.yml").write_text(yaml.safe_dump(config))

    def measure() -> tuple[int, str]:
        argv = [
            "measure",
            "--compiler",
            "cc -O3 -funroll-loops",
            "--cache",
            str(home / "cells"),
        ]
        done = prepared_program.bot(*argv, "--out", "head.json", cwd=home)
        size: int = cell(home)["metrics"]["executable_bytes"]
        return size, done.stdout + done.stderr

    return measure


def test_a_header_among_the_sources_of_a_command(tmp_path: Path) -> None:
    run = ["{side}", "-c", "{model}", "-o", "{out}/a.o"]
    measure = command(tmp_path, run, sources=["*.h"])
    (tmp_path / "size.h").write_text("#define SIZE 2\n")
    small, _ = measure()
    assert "1 from the cache" in measure()[1]
    (tmp_path / "size.h").write_text("#define SIZE 4000\n")
    large, printed = measure()
    assert "0 from the cache" in printed and large > small


NAMING = {
    "a flag": ["{side}", "-c", "-IHOME/elsewhere", "{model}", "-o", "{out}/a.o"],
    "a response file": [
        "{side}",
        "-c",
        "{model}",
        "-o",
        "{out}/a.o",
        "@HOME/elsewhere/flags.rsp",
    ],
    "a script": ["sh", "build.sh", "{side}", "{model}", "{out}/a.o"],
}


@pytest.mark.parametrize("way", NAMING)
def test_a_command_that_names_a_file_elsewhere_is_not_cached(
    tmp_path: Path, way: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "flags.rsp").write_text(f"-I{elsewhere}\n")
    script = f'compiler=$1\n$compiler -c -isystem "{elsewhere}" "$2" -o "$3"\n'
    (tmp_path / "build.sh").write_text(script)
    measure = command(
        tmp_path, [word.replace("HOME", str(tmp_path)) for word in NAMING[way]]
    )
    if way == "a script":
        config = yaml.safe_load((tmp_path / "code-size.yml").read_text())
        config["compiler"]["run"] = ["sh", "build.sh", "cc -O3", "{model}", "{out}/a.o"]
        (tmp_path / "code-size.yml").write_text(yaml.safe_dump(config))
    (elsewhere / "size.h").write_text("#define SIZE 2\n")
    small, _ = measure()
    (elsewhere / "size.h").write_text("#define SIZE 4000\n")
    large, printed = measure()
    assert large > small
    assert f"1 build is not cached: the command names {elsewhere}" in printed


def test_a_program_of_no_package_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a wrapper starts is not known."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "wrapped-cc").write_text('#!/bin/sh\nexec sh "${0%/*}/flags" "$@"\n')
    (tools / "wrapped-cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    measure = command(tmp_path, ["wrapped-cc", "-c", "{model}", "-o", "{out}/a.o"])
    (tmp_path / "lib.c").write_text(LIBRARY.replace('#include "size.h"', ""))
    (tools / "flags").write_text('exec cc -Os -DSIZE=2 "$@"\n')
    small, _ = measure()
    (tools / "flags").write_text('exec cc -O3 -DSIZE=4000 "$@"\n')
    large, printed = measure()
    assert large != small and "not cached: the command names" in printed


@pytest.mark.parametrize(
    "text",
    [
        "cc -IHOME/x.h a.c",
        "cc -isystemHOME/x.h a.c",
        "cc --include=HOME/x.h",
        "cc @HOME/x.h",
        "import os; os.system('cc HOME/x.h')",
        '#include "HOME/x.h"',
        '#include "../../NAME/x.h"',
        "cc -I ../NAME",
    ],
)
def test_a_path_that_leads_out_of_the_folder_of_a_command(text: str) -> None:
    with tempfile.TemporaryDirectory(dir=PLACE.parent) as folder:
        home = Path(folder)
        named = text.replace("HOME", folder).replace("NAME", home.name).encode()
        (home / "x.h").write_text("")
        assert outside_of([("", named)], None).startswith(folder)


def test_what_stays_in_the_folder_of_a_command() -> None:
    text = (
        b"/usr/bin/cc -O2 -Iinclude a/b.c ../include/x.h https://example.com/tmp"
        b" /dev/null"
    )
    assert outside_of([("Makefile", text), ("a.o", b"\0/tmp")], None) == ""
