"""bot.config.configuration: defaults key by key, and one whole line for every kind of bad configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from textwrap import indent

import pytest
from replacing import replace

from bot.config.configuration import (
    BaselineChoice,
    CompilerKeys,
    Config,
    configs_dir,
    load_config,
)
from bot.core.planned import Target
from bot.core.rules import DEFAULT_STATES, Amount, LevelSpec, Ratio, Rule, is_catch_all
from bot.errors import ConfigError

SCHEMA = "schema: code-size-config/1\n"
RULES = SCHEMA + "thresholds:\n"
CATCH_ALL = '  - {metrics: ["*"]}\n'

Load = Callable[[str], Config]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Config:
        (tmp_path / "c.yml").write_text(text, encoding="utf-8")
        return load_config(tmp_path / "c.yml")

    return load


def models(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("module {}", encoding="utf-8")


# What a good configuration means.


def test_the_default_is_the_packaged_one() -> None:
    config = load_config()
    assert config.compiler == CompilerKeys(), "its pins are an example's"
    cpus = ["llvm-cpu-riscv64", "llvm-cpu-aarch64", "llvm-cpu-x86_64"]
    other_backends = [
        "vulkan-spirv",
        "cuda",
        "rocm",
        "metal-spirv",
        "vmvx",
        "vmvx-inline",
    ]
    assert [target.name for target in config.targets] == [*cpus, *other_backends]
    assert [target.name for target in config.targets if target.unsupported] == [
        "vmvx-inline"
    ]
    assert {model.parent for model in config.models} == {configs_dir() / "models"}
    assert len(config.models) >= 12
    assert (
        config.flags,
        config.timeout_seconds,
        config.report_id,
        config.templates,
    ) == ((), 1800, "default", None)
    assert (config.comment, config.fail_job) == ("changes", False)
    assert config.baseline == BaselineChoice(
        "auto", "code-size-data", ".code-size/baselines", 250
    )
    assert config.states == DEFAULT_STATES
    assert is_catch_all(config.thresholds[-1])
    named = load_config(configs_dir() / "default.yml")
    assert replace(named, compiler=CompilerKeys()) == config


def test_quick_differs_in_its_models_only() -> None:
    default = load_config()
    quick = load_config(configs_dir() / "quick.yml")
    berts = ["bert_l4_f32_dyn", "bert_l4_f32_s128"]
    assert [model.stem for model in quick.models] == [
        *berts,
        "mobilenet_v1_f32_224",
        "mobilenet_v1_int8_tosa",
    ]
    named = load_config(configs_dir() / "default.yml")
    assert named.compiler == quick.compiler
    assert named.compiler == CompilerKeys(
        base="iree-base-compiler==3.11.0", head="iree-base-compiler==3.13.0"
    )
    differs = {
        name
        for name in Config.__struct_fields__
        if getattr(default, name) != getattr(quick, name)
    }
    assert differs == {"models", "compiler"}


def test_a_key_left_out_is_the_default_and_states_are_completed(load: Load) -> None:
    config = load(
        SCHEMA + "states: {removed: pass}\nflags: [--x=1]\ncompiler: {head: ./build}\n"
    )
    default = load_config()
    assert config.states == {**DEFAULT_STATES, "removed": "pass"}
    assert config.flags == ("--x=1",)
    assert config.compiler == CompilerKeys(head="./build"), (
        "a compiler key of the user's is taken whole"
    )
    same = ("models", "targets", "timeout_seconds", "thresholds", "report_id")
    assert [getattr(config, name) for name in same] == [
        getattr(default, name) for name in same
    ]


def test_requirements_replace_both_sides_and_places_of_wheels(
    load: Load, tmp_path: Path
) -> None:
    config = load(SCHEMA + "compiler: {requirements: requirements.txt}\n")
    assert config.compiler == CompilerKeys(requirements="requirements.txt")
    page = "https://iree.dev/pip-release-links.html"
    folder = str(tmp_path / "wheels")
    (tmp_path / "wheels").mkdir()
    for text, links in ((page, (page,)), (f"[{page}, wheels]", (page, folder))):
        assert (
            load(
                SCHEMA + f"compiler: {{head: nightly, find_links: {text}}}\n"
            ).places.find_links
            == links
        )
    also = load(
        SCHEMA + f"compiler: {{requirements: requirements.txt, find_links: {page}}}\n"
    )
    assert (also.compiler.requirements, also.places.find_links) == (
        "requirements.txt",
        (page,),
    )


def test_targets_by_name_keep_the_defaults_and_a_mapping_replaces_them(
    load: Load,
) -> None:
    targets = load(SCHEMA + "targets: [vmvx, cuda]\n").targets
    assert targets == (
        Target("vmvx", "vmvx"),
        Target("cuda", "cuda", ("--iree-cuda-target=sm_80",)),
    )
    text = "targets:\n  sm90: {backend: cuda, flags: [--iree-cuda-target=sm_90]}\n"
    text += "  npu: {backend: npu, unsupported: needs a vendor's linker}\n"
    assert load(SCHEMA + text).targets == (
        Target("sm90", "cuda", ("--iree-cuda-target=sm_90",)),
        Target("npu", "npu", (), "needs a vendor's linker"),
    )


def test_model_globs_are_relative_sorted_and_skip_other_files(
    load: Load, tmp_path: Path
) -> None:
    models(
        tmp_path, "z.mlir", "a.onnx", "sub/deep/m.mlirbc", "z.md", "x.mlir/inner.txt"
    )
    config = load(SCHEMA + "models: ['*', '**/*.mlirbc', sub/../z.mlir]\n")
    assert config.models == (
        tmp_path / "a.onnx",
        tmp_path / "sub/deep/m.mlirbc",
        tmp_path / "z.mlir",
    )


def test_templates_are_a_directory_relative_to_the_file(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    assert load(SCHEMA + "templates: mine\n").templates == tmp_path / "mine"
    with pytest.raises(ConfigError) as caught:
        load(SCHEMA + "templates: none\n")
    line = (
        f"2: templates: '{tmp_path / 'none'}' is not a directory (the path is relative"
        " to this file)"
    )
    assert caught.value.line == f"{tmp_path / 'c.yml'}:{line}"


def test_rules(load: Load) -> None:
    text = """\
  - name: size
    metrics: [artifact_bytes]
    models: ["bert_*"]
    warn: 1.5%
    fail: {absolute: 4KiB, relative: 5%}
  - {metrics: [executables], targets: [vmvx], warn: 2, limit: 120}
  - {metrics: [compile_cpu_ms]}
  - {metrics: ["*"]}
"""
    one_and_a_half = LevelSpec(relative=Ratio(Fraction(3, 200), "1.5%"))
    five = LevelSpec(Amount(4096, "bytes", "4KiB"), Ratio(Fraction(1, 20), "5%"))
    two = LevelSpec(absolute=Amount(2, "own", "2"))
    budget = LevelSpec(limit=Amount(120, "own", "120"))
    assert load(RULES + text).thresholds == (
        Rule(
            name="size",
            metrics=("artifact_bytes",),
            models=("bert_*",),
            targets=("*",),
            warn=one_and_a_half,
            fail=five,
            line=3,
        ),
        Rule(
            name="rule 2",
            metrics=("executables",),
            models=("*",),
            targets=("vmvx",),
            warn=two,
            fail=budget,
            line=8,
        ),
        Rule("rule 3", ("compile_cpu_ms",), line=9),
        Rule("rule 4", ("*",), line=10),
    )


def test_limit_joins_the_fail_level_of_its_rule_and_levels_may_share_a_number(
    load: Load,
) -> None:
    rule = load(
        RULES + "  - {metrics: [vm_bytes], fail: 5%, limit: 1MiB}\n" + CATCH_ALL
    ).thresholds[0]
    assert rule.fail == LevelSpec(
        None, Ratio(Fraction(1, 20), "5%"), Amount(1 << 20, "bytes", "1MiB")
    )
    levels = (
        "warn: {absolute: 1KiB, relative: 1%}, fail: {absolute: 1KiB, relative: 5%}"
    )
    rule = load(
        RULES + f"  - {{metrics: [vm_bytes], {levels}}}\n" + CATCH_ALL
    ).thresholds[0]
    assert (
        rule.warn is not None
        and rule.fail is not None
        and rule.warn.absolute == rule.fail.absolute
    )


def test_sections_keep_their_order_and_have_an_entry_per_glob(load: Load) -> None:
    text = (
        "components:\n  norm: ['*.LayerNorm.*', '*.norm']\n  attention:"
        " '*.attention.*'\n"
    )
    sections = (
        ("norm", "*.LayerNorm.*"),
        ("norm", "*.norm"),
        ("attention", "*.attention.*"),
    )
    assert load(SCHEMA + text).components == sections
    assert load(SCHEMA).components == ()


def test_repeats_are_those_of_the_suite_unless_the_file_has_its_own(load: Load) -> None:
    config = load(SCHEMA)
    assert ("mobilenet_v1_f32_224", "llvm-cpu-x86_64") in config.repeats and load(
        SCHEMA + "repeats: {}\n"
    ).repeats == ()


def test_a_rule_for_all_metrics_or_without_a_level_may_match_those_that_vary(
    load: Load,
) -> None:
    for rules in (
        '  - {metrics: ["*"], warn: 10%}\n',
        "  - {metrics: ['compile_*']}\n" + CATCH_ALL,
    ):
        assert load(RULES + rules).thresholds


# What a bad one is told: the whole line.

# Below a text, after `! `, the line with which it is refused; where that ends with … it
# goes on. Rules alone stand below `thresholds`, before a catch-all.
REFUSED = r"""
complier: {base: a}
! 2: complier: unknown key (did you mean 'compiler'…
compiler: {q: 1}
! 2: compiler.q: unknown key (known: artifacts, base, find_links, head, kind, metrics, package, repository,
! requirements, run, sources, stages)
compiler: {requirements: "x\0"}
! 2: the character U+0000 is not allowed
compiler: {kind: command, run: ["x\e"], artifacts: [y]}
! 2: the character U+001B is not allowed
compiler: {kind: command, run: [x], artifacts: [y], metrics: {vm_bytes: {unit: bytes}}}
models: ['*']
targets: {a: {}}
! 2: compiler.metrics.vm_bytes: vm_bytes is a built-in metric (choose another id, or remove it)
compiler: {kind: command, run: [x], artifacts: [y], metrics: {peak: {unit: B}}}
models: ['*']
targets: {a: {}}
! 2: compiler.metrics.peak.unit: is 'B', but must be one of KiB, bytes, count, ms (did you mean 'bytes'?)
compiler: {kind: command, run: [x], artifacts: [y], metrics: {peak: {unit: bytes, rule: memory of a program}}}
models: ['*']
targets: {a: {}}
! 2: compiler.metrics.peak.rule: no rule is called 'memory of a program' (did you mean 'memory of the program'?)
compiler: {kind: command, run: [x], artifacts: [y], metrics: {peak: {unit: count, rule: code size}}}
models: ['*']
targets: {a: {}}
! 2: compiler.metrics.peak.rule: 'code size' is for another unit: '4KiB' is not a count (name another rule, or write
! one)
compiler: {kind: command, run: [x], artifacts: [y], repository: a/b}
models: ['*']
targets: {a: {}}
! 2: compiler.repository: is only for IREE: the commits of a command are not looked up (remove the key)
compiler: {metrics: {peak: {unit: bytes}}}
! 2: compiler.metrics: is only for a command compiler (add kind: command, or remove the key)
baseline: {store: branch}
! 2: baseline.store: is 'branch', but must be one of auto, data-branch, directory (did you mean 'data-branch'?)
baseline: {}
! 2: baseline: is empty (remove the key, or give it a value)
models: m/*.mlir
! 2: models: is text, but must be a list (write [m/*.mlir])
flags:
! 2: flags: is empty, but must be a list
models: []
! 2: models: is empty (remove the key, or give it a value)
timeout_seconds: 0
! 2: timeout_seconds: is 0, but must be at least 1
compiler: {requirements: r.txt, base: x}
! 2: compiler.base: cannot be combined with 'requirements' (keep one of them)
flags: [-O2]
! 2: flags[0]: '-O2' does not fit: an IREE flag begins with -- (for example --iree-opt-level=O2)
import_flags: [--o=x]
! 2: import_flags[0]: --o is not a flag for a build (remove it: the bot measures the whole artifact)
targets: {t: {extends: vmvx, flags: [--iree-hal-target-backends=llvm-cpu]}}
! 2: targets.t.flags[0]: --iree-hal-target-backends is not a flag for a build (name a target with that backend)
targets: [llvm-cpu-x86]
! 2: targets[0]: no default target is called 'llvm-cpu-x86' (did you mean 'llvm-cpu-x86_64' or…
targets: {a: {flags: []}}
! 2: targets.a: the key 'backend' is missing (for example backend: vmvx, or extends: vmvx)
- {metrics: ['artefact*']}
! 3: thresholds[0].metrics[0]: no metric is called 'artefact*' (did you mean 'artifact_bytes'?)
report_id: "a\n"
! 2: report_id: 'a\n' does not fit: a report id has only letters, digits, '_', '.' and single '-', and begins with a
! letter or digit (for example default)
thresholds:
  - {metrics: [vm_bytes]}
! 3: thresholds[0]: the last rule, 'rule 1', is not a catch-all (end with {metrics: ["*"]} and no models or targets)
- {metrics: ['*_bytes']}
- {name: x, metrics: [vm_bytes], models: ['b*']}
! 4: thresholds[1]: 'x' can never match: 'rule 1' (line 3) above it matches everything that it matches (put the
! special rule above the general one)
- metrics: [executables]
  warn:
    absolute: 4KiB
! 5: thresholds[0].warn.absolute: '4KiB' is not a count, which 'executables' needs (write a plain number, or give
! metrics of different units rules of their own)
- {metrics: [vm_bytes], limit: 500ms}
! 3: thresholds[0].limit: '500ms' is not a number of bytes, which 'vm_bytes' needs (write a plain number, or give
! metrics of different units rules of their own)
- {metrics: [vm_bytes], models: ['bert_*', mobilnet_v1_f32_224], warn: 1%}
! 3: thresholds[0].models[1]: 'mobilnet_v1_f32_224' matches no model (did you mean 'mobilenet…
- {metrics: [vm_bytes], targets: ['llvm-cpu-*', vmx], warn: 1%}
! 3: thresholds[0].targets[1]: 'vmx' matches no target (did you mean 'vmvx…
- {metrics: [vm_bytes, 'compile_*'], warn: 1%}
! 3: thresholds[0].metrics[1]: compile_cpu_ms varies from run to run, and has no thresholds (leave it out, or leave out
! warn, fail and limit)
- {metrics: [compile_peak_rss_kib], limit: 1GiB}
! 3: thresholds[0].metrics[0]: compile_peak_rss_kib varies from run to run, and has no thresholds (leave it out, or
! leave out warn, fail and limit)
- {metrics: [vm_bytes], warn: 11111111111111111111111111111111111111111%}
! 3: thresholds[0].warn: '1111111111111111111111111111111111111111' is not a percentage, such as 1.5%
- {metrics: [vm_bytes], warn: 4KiB, fail: 2KiB}
! 3: thresholds[0].warn: its absolute level is higher than that of 'fail', so the rule fails before it warns (make
! 'warn' the smaller value)
- {metrics: [vm_bytes], warn: 4KiB, fail: 4096B}
! 3: thresholds[0].warn: is the same as 'fail', so it never warns (keep one of them)
- {metrics: [vm_bytes], limit: 0.1KiB}
! 3: thresholds[0].limit: '0.1KiB' is not a whole number of bytes
- {metrics: [vm_bytes], limit: 4KiB, fail: {limit: 5KiB}}
! 3: thresholds[0].limit: the rule has another limit in 'fail' (keep one of them)
flags: 3
model: []
! 2: flags: is a whole number, but must be a list (write [3])
targets:
  mine: {extends: vmv}
! 3: targets.mine.extends: no default target, and no target above this one, is called 'vmv' (did you mean 'vmvx'…
targets:
  z: {extends: a}
  a: {extends: z}
! 3: targets.z.extends: no default target, and no target above this one, is called 'a' (known: …
targets:
  mine: {extends: ''}
! 3: targets.mine.extends: '' does not fit: a target's name has only letters, digits, '_', '.' and '-' (for example
! llvm-cpu-x86_64 or vmvx)
targets:
  a: {extends: b}
  b: {backend: vulkan-spirvv}
! 4: targets.b.backend: no backend is called 'vulkan-spirvv' (did you mean 'vulkan-spirv'?)
components:
  a: x
  b: [y, 3]
  c: 3
! 4: components.b[1]: is a whole number, but must be text (put it…
targets:
  a: {backend: x}
  b: {backend: x}
  c: {backend: x, flags: [x]}
  d: {flags: [x]}
! 5: targets.c.flags[0]: 'x' does not fit…
targets:
  a: {backend: x}
  'b|': {backend: x}
  'c|': {backend: x}
! 4: targets.b|: 'b|' does not fit…
targets:
  a: {backend: x, releases: {'<3': [--a], '': []}}
! 3: targets.a.releases.: is empty…
targets:
  a: {backend: x, releases: {'<3': [--a], '<4': [b]}}
! 3: targets.a.releases.<4[0]: 'b' does…
states: {removed: pass, new: no}
! 2: states.new: is 'no', but must be one of …
fail_job: yes
! 2: fail_job: is text, but must be true or false (write true or false, without quotes)
timeout_seconds: 0100
! 2: timeout_seconds: is text, but must be a whole number (write a decimal number, without quotes)
- {metrics: [vm_bytes], warn: 0100}
! 3: thresholds[0].warn: '0100' does not fit…
repeats: {a: [b], c: [d, d]}
! 2: repeats.c[1]: 'd' is in the list twice…
'x` - at `$.flags': 1
! 2: x` - at `$.flags: unknown key…
report_id: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
! 2: report_id: has 65 characters, but must have at most 64…
timeout_seconds: 1.5
! 2: timeout_seconds: is a number, but must be a whole number…
timeout_seconds: 99999999999999999999999
! 2: timeout_seconds: is 99999999999999999999999, but must be at…
thresholds: [{metrics: [x], warn: [1]}]
! 2: thresholds[0].warn: is a list, but must be a whole number or text or a mapping…
compiler:
  find_links: 'http://iree.dev/links.html'
! 3: compiler.find_links: is neither an HTTPS page nor a directory (name an HTTPS page or a directory; …
compiler:
  find_links: 'https://me:hunter2@iree.dev/links.html'
! 3: compiler.find_links: contains credentials (name an HTTPS page or a directory; …
compiler:
  find_links: 'https://iree.dev/links.html?token=hunter2'
! 3: compiler.find_links: has a query, which may be a credential (name an HTTPS page or a directory; …
compiler: {find_links: nowhere}
! 2: compiler.find_links: 'nowhere' is not a directory (name an HTTPS page or a directory; …
"""
REFUSALS = [
    *re.findall(r"((?:(?!! ).+\n)+)((?:! .+\n)+)", REFUSED),
    (
        "schema: code-size-config/2\n",
        "1: schema: is 'code-size-config/2', but must be 'code-size-config/1'",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSALS)
def test_refused(load: Load, tmp_path: Path, text: str, message: str) -> None:
    rules = (
        f"thresholds:\n{indent(text, '  ')}{CATCH_ALL}"
        if text.startswith("- ")
        else text
    )
    with pytest.raises(ConfigError) as caught:
        load(rules if text.startswith("schema") else SCHEMA + rules)
    expected = message.removeprefix("! ").replace("\n! ", " ").strip()
    line = caught.value.line.removeprefix(f"{tmp_path / 'c.yml'}:")
    assert (
        line.startswith(expected[:-1]) if expected.endswith("…") else line == expected
    )
    assert (caught.value.exit_code, "\n" in line, "hunter2" in line) == (
        2,
        False,
        False,
    )


def test_globs_that_match_no_model_or_two_of_one_name(
    load: Load, tmp_path: Path
) -> None:
    models(tmp_path, "a.mlir", "notes.txt", "a/m.mlir", "b/m.onnx")
    conflict = (
        f"{tmp_path / 'a/m.mlir'} and {tmp_path / 'b/m.onnx'} are both called 'm'"
    )
    for text, line in (
        (
            "models:\n- a.mlir\n- '*.txt'\n",
            (
                "4: models[1]: '*.txt' matches no model (.mlir, .mlirbc, .onnx) in"
                f" {tmp_path} (globs are relative to this file)"
            ),
        ),
        ("models: ['*/m.*']\n", f"2: models[0]: {conflict} (rename one of them)"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(SCHEMA + text)
        assert caught.value.line == f"{tmp_path / 'c.yml'}:{line}"


def test_baselines_are_completed_entry_by_entry(load: Load) -> None:
    config = load(
        SCHEMA + "comment: always\nfail_job: true\nbaseline: {store: directory}\n"
    )
    assert (config.comment, config.fail_job) == ("always", True)
    assert config.baseline == BaselineChoice(
        "directory", "code-size-data", ".code-size/baselines", 250
    )


def test_the_name_of_a_data_branch(load: Load) -> None:
    for branch in ("data", "d", "team/code-size.data", "1_a", "HEADS", "x/HEAD"):
        assert (
            load(SCHEMA + f"baseline: {{branch: '{branch}'}}\n").baseline.branch
            == branch
        )
    slashes = ("a//b", "/a", "a/", "a.lock/b", "a/.b", "refs/heads/a")
    for branch in (
        "-f",
        "a..b",
        "a b",
        "a.lock",
        "a:b",
        "a@{1}",
        "a~",
        "a.",
        "HEAD",
        *slashes,
    ):
        with pytest.raises(
            ConfigError,
            match=r"baseline\.branch: .* does not fit: a branch name has only letters",
        ):
            load(SCHEMA + f"baseline: {{branch: '{branch}'}}\n")


def test_the_rules_alone_need_no_models(tmp_path: Path) -> None:
    path = tmp_path / "c.yml"
    path.write_text(
        SCHEMA + "models: [gone/*.mlir]\nreport_id: mine\n", encoding="utf-8"
    )
    config = load_config(path, models=False)
    assert (config.models, config.report_id, config.thresholds) == (
        (),
        "mine",
        load_config().thresholds,
    )
    with pytest.raises(ConfigError, match="matches no model"):
        load_config(path)


def test_so_many_rules_are_read_and_no_more(tmp_path: Path, load: Load) -> None:
    lines = [
        f"  - {{metrics: [vm_bytes, 'fill*'], models: [m{i:05d}_*], warn: 1%}}\n"
        for i in range(500)
    ]
    (tmp_path / "many.yml").write_text(
        RULES + "".join(lines[1:]) + CATCH_ALL, encoding="utf-8"
    )
    # that there is no such model is not known then
    many = load_config(tmp_path / "many.yml", models=False)
    assert len(many.thresholds) == 500
    with pytest.raises(ConfigError, match="thresholds"):
        load(RULES + "".join(lines) + CATCH_ALL)
