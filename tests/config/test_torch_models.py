"""Suites in the layout of IREE's torch_models: modules, targets, goldens, and what is wrong with them in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_models import CPU, HIP, VMVX, compstat, configuration, module, suite, write

from bot.config.configuration import Config, load_config
from bot.config.torch_models import suite_target
from bot.errors import ConfigError

X86 = "llvm-cpu-x86_64-x86-64-v3"
DIGEST = "0123456789abcdef" * 4


def loaded(folder: Path, entry: str = "{torch_models: suite}", more: str = "") -> Config:
    return load_config(configuration(folder, entry, more))


def refusal(folder: Path, entry: str = "{torch_models: suite}", more: str = "") -> str:
    with pytest.raises(ConfigError) as refused:
        loaded(folder, entry, more)
    return refused.value.line.replace(f"{folder}/", "")


# What is read.


def test_each_module_has_its_own_flags_and_target(tmp_path: Path) -> None:
    suite(tmp_path / "suite")
    module(tmp_path / "suite", "llm/8b/modules/llama_gfx942", "https://example.com/a/b.mlir?sv=1", HIP)
    config = loaded(tmp_path)
    assert [(one.name, one.target.name, one.target.backend, one.target.argv) for one in config.suites] == [
        ("llm-8b-llama_gfx942", "rocm-gfx942", "rocm", HIP),
        ("small-tiny_cpu", "llvm-cpu-x86_64-x86-64-v3", "llvm-cpu", CPU),
        ("small-tiny_vmvx", "suite-vmvx", "vmvx", VMVX),
    ]
    assert config.suites[0].mlir == "https://example.com/a/b.mlir?sv=1"
    assert config.suites[1].mlir == tmp_path / "suite/small/tiny.mlir"
    assert config.models == () and config.suites[0].max_bytes == 1 << 30


def test_models_that_are_named_are_measured_as_well_and_modules_may_be_chosen(tmp_path: Path) -> None:
    suite(tmp_path / "suite")
    config = loaded(tmp_path, more="models: [suite/small/tiny.mlir]\n")
    assert [path.name for path in config.models] == ["tiny.mlir"] and len(config.suites) == 2
    chosen = "modules: ['small/*_vmvx'], max_size: 2KiB"
    (one,) = loaded(
        tmp_path, f"{{torch_models: suite, {chosen}, sha256: {{small/modules/tiny_vmvx: '{DIGEST}'}}}}"
    ).suites
    assert (one.name, one.max_bytes, one.sha256) == ("small-tiny_vmvx", 2048, DIGEST)
    write(tmp_path / "suite/small/README.md", "{")
    (tmp_path / "suite/small/loop.json").symlink_to("loop.json")
    assert len(loaded(tmp_path).suites) == 2, "other files are none of its business"


def test_goldens_are_limits_that_name_file_and_line(tmp_path: Path) -> None:
    suite(tmp_path / "suite")
    config = loaded(tmp_path)
    rules = [rule for rule in config.thresholds if rule.beside]
    cpu, vmvx = ("small-tiny_cpu",), ("small-tiny_vmvx",)
    assert [(rule.name, rule.metrics, rule.models, rule.targets) for rule in rules] == [
        ("small/compstat_cpu.json:7 golden_dispatch_count", ("dispatch_sites",), cpu, (X86,)),
        ("small/compstat_cpu.json:8 golden_binary_size", ("artifact_bytes",), cpu, (X86,)),
        ("small/compstat_vmvx.json:7 golden_dispatch_count", ("dispatch_sites",), vmvx, ("suite-vmvx",)),
    ]
    assert [rule.fail.limit.value for rule in rules if rule.fail and rule.fail.limit] == [4, 100, 90]
    assert config.thresholds[: len(rules)] == tuple(rules)


def test_a_fraction_is_a_ceiling_too_and_null_is_none(tmp_path: Path) -> None:
    module(tmp_path / "suite", "a/modules/b", "b.mlir")
    compstat(tmp_path / "suite", "a/one.json", "a/modules/b", golden_binary_size=1500000.5, golden_dispatch_count=None)
    compstat(tmp_path / "suite", "a/two.json", "a/modules/b", golden_binary_size=1400000)
    (one,) = loaded(tmp_path).suites
    assert [(golden.shown, golden.value) for golden in one.goldens] == [
        ("a/two.json", 1400000),
        ("a/one.json", 1500000),
    ]


def test_a_trusted_run_reads_the_goldens_and_needs_no_suite(tmp_path: Path) -> None:
    suite(tmp_path / "suite")
    path = configuration(tmp_path)
    assert sum(rule.beside for rule in load_config(path, models=False).thresholds) == 3
    (tmp_path / "suite").rename(tmp_path / "elsewhere")
    assert not any(rule.beside for rule in load_config(path, models=False).thresholds)


# Targets.


def test_the_target_is_backend_and_chip() -> None:
    device, backends = "--iree-hal-target-device", "--iree-hal-target-backends"
    for flags, name, backend in (
        ([f"{device}=hip", "--iree-hip-target=gfx1201"], "rocm-gfx1201", "rocm"),
        ([f"{backends}=rocm", "--iree-rocm-target=gfx950"], "rocm-gfx950", "rocm"),
        ([f"{device}=cuda[0]", "--iree-cuda-target=sm_90"], "cuda-sm_90", "cuda"),
        ([f"{device}=vulkan", "--iree-vulkan-target=valhall 4"], "vulkan-spirv-valhall-4", "vulkan-spirv"),
        ([f"{device}=hip"], "suite-rocm", "rocm"),
        ([f"{backends}=llvm-cpu", "--iree-llvmcpu-target-cpu-features=host"], "llvm-cpu-host", "llvm-cpu"),
        ([*CPU, "--iree-llvmcpu-target-cpu=znver4"], "llvm-cpu-x86_64-znver4", "llvm-cpu"),
    ):
        target = suite_target(flags, {"rocm"})
        assert (target.name, target.backend, target.argv) == (name, backend, tuple(flags))
    for flags, said in (
        ([], f"names no device: {device}=hip, or another"),
        ([f"{device}=local"], "names the device 'local' without one backend"),
        ([f"{device}=hip", f"{device}=cuda"], "names several devices, 'hip' and 'cuda'"),
        ([f"{backends}=cuda,rocm"], "names several devices"),
        ([f"{device}=npu"], "the device 'npu' is not known, known are llvm-cpu, vulkan"),
    ):
        with pytest.raises(ValueError) as refused:
            suite_target(flags, ())
        assert str(refused.value).startswith(said)


# What is refused.


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{torch_models: none}", "code-size.yml:2: suites[0].torch_models: 'none' is no directory"),
        ("{torch_models: suite, modules: ['tiny']}", "code-size.yml:2: suites[0].modules[0]: 'tiny' matches no module"),
        ("{torch_models: suite, max_size: 0.3B}", "code-size.yml:2: suites[0].max_size: '0.3B' is no whole number"),
        ("{torch_models: suite, max_size: 5ms}", "code-size.yml:2: suites[0].max_size: '5ms' does not fit"),
        ("{torch_models: suite, sha256: {x: abc}}", "code-size.yml:2: suites[0].sha256.x: 'abc' does not fit"),
        (f"{{torch_models: suite, sha256: {{x: '{DIGEST}'}}}}", "code-size.yml:2: suites[0].sha256.x: no module is"),
        ("{modules: ['*']}", "code-size.yml:2: suites[0]: the key 'torch_models' is missing"),
    ],
)
def test_a_wrong_entry_is_told_with_its_line(tmp_path: Path, entry: str, said: str) -> None:
    suite(tmp_path / "suite")
    assert refusal(tmp_path, entry).replace(str(tmp_path) + "/", "").startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON: "),
        ("[]", "holds no object"),
        ("[" * 200, "is no JSON: nested more than 100 levels deep"),
        ('{"compiler_flags": ["--iree-hal-target-device=hip"]}', "mlir: is missing, or no text"),
        (
            '{"mlir": "http://example.com/a.mlir"}',
            "mlir: is an address of http, and models are fetched over https only",
        ),
        ('{"mlir": "file:///etc/passwd"}', "mlir: is an address of file"),
        ('{"mlir": "a.onnx"}', "mlir: names no model (.mlir, .mlirbc)"),
        ('{"mlir": "a.mlir", "compiler_flags": ["-o"]}', "compiler_flags: is no list of flags"),
        ('{"mlir": "a.mlir", "compiler_flags": "--x"}', "compiler_flags: is no list of flags"),
        ('{"mlir": "a.mlir", "compiler_flags": ["--x\\n"]}', "compiler_flags: is no list of flags"),
        ('{"mlir": "a.mlir"}', "compiler_flags: names no device"),
    ],
)
def test_a_wrong_module_is_told_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path / "suite/a/modules/b.json", text)
    assert refusal(tmp_path).startswith(f"suite/a/modules/b.json: {said}")


def test_a_wrong_golden_is_told_with_its_file(tmp_path: Path) -> None:
    module(tmp_path / "suite", "a/modules/b", "b.mlir")
    for key, value, said in (
        *(("golden_binary_size", value, "golden_binary_size: is no number") for value in ('"1"', "true", "NaN")),
        *(("golden_dispatch_count", value, "golden_dispatch_count: is no count") for value in ("-1", "1e300")),
        ("module", '"a/modules/c"', "module: there is no module "),
    ):
        write(tmp_path / "suite/a/c.json", f'{{"type": "compstat", "module": "a/modules/b", "{key}": {value}}}')
        assert refusal(tmp_path).startswith(f"suite/a/c.json: {said}")


def test_models_and_modules_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a/b", "a-b"):
        module(tmp_path / "two" / "suite", f"{folder}/modules/c", "c.mlir")
    assert "are both called 'a-b-c' (rename one of them)" in refusal(tmp_path / "two")
    suite(tmp_path / "suite")
    write(tmp_path / "small-tiny_cpu.mlir", "x")
    assert "are both called 'small-tiny_cpu'" in refusal(tmp_path, more="models: [small-tiny_cpu.mlir]\n")
