"""bot.config.configuration: defaults key by key, and one whole line for every kind of bad configuration."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from growth import steps
from replacing import replace

from bot.config.configuration import BaselineChoice, CompilerChoice, Config, configs_dir, load_config, read_manifest
from bot.core.planned import Target
from bot.core.policy import DEFAULT_STATES, Amount, LevelSpec, Ratio, Rule, is_catch_all
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
    assert config.compiler == CompilerChoice(), "its pins are an example's"
    cpus = ["llvm-cpu-riscv64", "llvm-cpu-aarch64", "llvm-cpu-x86_64"]
    others = ["vulkan-spirv", "cuda", "rocm", "metal-spirv", "vmvx", "vmvx-inline"]
    assert [target.name for target in config.targets] == [*cpus, *others]
    assert [target.name for target in config.targets if target.unsupported] == ["vmvx-inline"]
    assert {model.parent for model in config.models} == {configs_dir() / "models"}
    assert len(config.models) >= 12
    assert (config.flags, config.timeout_seconds, config.report_id, config.templates) == ((), 1800, "default", None)
    assert (config.comment, config.fail_job) == ("changes", False)
    assert config.baseline == BaselineChoice("auto", "code-size-data", ".code-size/baselines", 250, 0, (), 24)
    assert config.states == DEFAULT_STATES
    assert is_catch_all(config.thresholds[-1])
    named = load_config(configs_dir() / "default.yml")
    assert replace(named, compiler=CompilerChoice()) == config


def test_quick_differs_in_its_models_only() -> None:
    default, quick = load_config(), load_config(configs_dir() / "quick.yml")
    berts = ["bert_l4_f32_dyn", "bert_l4_f32_s128"]
    assert [model.stem for model in quick.models] == [*berts, "mobilenet_v1_f32_224", "mobilenet_v1_int8_tosa"]
    named = load_config(configs_dir() / "default.yml")
    assert named.compiler == quick.compiler
    assert named.compiler == CompilerChoice("iree-base-compiler==3.11.0", "iree-base-compiler==3.13.0")
    differs = {name for name in Config.__struct_fields__ if getattr(default, name) != getattr(quick, name)}
    assert differs == {"models", "compiler"}


def test_a_key_left_out_is_the_default_and_states_are_completed(load: Load) -> None:
    config = load(SCHEMA + "states: {removed: pass}\nflags: [--x=1]\ncompiler: {head: ./build}\n")
    default = load_config()
    assert config.states == {**DEFAULT_STATES, "removed": "pass"}
    assert config.flags == ("--x=1",)
    assert config.compiler == CompilerChoice(None, "./build"), "a compiler key of the user's is taken whole"
    same = ("models", "targets", "timeout_seconds", "thresholds", "report_id")
    assert [getattr(config, name) for name in same] == [getattr(default, name) for name in same]


def test_requirements_replace_both_sides_and_places_of_wheels(load: Load, tmp_path: Path) -> None:
    config = load(SCHEMA + "compiler: {requirements: requirements.txt}\n")
    assert config.compiler == CompilerChoice(requirements="requirements.txt")
    page, folder = "https://iree.dev/pip-release-links.html", str(tmp_path / "wheels")
    (tmp_path / "wheels").mkdir()
    for text, links in ((page, (page,)), (f"[{page}, wheels]", (page, folder))):
        assert load(SCHEMA + f"compiler: {{head: nightly, find_links: {text}}}\n").compiler.find_links == links
    also = load(SCHEMA + f"compiler: {{requirements: requirements.txt, find_links: {page}}}\n").compiler
    assert also == CompilerChoice(requirements="requirements.txt", find_links=(page,))


def test_a_place_of_wheels_that_is_refused(load: Load) -> None:
    for link, why in (
        ("http://iree.dev/links.html", "is neither an HTTPS page nor a directory"),
        ("https://me:hunter2@iree.dev/links.html", "has credentials in it"),
        ("https://iree.dev/links.html?token=hunter2", "has a query, which may be a credential"),
        ("nowhere", "'nowhere' is no directory"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(SCHEMA + f"compiler:\n  find_links: '{link}'\n")
        assert f"c.yml:3: compiler.find_links: {why} (name an HTTPS page or a directory; " in caught.value.line
        assert "hunter2" not in caught.value.line


def test_targets_by_name_keep_the_defaults_and_a_mapping_replaces_them(load: Load) -> None:
    targets = load(SCHEMA + "targets: [vmvx, cuda]\n").targets
    assert targets == (Target("vmvx", "vmvx"), Target("cuda", "cuda", ("--iree-cuda-target=sm_80",)))
    text = "targets:\n  sm90: {backend: cuda, flags: [--iree-cuda-target=sm_90]}\n"
    text += "  npu: {backend: npu, unsupported: needs a vendor's linker}\n"
    assert load(SCHEMA + text).targets == (
        Target("sm90", "cuda", ("--iree-cuda-target=sm_90",)),
        Target("npu", "npu", (), "needs a vendor's linker"),
    )


def test_model_globs_are_relative_sorted_and_skip_other_files(load: Load, tmp_path: Path) -> None:
    models(tmp_path, "z.mlir", "a.onnx", "sub/deep/m.mlirbc", "z.md", "x.mlir/inner.txt")
    config = load(SCHEMA + "models: ['*', '**/*.mlirbc', sub/../z.mlir]\n")
    assert config.models == (tmp_path / "a.onnx", tmp_path / "sub/deep/m.mlirbc", tmp_path / "z.mlir")


def test_templates_are_a_directory_relative_to_the_file(load: Load, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert load(SCHEMA + "templates: mine\n").templates == tmp_path / "mine"
    with pytest.raises(ConfigError) as caught:
        load(SCHEMA + "templates: none\n")
    line = f"2: templates: '{tmp_path / 'none'}' is no directory (the path is relative to this file)"
    assert caught.value.line == f"{tmp_path / 'c.yml'}:{line}"


def test_rules(load: Load) -> None:
    text = """\
  - name: size
    metrics: [artifact_bytes]
    models: ["bert_*"]
    warn: 1.5%
    fail: {absolute: 4KiB, relative: 5%}
  - {metrics: [executables], targets: [vmvx], warn: 2, limit: 120}
  - {metrics: [compile_cpu_ms], fail: {limit: 1.5s}}
  - {metrics: ["*"]}
"""
    one_and_a_half = LevelSpec(relative=Ratio(Fraction(3, 200), "1.5%"))
    five = LevelSpec(Amount(4096, "bytes", "4KiB"), Ratio(Fraction(1, 20), "5%"))
    two, budget = (LevelSpec(absolute=Amount(2, "own", "2")), LevelSpec(limit=Amount(120, "own", "120")))
    seconds = LevelSpec(limit=Amount(1500, "ms", "1.5s"))
    assert load(f"{SCHEMA}noise: {{compile_cpu_ms: 8%}}\nthresholds:\n{text}").thresholds == (
        Rule("size", ("artifact_bytes",), ("bert_*",), ("*",), one_and_a_half, five, 4),
        Rule("rule 2", ("executables",), ("*",), ("vmvx",), two, budget, 9),
        Rule("rule 3", ("compile_cpu_ms",), fail=seconds, line=10),
        Rule("rule 4", ("*",), line=11),
    )


def test_limit_joins_the_fail_level_of_its_rule_and_levels_may_share_a_number(load: Load) -> None:
    rule = load(RULES + "  - {metrics: [vm_bytes], fail: 5%, limit: 1MiB}\n" + CATCH_ALL).thresholds[0]
    assert rule.fail == LevelSpec(None, Ratio(Fraction(1, 20), "5%"), Amount(1 << 20, "bytes", "1MiB"))
    levels = "warn: {absolute: 1KiB, relative: 1%}, fail: {absolute: 1KiB, relative: 5%}"
    rule = load(RULES + f"  - {{metrics: [vm_bytes], {levels}}}\n" + CATCH_ALL).thresholds[0]
    assert rule.warn is not None and rule.fail is not None and rule.warn.absolute == rule.fail.absolute


def test_sections_keep_their_order_and_have_an_entry_per_glob(load: Load) -> None:
    text = "components:\n  norm: ['*.LayerNorm.*', '*.norm']\n  attention: '*.attention.*'\n"
    sections = (("norm", "*.LayerNorm.*"), ("norm", "*.norm"), ("attention", "*.attention.*"))
    assert load(SCHEMA + text).sections == sections
    assert load(SCHEMA).sections == ()


def test_pairs_are_those_of_the_suite_unless_the_file_has_its_own(load: Load) -> None:
    config = load(SCHEMA)
    assert ("bert_l4_f32_s128", "bert_l4_f32_dyn") in config.pairs
    assert not any("int8" in name for pair in config.pairs for name in pair), "static-dynamic pairs only"
    assert (config.pairs, config.repeats) == read_manifest(configs_dir() / "models" / "suite.yml")
    assert load(SCHEMA + "pairs: [{static: gone_s, dynamic: gone_d}]\n").pairs == (("gone_s", "gone_d"),)
    assert load(SCHEMA + "pairs: []\n").pairs == ()


@pytest.mark.parametrize("text", ["[", "- 1", "schema: code-size-suite/2"])
def test_a_manifest_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "suite.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"suite\.yml: (cannot be read|is no manifest 'code-size-suite/1') \(install"):
        read_manifest(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_manifest(tmp_path / "gone.yml")


def test_noise_is_a_share_and_lets_a_rule_judge(load: Load) -> None:
    rule = "thresholds:\n  - {metrics: ['compile_*'], warn: 10%}\n" + CATCH_ALL
    config = load(SCHEMA + "noise: {compile_cpu_ms: 8%, compile_peak_rss_kib: 2.5%}\n" + rule)
    assert config.noise == {
        "compile_cpu_ms": Ratio(Fraction(2, 25), "8%"),
        "compile_peak_rss_kib": Ratio(Fraction(1, 40), "2.5%"),
    }
    assert load(SCHEMA).noise == {}


@pytest.mark.parametrize(
    "rules",
    [
        '  - {metrics: ["*"], warn: 10%}\n',
        "  - {metrics: ['compile_*']}\n" + CATCH_ALL,
        "  - {metrics: ['compile_*']}\n  - {metrics: [compile_cpu_ms, vm_bytes], warn: 1%}\n" + CATCH_ALL,
    ],
    ids=["a catch-all does not ask for it", "without a level", "decided by a rule above"],
)
def test_rules_that_need_no_noise(load: Load, rules: str) -> None:
    assert load(RULES + rules).noise == {}


# What a bad one is told: the whole line.

OWN = SCHEMA + "compiler: {kind: command, run: [x], artifacts: [y], metrics: {%s}}\nmodels: ['*']\ntargets: {a: {}}\n"
BAD = {
    "a typo in a key": (SCHEMA + "complier: {base: a}\n", "2: complier: unknown key (did you mean 'compiler'?)"),
    "a typo in a nested key": (
        RULES + "  - {metric: [vm_bytes]}\n" + CATCH_ALL,
        "3: thresholds[0].metric: unknown key (did you mean 'metrics'?)",
    ),
    "a key that is like no other": (
        SCHEMA + "compiler: {q: 1}\n",
        "2: compiler.q: unknown key (known: artifacts, base, find_links, head, kind, metrics, package, repository, "
        "requirements, run, sources, stages)",
    ),
    "a metric that there is": (
        OWN % "vm_bytes: {unit: bytes}",
        "2: compiler.metrics.vm_bytes: vm_bytes is a metric of this program (give yours another id, or leave it out)",
    ),
    "a metric of no unit": (
        OWN % "peak: {unit: B}",
        "2: compiler.metrics.peak.unit: is 'B', must be one of KiB, bytes, count, ms (did you mean 'bytes'?)",
    ),
    "a metric with a rule that is none": (
        OWN % "peak: {unit: bytes, rule: memory of a program}",
        "2: compiler.metrics.peak.rule: no rule is called 'memory of a program' (did you mean "
        "'memory of the program'?)",
    ),
    "a metric with a rule for another unit": (
        OWN % "peak: {unit: count, rule: code size}",
        "2: compiler.metrics.peak.rule: 'code size' is for another unit: '4KiB' is no count (name another "
        "rule, or write one)",
    ),
    "a metric of IREE's": (
        SCHEMA + "compiler: {metrics: {peak: {unit: bytes}}}\n",
        "2: compiler.metrics: is for a compiler that is a command (write kind: command beside it, or leave it out)",
    ),
    "no schema": ("flags: []\n", "1: the key 'schema' is missing"),
    "a word that is none": (
        SCHEMA + "baseline: {store: branch}\n",
        "2: baseline.store: is 'branch', must be one of artifact, auto, data-branch, directory (did you mean "
        "'data-branch'?)",
    ),
    "an empty mapping": (
        SCHEMA + "baseline: {}\n",
        "2: baseline: is empty (leave the key out, or give it a value)",
    ),
    "another schema": (
        "schema: code-size-config/2\n",
        "1: schema: is 'code-size-config/2', must be 'code-size-config/1'",
    ),
    "no mapping": ("[1]\n", "1: is a list, must be a mapping"),
    "text for a list": (SCHEMA + "models: m/*.mlir\n", "2: models: is text, must be a list (write [m/*.mlir])"),
    "text for a number": (SCHEMA + "timeout_seconds: 30m\n", "2: timeout_seconds: is text, must be a whole number"),
    "a value forgotten": (SCHEMA + "flags:\n", "2: flags: is empty, must be a list"),
    "an empty list": (SCHEMA + "models: []\n", "2: models: is empty (leave the key out, or give it a value)"),
    "out of range": (SCHEMA + "timeout_seconds: 0\n", "2: timeout_seconds: is 0, must be at least 1"),
    "far too much": (SCHEMA + "timeout_seconds: 100000\n", "2: timeout_seconds: is 100000, must be at most 86400"),
    "requirements beside base": (
        SCHEMA + "compiler: {requirements: r.txt, base: x}\n",
        "2: compiler.base: cannot stand beside 'requirements' (keep one of them)",
    ),
    "no flag": (
        SCHEMA + "flags: [-O2]\n",
        "2: flags[0]: '-O2' does not fit: a flag begins with -- and is on one line (for example --iree-opt-level=O2)",
    ),
    "a target that is none": (
        SCHEMA + "targets: [llvm-cpu-x86]\n",
        "2: targets[0]: no default target is called 'llvm-cpu-x86' (did you mean 'llvm-cpu-x86_64'?)",
    ),
    "a target twice": (SCHEMA + "targets:\n- vmvx\n- vmvx\n", "4: targets[1]: 'vmvx' is in the list twice"),
    "a target without backend": (SCHEMA + "targets: {a: {flags: []}}\n", "2: targets.a: the key 'backend' is missing"),
    "a backend that is none": (
        SCHEMA + "targets:\n  mine:\n    backend: llvm-cpuu\n",
        "4: targets.mine.backend: no backend is called 'llvm-cpuu' (did you mean 'llvm-cpu'?)",
    ),
    "a target that is a number": (
        SCHEMA + "targets: [5]\n",
        "2: targets[0]: is a whole number, must be text (put it in quotes)",
    ),
    "a glob of no metric": (
        RULES + "  - {metrics: ['artefact*']}\n" + CATCH_ALL,
        "3: thresholds[0].metrics[0]: no metric is called 'artefact*' (did you mean 'artifact_bytes'?)",
    ),
    "a target's odd name": (
        SCHEMA + "targets: {'a|b': {backend: cuda}}\n",
        "2: targets.a|b: 'a|b' does not fit: a target's name has letters, digits, '_', '.' and '-' only"
        " (for example llvm-cpu-x86_64 or vmvx)",
    ),
    "an odd report id": (
        SCHEMA + 'report_id: "a\\n"\n',
        "2: report_id: 'a\\n' does not fit: a report id has letters, digits, '_', '.' and single '-' only, and begins"
        " with a letter or digit"
        " (for example default)",
    ),
    "an unknown state": (
        SCHEMA + "states: {newly-borken: fail}\n",
        "2: states.newly-borken: unknown key (did you mean 'newly-broken'?)",
    ),
    "no catch-all": (
        RULES + "  - {metrics: [vm_bytes]}\n",
        "3: thresholds[0]: the last rule, 'rule 1', is no catch-all"
        ' (end with {metrics: ["*"]} and no models or targets)',
    ),
    "an unreachable rule": (
        RULES + "  - {metrics: ['*_bytes']}\n  - {name: x, metrics: [vm_bytes], models: ['b*']}\n" + CATCH_ALL,
        "4: thresholds[1]: 'x' can never be reached: 'rule 1' (line 3) above it match all that it could"
        " (put the special rule above the general one)",
    ),
    "a size for a count": (
        RULES + "  - metrics: [executables]\n    warn:\n      absolute: 4KiB\n" + CATCH_ALL,
        "5: thresholds[0].warn.absolute: '4KiB' is no count, which 'executables' needs"
        " (write a plain number, or give metrics of different units rules of their own)",
    ),
    "a time for memory": (
        RULES + '  - {metrics: ["compile_*"], limit: 500ms}\n' + CATCH_ALL,
        "3: thresholds[0].limit: '500ms' is no number of KiB, which 'compile_peak_rss_kib' needs"
        " (write a plain number, or give metrics of different units rules of their own)",
    ),
    "a rule for what varies, without noise": (
        RULES + "  - {metrics: [vm_bytes], warn: 1%}\n  - {metrics: [compile_cpu_ms], limit: 9s}\n" + CATCH_ALL,
        "4: thresholds[1].metrics: compile_cpu_ms varies from run to run"
        " (set noise.compile_cpu_ms, which `code-size-bot calibrate` measures)",
    ),
    "a rule for what varies, with noise of the other": (
        SCHEMA + "noise: {compile_cpu_ms: 8%}\nthresholds:\n  - {metrics: ['compile_*'], warn: 1%}\n" + CATCH_ALL,
        "4: thresholds[0].metrics: compile_peak_rss_kib varies from run to run"
        " (set noise.compile_peak_rss_kib, which `code-size-bot calibrate` measures)",
    ),
    "a rule for what varies, above it one for other models": (
        RULES + "  - {metrics: ['compile_*'], models: [a]}\n  - {metrics: ['compile_c*'], warn: 1}\n" + CATCH_ALL,
        "4: thresholds[1].metrics: compile_cpu_ms varies from run to run"
        " (set noise.compile_cpu_ms, which `code-size-bot calibrate` measures)",
    ),
    "noise of no metric": (
        SCHEMA + "noise: {compile_cpu: 8%}\n",
        "2: noise.compile_cpu: no metric that varies is called 'compile_cpu' (did you mean 'compile_cpu_ms'?)",
    ),
    "noise that is no share": (
        SCHEMA + "noise: {compile_cpu_ms: 80ms}\n",
        "2: noise.compile_cpu_ms: '80ms' does not fit: a relative level is a number, not negative, with %"
        " (for example 1.5%)",
    ),
    "noise too long for a number": (
        SCHEMA + f"noise: {{compile_cpu_ms: {'1' * 41}%}}\n",
        f"2: noise.compile_cpu_ms: '{'1' * 40}' is no number with a unit, such as 4KiB, 120, 500ms or 1.5%",
    ),
    "half a pair": (SCHEMA + "pairs: [{static: a}]\n", "2: pairs[0]: the key 'dynamic' is missing"),
    "a pair of one": (
        SCHEMA + "pairs:\n- {static: a, dynamic: b}\n- {static: a, dynamic: a}\n",
        "4: pairs[1]: 'a' is paired with itself (name a static and a dynamic model)",
    ),
    "warn looser than fail": (
        RULES + "  - {metrics: [vm_bytes], warn: 4KiB, fail: 2KiB}\n" + CATCH_ALL,
        "3: thresholds[0].warn: its absolute level is looser than that of 'fail':"
        " it would fail before it warns (let 'warn' be the smaller one)",
    ),
    "a relative warn looser than fail": (
        RULES + "  - {metrics: [vm_bytes], warn: 4%, fail: {relative: 2%, absolute: 1}}\n" + CATCH_ALL,
        "3: thresholds[0].warn: its relative level is looser than that of 'fail':"
        " it would fail before it warns (let 'warn' be the smaller one)",
    ),
    "warn equal to fail": (
        RULES + "  - {metrics: [vm_bytes], warn: 4KiB, fail: 4096B}\n" + CATCH_ALL,
        "3: thresholds[0].warn: is the same as 'fail': it can never warn (keep one of them)",
    ),
    "a negative number": (
        RULES + "  - {metrics: [vm_bytes], warn: -4}\n" + CATCH_ALL,
        "3: thresholds[0].warn: is -4, must be at least 0",
    ),
    "a fraction of a byte": (
        RULES + "  - {metrics: [vm_bytes], limit: 0.1KiB}\n" + CATCH_ALL,
        "3: thresholds[0].limit: '0.1KiB' is no whole number of bytes: write 102B or 103B",
    ),
    "a level without a key": (
        RULES + "  - {metrics: [vm_bytes], warn: {}}\n" + CATCH_ALL,
        "3: thresholds[0].warn: is empty (leave the key out, or give it a value)",
    ),
    "two limits": (
        RULES + "  - {metrics: [vm_bytes], limit: 4KiB, fail: {limit: 5KiB}}\n" + CATCH_ALL,
        "3: thresholds[0].limit: the rule has a second limit in 'fail' (keep one of them)",
    ),
    "the first of two problems": (
        SCHEMA + "flags: 3\nmodel: []\n",
        "2: flags: is a whole number, must be a list (write [3])",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad(load: Load, tmp_path: Path, name: str) -> None:
    text, line = BAD[name]
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert caught.value.line == f"{tmp_path / 'c.yml'}:{line}"
    assert caught.value.exit_code == 2


def test_a_glob_that_was_meant_from_the_top_of_the_repository(tmp_path: Path) -> None:
    models(tmp_path, ".git/x.mlir", "models/a.mlir", ".github/notes.txt")
    path = tmp_path / ".github/code-size.yml"
    path.write_text(SCHEMA + "models: [models/*.mlir]\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.line.endswith("(globs are relative to this file: write ../models/*.mlir)")
    path.write_text(SCHEMA + "models: [../models/*.mlir]\n", encoding="utf-8")
    assert [model.name for model in load_config(path).models] == ["a.mlir"]
    path.write_text(SCHEMA + "models: [elsewhere/*.mlir]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\(globs are relative to this file\)"):
        load_config(path)


def test_globs_that_match_no_model_or_two_of_one_name(load: Load, tmp_path: Path) -> None:
    models(tmp_path, "a.mlir", "notes.txt", "a/m.mlir", "b/m.onnx")
    both = f"{tmp_path / 'a/m.mlir'} and {tmp_path / 'b/m.onnx'} are both called 'm'"
    for text, line in (
        (
            "models:\n- a.mlir\n- '*.txt'\n",
            f"4: models[1]: '*.txt' matches no model (.mlir, .mlirbc, .onnx) in {tmp_path}"
            " (globs are relative to this file)",
        ),
        ("models: ['*/m.*']\n", f"2: models[0]: {both} (rename one of them)"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(SCHEMA + text)
        assert caught.value.line == f"{tmp_path / 'c.yml'}:{line}"


def test_baselines_are_completed_entry_by_entry(load: Load) -> None:
    config = load(SCHEMA + "comment: always\nfail_job: true\nbaseline: {store: artifact}\n")
    assert (config.comment, config.fail_job) == ("always", True)
    assert config.baseline == BaselineChoice("artifact", "code-size-data", ".code-size/baselines", 250, 0, (), 24)


def test_the_name_of_a_data_branch(load: Load) -> None:
    for branch in ("data", "d", "team/code-size.data", "1_a", "HEADS", "x/HEAD"):
        assert load(SCHEMA + f"baseline: {{branch: '{branch}'}}\n").baseline.branch == branch
    slashes = ("a//b", "/a", "a/", "a.lock/b", "a/.b", "refs/heads/a")
    for branch in ("-f", "a..b", "a b", "a.lock", "a:b", "a@{1}", "a~", "a.", "HEAD", *slashes):
        with pytest.raises(ConfigError, match=r"baseline\.branch: .* does not fit: a branch's name has letters"):
            load(SCHEMA + f"baseline: {{branch: '{branch}'}}\n")


def test_the_rules_alone_need_no_models(tmp_path: Path) -> None:
    path = tmp_path / "c.yml"
    path.write_text(SCHEMA + "models: [gone/*.mlir]\nreport_id: mine\n", encoding="utf-8")
    config = load_config(path, models=False)
    assert (config.models, config.report_id, config.thresholds) == ((), "mine", load_config().thresholds)
    with pytest.raises(ConfigError, match="matches no model"):
        load_config(path)


def test_reading_grows_with_the_number_of_rules(load: Load) -> None:
    def work(number: int) -> int:
        times = "  - {metrics: ['compile_*']}\n"
        lines = (
            f"  - {{metrics: [vm_bytes, 'compile_cpu_*'], models: [m{i:05d}_*], warn: 1%}}\n" for i in range(number)
        )
        text = RULES + times + "".join(lines) + CATCH_ALL
        return steps(lambda: load(text))

    fixed = work(0)
    assert work(80) - fixed < 2.1 * (work(40) - fixed)
