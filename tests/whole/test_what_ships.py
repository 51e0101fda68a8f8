"""Real compiles that give more than a plain `.vmfb`: what ships is measured, or the build fails with the reason."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_compilers import binary, bot, own_cache

from bot.core.metrics import ARTIFACT_PARTS, OTHER, TABLES
from bot.core.snapshot import Cell
from bot.core.snapshot_json import from_json

pytestmark = pytest.mark.compiler

RELEASE = "3.13.0"
MATMUL = """func.func @layer(%x: tensor<32x64xf32>, %y: tensor<64x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %sum = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %0 = linalg.matmul ins(%x, %y : tensor<32x64xf32>, tensor<64x32xf32>)
      outs(%sum : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""
ZIP = "--iree-vm-emit-polyglot-zip=true"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache(tmp_path_factory.mktemp("cache"), RELEASE)


@dataclass(frozen=True)
class Suite:
    """One model and its targets, in a folder of its own."""

    home: Path
    cache: Path

    def write(self, model: str, targets: Sequence[str] | Mapping[str, Any]) -> Path:
        """Write the model and the configuration, and return its path."""
        (self.home / "model.mlir").write_text(model, encoding="utf-8")
        keys = {
            "schema": "code-size-config/1",
            "models": ["model.mlir"],
            "targets": targets,
        }
        path = self.home / "config.yml"
        path.write_text(json.dumps(keys), encoding="utf-8")
        return path

    def measure(
        self, model: str, targets: Sequence[str] | Mapping[str, Any]
    ) -> dict[str, Cell]:
        """Return target → cell."""
        config = self.write(model, targets)
        out = self.home / "snapshot.json"
        bot(
            "measure",
            "--compiler",
            RELEASE,
            "--config",
            config,
            "--cache",
            self.cache,
            "--out",
            out,
            codes=(0, 5),
        )
        return {
            cell.key.target: cell
            for cell in from_json(out.read_text(encoding="utf-8")).cells
        }

    def compare(
        self, model: str, targets: Mapping[str, Any], *options: str
    ) -> dict[str, Any]:
        """Return target → cell of the report, of a comparison with these options on head."""
        config = self.write(model, targets)
        out = self.home / "out"
        where = ("--config", config, "--cache", self.cache, "--out", out)
        bot("compare", "--compiler", RELEASE, *options, *where, codes=(0, 1, 5))
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        return {cell["target"]: cell for cell in report["cells"]}


@pytest.fixture
def suite(tmp_path: Path, cache: Path) -> Suite:
    """A folder of its own for each test."""
    return Suite(tmp_path, cache)


def extended(*flags: str, target: str = "llvm-cpu-x86_64") -> dict[str, Any]:
    """Return a target of the configuration that adds these flags."""
    return {"extends": target, "flags": list(flags)}


def require_parts(cell: Cell) -> None:
    """Check that the artifact's size is known, and the sum of its parts."""
    values = [cell.metrics[name] for name in ARTIFACT_PARTS]
    assert None not in values
    assert sum(value or 0 for value in values) == cell.metrics["artifact_bytes"]


# The compiler's default container.


@pytest.mark.parametrize("target", ["llvm-cpu-x86_64", "vmvx", "vulkan-spirv"])
def test_a_polyglot_zip_is_read_like_the_plain_artifact(
    suite: Suite, target: str
) -> None:
    cells = suite.measure(
        MATMUL, {"zip": extended(ZIP, target=target), target: extended(target=target)}
    )
    zipped = cells["zip"]
    plain = cells[target]
    assert (zipped.status, plain.status) == ("ok", "ok")
    require_parts(zipped)
    assert zipped.metrics["entry_points"] == plain.metrics["entry_points"] == 1
    headers = (TABLES, OTHER)  # an executable of vmvx is a ZIP itself
    assert without(zipped.parts, headers) == without(plain.parts, headers)
    assert (zipped.metrics["artifact_bytes"] or 0) > (
        plain.metrics["artifact_bytes"] or 0
    )


def without(parts: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    """Return the parts but for these."""
    return {name: size for name, size in parts.items() if name not in names}


# Models that compile, and of which nothing is compiled for the target.


LAYOUT = "#hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>]>"
KERNEL = f"""hal.executable public @kernel {{
  hal.executable.variant public @vmvx target(#hal.executable.target<"vmvx", "vmvx-bytecode-fb", {{}}>) {{
    hal.executable.export public @run ordinal(0) layout({LAYOUT})
    builtin.module {{
      func.func @run() {{
        return
      }}
    }}
  }}
}}
"""
LOADED = (
    "util.global public mutable @state = 1 : i32\nutil.func private @unused() {\n "
    " util.return\n}\n"
)


@pytest.mark.parametrize("model", [KERNEL, LOADED])
def test_a_model_without_a_public_function_fails_with_that_reason(
    suite: Suite, model: str
) -> None:
    for cell in suite.measure(model, ["llvm-cpu-x86_64", "cuda"]).values():
        assert cell.status == "failed" and not cell.metrics
        assert cell.reason.startswith(
            "the model has no public function, so the artifact is empty"
        )


def test_a_function_without_device_code_is_measured(suite: Suite) -> None:
    model = (
        "func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x :"
        " tensor<4xf32>\n}\n"
    )
    cell = suite.measure(model, ["llvm-cpu-x86_64"])["llvm-cpu-x86_64"]
    assert (
        cell.status,
        cell.metrics["executables"],
        cell.metrics["executable_bytes"],
    ) == ("ok", 0, 0)


VMVX_TARGET = """#vmvx = #hal.executable.target<"vmvx", "vmvx-bytecode-fb", {}>
#local = #hal.device.target<"local", [#vmvx]> : !hal.device
"""
ATTRIBUTE = (
    f"{VMVX_TARGET}module attributes {{hal.device.targets = [#local]}} {{\n{MATMUL}}}\n"
)
GLOBAL = f"{VMVX_TARGET}util.global private @device = #local\n{MATMUL}"
ALIAS = (
    'module attributes {hal.device.targets = [#hal.device.alias<"vulkan"> :'
    f" !hal.device]}} {{\n{MATMUL}}}\n"
)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (ATTRIBUTE, " (vmvx vmvx-bytecode-fb)"),
        (GLOBAL, " (vmvx vmvx-bytecode-fb)"),
        (ALIAS, ""),
    ],
)
def test_a_model_with_devices_of_its_own_is_counted_for_no_target(
    suite: Suite, model: str, named: str
) -> None:
    cells = suite.measure(model, ["llvm-cpu-x86_64", "llvm-cpu-aarch64", "cuda"])
    assert len(cells) == 3
    for cell in cells.values():
        assert (cell.status, cell.failure.stage if cell.failure else "") == (
            "failed",
            "output",
        )
        assert cell.reason.startswith(
            f"the model names its own devices{named}, which replace the target: remove"
        )
    report = suite.compare(model, {"x86": extended()})["x86"]
    assert report["state"] == "broken" and report["metrics"]["artifact_bytes"] == {
        "base": None,
        "head": None,
    }


# A device without room for what the code generator asks.

LONG = "a_function_whose_name_is_as_long_as_those_of_real_models_" * 4
SCATTERED = f"""util.func public @{LONG}(%g: !hal.buffer_view, %w: !hal.buffer_view)
    -> !hal.buffer_view attributes {{
      iree.abi.stub,
      preprocessing_pipeline = #util.preprocessing_pipeline<"iree-preprocessing-make-single-dispatch">}} {{
  %zero = arith.constant 0.0 : bf16
  %wide = arith.constant 0.0 : f32
  %0 = hal.tensor.import %g : !hal.buffer_view -> tensor<2x16x24x192xbf16>
  %1 = hal.tensor.import %w : !hal.buffer_view -> tensor<192x1x1x96xbf16>
  %e = tensor.empty() : tensor<2x31x47x192xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<2x31x47x192xbf16>) -> tensor<2x31x47x192xbf16>
  %s = tensor.insert_slice %0 into %f[0, 0, 0, 0] [2, 16, 24, 192] [1, 2, 2, 1]
      : tensor<2x16x24x192xbf16> into tensor<2x31x47x192xbf16>
  %oe = tensor.empty() : tensor<2x31x47x96xf32>
  %of = linalg.fill ins(%wide : f32) outs(%oe : tensor<2x31x47x96xf32>) -> tensor<2x31x47x96xf32>
  %c = linalg.generic {{
      indexing_maps = [affine_map<(n, h, w, c, k, i, j) -> (n, h + i, w + j, k)>,
                       affine_map<(n, h, w, c, k, i, j) -> (k, i, j, c)>,
                       affine_map<(n, h, w, c, k, i, j) -> (n, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%s, %1 : tensor<2x31x47x192xbf16>, tensor<192x1x1x96xbf16>) outs(%of : tensor<2x31x47x96xf32>) {{
  ^bb0(%a: bf16, %b: bf16, %sum: f32):
    %ae = arith.extf %a : bf16 to f32
    %be = arith.extf %b : bf16 to f32
    %p = arith.mulf %ae, %be : f32
    %t = arith.addf %sum, %p : f32
    linalg.yield %t : f32
  }} -> tensor<2x31x47x96xf32>
  %te = tensor.empty() : tensor<2x31x47x96xbf16>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%c : tensor<2x31x47x96xf32>) outs(%te : tensor<2x31x47x96xbf16>) {{
  ^bb0(%a: f32, %o: bf16):
    %q = arith.truncf %a : f32 to bf16
    linalg.yield %q : bf16
  }} -> tensor<2x31x47x96xbf16>
  %x = hal.tensor.export %r : tensor<2x31x47x96xbf16> -> !hal.buffer_view
  util.return %x : !hal.buffer_view
}}
"""


def test_workgroup_memory_that_a_device_lacks_is_reported_with_figure_and_limit(
    suite: Suite,
) -> None:
    targets = {
        "gfx942": extended(target="rocm"),
        "gfx950": extended("--iree-rocm-target=gfx950", target="rocm"),
    }
    cells = suite.measure(SCATTERED, targets)
    assert {cell.failure.figure_bytes for cell in cells.values() if cell.failure} == {
        1_131_264
    }
    suite.compare(SCATTERED, targets)
    comment = (suite.home / "out" / "comment.md").read_text(encoding="utf-8")
    for name, limit in (("gfx942", "65,536"), ("gfx950", "163,840")):
        message = (
            "above the device's workgroup memory: a function needs 1,131,264 B, the"
            f" limit is {limit} B"
        )
        (line,) = [line for line in comment.splitlines() if message in line]
        assert f"`{name}`" in line


# Machine code beside the artifact, or in it as a library of the system.

LIBRARY = ("--iree-llvmcpu-link-embedded=false", "--iree-llvmcpu-link-static")
PATH_OPTION = "--iree-llvmcpu-static-library-output-path"
TWO = MATMUL.replace(
    "return %0 : tensor<32x32xf32>",
    "return %0, %1 : tensor<32x32xf32>, tensor<64x64xf32>",
).replace("-> tensor<32x32xf32> {", "-> (tensor<32x32xf32>, tensor<64x64xf32>) {", 1)
TWO = TWO.replace(
    "  return",
    """  %large = tensor.empty() : tensor<64x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%large : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = linalg.matmul ins(%y, %x : tensor<64x32xf32>, tensor<32x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  return""",
)


def test_a_static_library_is_part_of_the_artifact(suite: Suite, tmp_path: Path) -> None:
    targets = {"static": extended(*LIBRARY, f"{PATH_OPTION}=lib/static.o")}
    before = suite.measure(TWO, targets)["static"]
    require_parts(before)
    assert (before.status, before.metrics["entry_points"], len(before.dispatches)) == (
        "ok",
        2,
        2,
    )
    assert all(row.code_bytes and row.code for row in before.dispatches)
    folder = tmp_path / "made"
    (folder / "lib").mkdir(parents=True)
    command = shlex.split(before.command)
    argv = [str(binary(RELEASE)), *command[1 : command.index("<")]]
    with (suite.home / "model.mlir").open("rb") as source:
        subprocess.run(argv, stdin=source, cwd=folder, check=True)
    shipped = [(folder / name).read_bytes() for name in ("model.vmfb", "lib/static.o")]
    sizes = [len(data) for data in shipped]
    assert (before.metrics["artifact_bytes"], before.metrics["executable_bytes"]) == (
        sum(sizes),
        sizes[1],
    )
    digests = " ".join(hashlib.sha256(data).hexdigest() for data in shipped)
    assert before.artifact_digest == hashlib.sha256(digests.encode()).hexdigest()
    assert sorted(path.name for path in suite.home.iterdir()) == [
        "config.yml",
        "made",
        "model.mlir",
        "snapshot.json",
    ]


def test_code_that_grows_in_a_static_library_is_a_change(suite: Suite) -> None:
    targets = {"static": extended(*LIBRARY)}
    cell = suite.compare(TWO, targets, "--flags=--align-all-blocks=6")["static"]
    grown = {
        name: value["head"] - value["base"]
        for name, value in cell["metrics"].items()
        if name in ARTIFACT_PARTS
    }
    assert cell["state"] == "changed" and cell["identical"] is False
    assert grown["executable_bytes"] > 1000
    assert sum(cell["waterfall"].values()) == sum(grown.values())


def test_a_static_library_of_one_of_several_executables_does_not_ship_the_program(
    suite: Suite,
) -> None:
    targets = {"apart": extended(*LIBRARY, "--iree-hal-link-executables=false")}
    cell = suite.measure(TWO, targets)["apart"]
    assert (cell.status, cell.metrics) == ("failed", {})
    assert cell.reason.startswith(
        "the static library has 1 of 2 entry points: layer_dispatch_"
    )


def test_libraries_of_other_formats_count_whole_and_those_of_the_system_like_any_executable(
    suite: Suite,
) -> None:
    cells = suite.measure(
        TWO,
        {
            "system": extended(LIBRARY[0]),
            "windows": extended(
                *LIBRARY, "--iree-llvmcpu-target-triple=x86_64-pc-windows-msvc"
            ),
        },
    )
    for cell in cells.values():
        require_parts(cell)
        assert (cell.status, cell.metrics["entry_points"]) == ("ok", 2)
        assert (cell.metrics["executable_bytes"] or 0) > 1000
    windows = cells["windows"]
    assert windows.parts["executables/unread"] == windows.metrics["executable_bytes"]
    assert windows.reasons["unread"].startswith("static library of ")


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--output-format=vm-c", "--output-format is not a flag for a build"),
        (
            "--iree-vm-bytecode-module-output-format=mlir-text",
            "-output-format is not a flag for a build",
        ),
        (
            "--iree-vm-c-module-output-format=code",
            "--iree-vm-c-module-output-format is not a flag for a build",
        ),
        ("--compile-to=vm", "--compile-to is not a flag for a build"),
        ("--compile-mode=hal-executable", "--compile-mode is not a flag for a build"),
        ("--split-input-file", "--split-input-file is not a flag for a build"),
        ("--iree-list-plugins", "--iree-list-plugins is not a flag for a build"),
        (
            "--iree-opt-export-parameters=model=weights.irpa",
            "the bot does not measure an archive of parameters",
        ),
        (f"{PATH_OPTION}=/home/me/library.o", "write a relative path that ends in .o"),
        (f"{PATH_OPTION}=a/../../library.o", "write a relative path that ends in .o"),
        (f"{PATH_OPTION}=out.vmfb", "write a relative path that ends in .o"),
    ],
)
def test_a_flag_whose_output_is_not_measured_is_refused_by_name(
    suite: Suite, flag: str, message: str
) -> None:
    for targets, options in (
        ({"x86": extended(flag)}, ()),
        ({"x86": extended()}, (f"--flags={flag}",)),
    ):
        config = suite.write(MATMUL, targets)
        done = bot(
            "compare",
            "--compiler",
            RELEASE,
            "--config",
            config,
            "--cache",
            suite.cache,
            *options,
            codes=(2,),
        )
        assert message in done.stderr and "Traceback" not in done.stderr
        assert flag.partition("=")[0] in done.stderr


# Memory that the caller lends.


def lending(size: int) -> str:
    """Return a program of two products of square matrices, whose intermediate lies in its caller's memory."""
    tensor = f"tensor<{size}x{size}xf32>"
    return f"""util.func public @chain(%x: !hal.buffer_view, %storage: !hal.buffer) -> !hal.buffer_view {{
  %0 = hal.tensor.import %x : !hal.buffer_view -> {tensor}
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {tensor}
  %f = linalg.fill ins(%zero : f32) outs(%e : {tensor}) -> {tensor}
  %1 = linalg.matmul ins(%0, %0 : {tensor}, {tensor}) outs(%f : {tensor}) -> {tensor}
  %2 = linalg.matmul ins(%1, %0 : {tensor}, {tensor}) outs(%f : {tensor}) -> {tensor}
  %3 = hal.tensor.transients %2 : {tensor} from %storage : !hal.buffer
  %4 = hal.tensor.export %3 : {tensor} -> !hal.buffer_view
  util.return %4 : !hal.buffer_view
}}
"""


@pytest.mark.parametrize("size", [128, 256])
def test_memory_that_the_caller_lends_is_memory_of_the_program(
    suite: Suite, size: int
) -> None:
    lent = suite.measure(lending(size), ["llvm-cpu-x86_64"])["llvm-cpu-x86_64"]
    own_text = (
        lending(size)
        .replace(", %storage: !hal.buffer)", ")")
        .replace("export %3", "export %2")
    )
    own_text = "\n".join(
        line for line in own_text.splitlines() if "hal.tensor.transients" not in line
    )
    allocated = suite.measure(own_text, ["llvm-cpu-x86_64"])["llvm-cpu-x86_64"]
    assert (
        lent.metrics["program_memory_bytes"]
        == allocated.metrics["program_memory_bytes"]
        == 3 * 4 * size * size
    )
    assert lent.metrics["dynamic_buffers"] == allocated.metrics["dynamic_buffers"] == 0
