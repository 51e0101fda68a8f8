"""Synthetic reports for the tests of `bot.show`: deterministic, in the shape that real comparisons have."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from replacing import replace

from bot.core.delta import CellDelta, diff
from bot.core.explanation import Amounts, ComponentDelta, DispatchDelta, Explanation
from bot.core.findings import Finding, Level, Verdict, status_of
from bot.core.metrics import METRIC_IDS
from bot.core.policy import judge
from bot.core.program import Family, Program
from bot.core.report import Baseline, Report
from bot.core.snapshot import (
    Cell,
    CellKey,
    CompilerInfo,
    Dispatch,
    Failure,
    Metrics,
    Snapshot,
    SourceInfo,
)
from bot.explain.root_causes import root_causes

MODELS = (
    "bert_l4_f32_dyn",
    "bert_l4_f32_s128",
    "deeplabv3p_mnv2_f32_257",
    "gpt2_f32_dyn",
    "jax_mlp_train_step_f32",
    "mobilebert_l6_f32_s128",
    "mobilebert_l6_int8_tosa",
    "mobilenet_v1_f32_224",
    "mobilenet_v1_int8_tosa",
    "mobilenet_v2_f32_224",
    "tinyllama_l4_f32_dyn",
    "vit_l4_f32_224",
    "whisper_tiny_encoder_f32",
)
TARGETS = {
    "cuda": "cuda",
    "llvm-cpu-aarch64": "llvm-cpu",
    "llvm-cpu-riscv64": "llvm-cpu",
    "llvm-cpu-x86_64": "llvm-cpu",
    "metal-spirv": "metal-spirv",
    "rocm": "rocm",
    "vmvx": "vmvx",
    "vulkan-spirv": "vulkan-spirv",
}
COMMON = (
    "--iree-dispatch-creation-enable-aggressive-fusion",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-bytecode-module-strip-source-map",
    "--iree-vm-emit-polyglot-zip=false",
)
GATE = (
    "error: exceeded stack allocation limit of 32768 bytes for function. Got {} bytes"
)
REFUSED = (
    "/home/runner/work/iree/iree/configs/models/{}.mlir:214:12: error: failed to"
    ' distribute: type mismatch\n    %44 = "linalg.generic"(%41, %42) :'
    " (tensor<1x128x768xf32>, tensor<768xf32>) -> tensor<1x128x768xf32>\n          "
    " ^\n/home/runner/work/iree/iree/configs/models/{}.mlir:214:12: note: see current"
    " operation: %44\nerror: failed to run translation of source executable to target"
    " executable for backend #hal.executable.target"
)
Edit = Callable[[CellKey, Cell], "Cell | None"]


def digest(text: str) -> str:
    """A stand-in for a SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def metrics(seed: str, target: str) -> dict[str, int | None]:
    """Plausible metrics of one cell, the parts of the artifact summing to it."""
    rng = random.Random(digest(seed))
    sites = rng.randint(20, 290)
    executables = rng.randint(15, 64)
    code, vm, constants, unattributed = (rng.randint(*bounds) for bounds in _PARTS)
    values: dict[str, int | None] = dict.fromkeys(METRIC_IDS)
    values.update(
        artifact_bytes=code + vm + constants + unattributed,
        executable_bytes=code,
        vm_bytes=vm,
    )
    values.update(
        rodata_bytes=constants, unattributed_bytes=unattributed, executables=executables
    )
    values.update(
        dispatch_sites=sites,
        dispatch_regions=sites + 3,
        entry_points=executables,
        linalg_ops=3 * sites,
    )
    values.update(
        memory_bound_sites=sites // 2, compile_cpu_ms=rng.randint(900, 70_000)
    )
    values.update(
        stack_max_bytes=rng.randint(0, 9_000),
        compile_peak_rss_kib=rng.randint(90_000, 240_000),
    )
    if target.startswith("llvm-cpu"):
        values["stack_alloca_bytes"] = rng.randint(0, 9_000)
    if target in ("cuda", "rocm", "vulkan-spirv", "metal-spirv"):
        values["workgroup_memory_max_bytes"] = rng.randint(0, 48_000)
    return values


_PARTS = ((20_000, 300_000), (4_000, 60_000), (500, 9_000), (1_000, 9_000))


def command(key: CellKey, backend: str) -> str:
    """The command line of a cell."""
    flags = " ".join((*COMMON, f"--iree-hal-target-backends={backend}"))
    return (
        f"iree-compile - {flags} -o {key.model}.vmfb < configs/models/{key.model}.mlir"
    )


def cell(key: CellKey, backend: str, dispatches: int = 3) -> Cell:
    """A cell that compiled."""
    rows = tuple(
        Dispatch(
            executable="main_dispatch_0",
            name=f"main_dispatch_{i}_matmul_128x{i}_f32",
            kind="matmul",
            sites=2,
            code_bytes=1_200 + i,
            stack_bytes=64 * i,
        )
        for i in range(dispatches)
    )
    return Cell(
        model=key.model,
        target=key.target,
        status="ok",
        metrics=metrics(str(key), key.target),
        dispatches=rows,
        failure=None,
        command=command(key, backend),
        artifact_digest=digest(str(key)),
    )


def with_metrics(original: Cell, **values: int | None) -> Cell:
    """The cell with other metrics, and so another artifact."""
    changed: Metrics = {**original.metrics, **values}
    return replace(
        original,
        metrics=changed,
        artifact_digest=digest(f"{original.artifact_digest}{sorted(values.items())}"),
    )


def grown(original: Cell, **steps: int) -> Cell:
    """The cell with metrics that grew by these steps, where it has them."""
    return with_metrics(
        original,
        **{
            i: v + step
            for i, step in steps.items()
            if (v := original.value(i)) is not None
        },
    )


def failed(
    original: Cell, message: str, stage: str = "compile", exit_code: int | None = 1
) -> Cell:
    """The cell as one that does not compile."""
    return Cell(
        original.model,
        original.target,
        "failed",
        failure=Failure(stage, message, exit_code),
        command=original.command,
    )


def over(original: Cell, figure_bytes: int) -> Cell:
    """The cell as one that the stack gate refuses."""
    measured = with_metrics(original, stack_alloca_bytes=figure_bytes)
    failure = Failure(
        stage="stack-limit",
        message=GATE.format(figure_bytes),
        exit_code=1,
        signal=None,
        figure_bytes=figure_bytes,
    )
    return replace(measured, status="over-stack-limit", failure=failure)


def snapshot(
    version: str,
    edit: Edit = lambda _key, original: original,
    models: tuple[str, ...] = MODELS,
    targets: Mapping[str, str] = TARGETS,
    dispatches: int = 3,
) -> Snapshot:
    """A side; `edit` gets every cell and gives what the side has in its place."""
    keys = [CellKey(model, target) for model in models for target in targets]
    cells = [
        edit(key, cell(key, targets[key.target], dispatches)) for key in sorted(keys)
    ]
    # Another artifact of the same command is another compiler's, or it would be noise.
    compiler_digest = (
        digest(version)[:32]
        + digest("".join(str(cell.artifact_digest) for cell in cells if cell))[:32]
    )
    return Snapshot(
        compiler=CompilerInfo(
            f"{version}rc20261016",
            digest(version)[:40],
            compiler_digest,
            f"iree-base-compiler=={version}",
        ),
        source=SourceInfo(digest("sha")[:40], "refs/pull/7/merge"),
        cells=tuple(cell for cell in cells if cell is not None),
        flags=COMMON,
        targets=dict(targets),
        models={model: digest(model) for model in models},
    )


def unsupported(side: Snapshot) -> Snapshot:
    """The side with a column of cells that cannot be compiled stand-alone."""
    reason = Failure(
        "target",
        "it makes no executables of its own: its code is inlined into the host program",
    )
    cells = [
        Cell(model, "vmvx-inline", "unsupported", failure=reason)
        for model in side.models
    ]
    all_cells = tuple(sorted((*side.cells, *cells), key=lambda original: original.key))
    return replace(
        side, cells=all_cells, targets={**side.targets, "vmvx-inline": "vmvx-inline"}
    )


GROWN = Finding(
    key=CellKey("bert", "vmvx"),
    level="fail",
    metric="artifact_bytes",
    rule="r",
    kind="change",
    limit="4KiB and 5%",
    actual="+",
    base=50_438,
    head=83_990,
    allowed=4_096,
)
"""A build's code size grew too much."""
OVER = replace(
    GROWN,
    metric="stack_max_bytes",
    kind="limit",
    limit="8KiB",
    base=8_000,
    head=9_011,
    allowed=8_192,
)
"""The same build exceeds a limit of stack."""


def finding(
    delta: CellDelta, metric: str | None, level: Level, judgement: tuple[str, str, str]
) -> Finding:
    """A finding; `judgement` is rule, kind and limit."""
    rule, kind, limit = judgement
    if metric is None:
        return Finding(
            key=delta.key,
            level=level,
            metric=None,
            rule=rule,
            kind=kind,
            limit=limit,
            actual=delta.state,
        )
    value = delta.metrics[metric]
    actual = (
        f"{value.change:+,} B"
        if kind == "change" and value.change is not None
        else f"{value.head} B"
    )
    is_known = (
        kind == "limit"
        and value.base is not None
        and value.head is not None
        and value.head <= value.base
    )
    allowed = {"32KiB": 32_768}.get(limit)
    return Finding(
        delta.key,
        level=level,
        metric=metric,
        rule=rule,
        kind=kind,
        limit=limit,
        actual=actual,
        base=value.base,
        head=value.head,
        line=12,
        allowed=allowed,
        known=is_known,
    )


def judged(deltas: tuple[CellDelta, ...]) -> Verdict:
    """A verdict by rules like the default ones, small enough to be checked by eye."""
    findings = [judgement for delta in deltas for judgement in _judged(delta)]
    findings.sort(
        key=lambda f: (
            f.known,
            f.level == "warn",
            f.metric is not None,
            (f.base or 0) - (f.head or 0),
            f.key,
        )
    )
    unknown = judge(deltas, []).status == "unknown"
    return Verdict("unknown" if unknown else status_of(findings), tuple(findings))


def _judged(delta: CellDelta) -> list[Finding]:
    findings = []
    if delta.state == "newly-broken":
        findings.append(
            finding(delta, None, "fail", ("states", "state", "newly-broken"))
        )
    artifact = delta.metrics.get("artifact_bytes")
    stack = delta.metrics.get("stack_alloca_bytes")
    if (
        artifact
        and artifact.ratio
        and artifact.change
        and artifact.change > 4096
        and artifact.ratio > 0.05
    ):
        findings.append(
            finding(
                delta, "artifact_bytes", "fail", ("code size", "change", "4KiB and 5%")
            )
        )
    elif (
        artifact
        and artifact.ratio
        and artifact.change
        and artifact.change > 1024
        and artifact.ratio > 0.01
    ):
        findings.append(
            finding(
                delta, "artifact_bytes", "warn", ("code size", "change", "1KiB and 1%")
            )
        )
    if (
        stack
        and stack.head is not None
        and stack.head > 32_768
        and delta.key.target.startswith("llvm-cpu")
    ):
        findings.append(
            finding(
                delta,
                "stack_alloca_bytes",
                "warn",
                ("CPU stack gate", "limit", "32KiB"),
            )
        )
    return findings


def report(base: Snapshot, head: Snapshot, notes: tuple[str, ...] = ()) -> Report:
    """The report of two sides."""
    deltas = diff(base, head)
    return Report(
        base=base,
        head=head,
        baseline=Baseline("--base 3.11.0"),
        deltas=deltas,
        verdict=judged(deltas),
        report_id="default",
        notes=notes,
    )


def _usual(key: CellKey, original: Cell) -> Cell:
    """What both sides have in common: the gate refuses BERT and GPT-2 on the CPU, vit does not fit rocm."""
    if key.model in (
        "bert_l4_f32_s128",
        "bert_l4_f32_dyn",
        "gpt2_f32_dyn",
    ) and key.target.startswith("llvm-cpu"):
        return over(
            original,
            {"bert_l4_f32_s128": 73_728, "bert_l4_f32_dyn": 138_752}.get(
                key.model, 144_896
            ),
        )
    if key == CellKey("vit_l4_f32_224", "rocm"):
        return failed(
            original,
            "error: uses 81920 bytes of shared memory; exceeded the limit of 65536"
            " bytes",
        )
    if key.model.endswith("int8_tosa") and key.target == "metal-spirv":
        return failed(
            original, "error: 'spirv.SDot' op requires SPIR-V 1.6 for DotProduct"
        )
    return original


def _old(key: CellKey, original: Cell) -> Cell:
    if key.model == "mobilenet_v1_int8_tosa" and key.target in ("cuda", "vmvx"):
        return failed(
            original,
            "error: 'tosa.rescale' op failed to verify that double rounding is only for"
            " scale32",
        )
    if key == CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64"):
        return with_metrics(
            _usual(key, original),
            artifact_bytes=50_438,
            executable_bytes=31_000,
            executables=36,
        )
    return _usual(key, original)


def _regressed(key: CellKey, original: Cell) -> Cell:
    rng = random.Random(f"head {key}")
    usual = _usual(key, original)
    luck = rng.random()
    if key == CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64"):
        return with_metrics(
            usual, artifact_bytes=83_990, executable_bytes=64_552, executables=36
        )
    if key == CellKey("whisper_tiny_encoder_f32", "rocm"):
        return failed(original, REFUSED.format(key.model, key.model))
    if key == CellKey("jax_mlp_train_step_f32", "llvm-cpu-aarch64"):
        return over(original, 36_864)
    if not usual.measured or luck < 0.35:
        return usual
    if luck > 0.85:
        return grown(
            usual,
            artifact_bytes=-rng.randint(20, 9_000),
            executable_bytes=-rng.randint(20, 9_000),
        )
    step = rng.choice((40, 300, 2_000, 20_000))
    return grown(
        usual,
        artifact_bytes=step,
        executable_bytes=step,
        executables=luck > 0.6,
        stack_max_bytes=64,
    )


def many() -> Report:
    """13 models × 8 targets, everything moving; the shape of 3.11.0 → 3.13.0."""
    base = unsupported(snapshot("3.11.0", _old))
    head = unsupported(snapshot("3.13.0", _regressed))
    return report(base, head, ("shard 2/3 is lost: no artifact",))


def none() -> Report:
    """Nothing changed at all."""
    return report(snapshot("3.12.0"), snapshot("3.13.0"))


def usual() -> Report:
    """Nothing changed, but some cells are over the gate or already failing."""
    return report(
        unsupported(snapshot("3.12.0", _usual)), unsupported(snapshot("3.13.0", _usual))
    )


def broken() -> Report:
    """Every cell of head fails, most of them with the same message."""

    def edit(key: CellKey, original: Cell) -> Cell:
        if key.target == "rocm":
            return failed(
                original,
                "Please report issues to the compiler's developers\nStack dump:\n0."
                " args",
            )
        return failed(original, REFUSED.format(key.model, key.model))

    return report(snapshot("3.12.0"), snapshot("3.13.0", edit))


def broken_on_both() -> Report:
    """Nothing compiles on either side."""

    def edit(_key: CellKey, original: Cell) -> Cell:
        return failed(original, "error: unknown option", "option")

    return report(snapshot("3.12.0", edit), snapshot("3.13.0", edit))


def partly(*gone: CellKey, timeout: CellKey | None = None) -> Report:
    """Two models on four targets, judged by the default rules.

    Head lacks the builds of `gone`, and all but one if that is empty; the build
    `timeout` timed out there.
    """
    targets = {
        name: TARGETS[name]
        for name in ("cuda", "llvm-cpu-x86_64", "vmvx", "vulkan-spirv")
    }
    kept_key = CellKey("bert_l4_f32_dyn", "llvm-cpu-x86_64")

    def edit(key: CellKey, original: Cell) -> Cell | None:
        if key == timeout:
            failure = Failure("timeout", "not finished after 1800 s")
            return Cell(
                key.model,
                key.target,
                "timeout",
                failure=failure,
                command=original.command,
            )
        return None if (key in gone if gone else key != kept_key) else original

    base = snapshot("3.12.0", models=MODELS[:2], targets=targets)
    head = snapshot("3.13.0", edit, MODELS[:2], targets)
    built = report(unsupported(base), unsupported(head))
    return replace(built, verdict=judge(built.deltas, []))


def no_baseline() -> Report:
    """Nothing is known of the base side."""
    head = unsupported(snapshot("3.13.0", models=MODELS[:2]))
    base = replace(head, compiler=CompilerInfo("", "", ""), cells=())
    built = report(base, head)
    return replace(
        built,
        verdict=judge(built.deltas, []),
        broke="No baseline: 3.99.0 is no release",
    )


HOSTILE = (
    "a|b",
    "back`tick``s",
    "<!-- code-size-bot:default -->",
    "@octocat/team",
    "org/repo#12 #34 GH-56",
    "https://example.com/x www.example.com me@example.com",
    "![image](https://example.com/i.png)",
    "<img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m\x1b]8;;http://example.com\x07link\x1b]8;;\x07",
    "right\u202eto\u2066left\u200b",
    "line\nbreak\r\n# heading",
    "</details></summary><script>alert(1)</script>",
    "```\nfence\n````\n~~~",
    "\\|",
    "$x^2$ :tada: **bold** _em_ ~~no~~",
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    "{{ 7 * 7 }}{% raw %}",
    "\ud800 lone",
    "",
    "x" * 5_000,
)


def hostile(texts: tuple[str, ...] = HOSTILE) -> Report:
    """Every text that is not ours is hostile: names, diagnostics, commands, versions, rules."""
    names = tuple(sorted(dict.fromkeys(texts)))
    targets = {f"t {word}": word for word in texts[:6]}

    def head(key: CellKey, original: Cell) -> Cell:
        evil = texts[names.index(key.model) % len(texts)]
        if len(key.target) % 3 == 0:
            return replace(failed(original, "\n".join(texts)), command=evil)
        return replace(grown(original, artifact_bytes=90_000), command=evil)

    base = snapshot("1", models=names, targets=targets)
    changed = snapshot("2", head, names, targets)
    evil = texts[0]
    info = CompilerInfo(evil, texts[-1], evil, evil)
    built = report(
        replace(base, compiler=info),
        replace(changed, compiler=info, flags=texts, notes=texts),
        notes=texts,
    )
    findings = tuple(
        replace(f, rule=evil, limit=texts[1 % len(texts)], actual=evil)
        for f in built.verdict.findings
    )
    return replace(
        built,
        verdict=replace(built.verdict, findings=findings),
        baseline=Baseline(evil, evil, 3),
    )


@cache
def huge(cells: int = 5_000) -> Report:
    """Very many cells, most of them changed."""
    models = tuple(f"model_{index:04}" for index in range(cells // len(TARGETS)))

    def head(key: CellKey, original: Cell) -> Cell:
        rng = random.Random(f"head {key}")
        if rng.random() < 0.03:
            return failed(original, REFUSED.format(key.model, key.model))
        return grown(
            original,
            artifact_bytes=rng.randint(-2_000, 9_000),
            executables=rng.randint(0, 1),
        )

    targets = dict(TARGETS)
    return report(
        snapshot("3.12.0", models=models, targets=targets),
        snapshot("3.13.0", head, models, targets),
    )


def small() -> Report:
    """Two models on two targets: one of each of the common states."""
    models = ("bert", "mobilenet")
    targets = {
        "llvm-cpu-x86_64": "llvm-cpu",
        "vmvx": "vmvx",
    }

    def head(key: CellKey, original: Cell) -> Cell:
        if key == CellKey("bert", "vmvx"):
            return failed(original, REFUSED.format("bert", "bert"))
        if key == CellKey("mobilenet", "llvm-cpu-x86_64"):
            return with_metrics(
                original, artifact_bytes=83_990, executable_bytes=64_552
            )
        return original

    def base(key: CellKey, original: Cell) -> Cell:
        if key == CellKey("mobilenet", "llvm-cpu-x86_64"):
            return with_metrics(
                original, artifact_bytes=50_438, executable_bytes=31_000
            )
        return original

    return report(
        snapshot("3.11.0", base, models, targets),
        snapshot("3.13.0", head, models, targets),
    )


TILES = (
    "tile sizes [[64, 64, 0], [8, 32, 0], [0, 0, 1]] → [[64, 64, 0], [8, 16, 0], [0,"
    " 0, 1]]"
)
DIFF = (
    "--- base",
    "+++ head",
    "@@ -3,3 +3,3 @@",
    " #config = #iree_cpu.lowering_config<",
    "-  vector_common_parallel = [8, 32, 0],",
    "+  vector_common_parallel = [8, 16, 0],",
)


def dispatch(
    index: int, code_bytes: int, stack_bytes: int = 0, kind: str = "matmul"
) -> Dispatch:
    """An entry point of a made-up model."""
    name = f"main_dispatch_{index}"
    return Dispatch(
        executable=name,
        name=f"{name}_{kind}_128x768x768_f32",
        kind=kind,
        sites=4,
        code_bytes=code_bytes,
        stack_bytes=stack_bytes,
    )


def explanation(
    cause: str | None = "strategy", dispatches: int = 12, word: str = ""
) -> Explanation:
    """A made-up story; `word` stands everywhere where the text of a model or compiler may."""
    changed = [
        DispatchDelta(
            base=dispatch(i, 2_000 + i, 64),
            head=dispatch(i, 4_000 - 10 * i, 128),
            matched="same source",
            cause=cause,
            component=f"{word}encoder.layer.{i}.attention" if i else "unattributed",
            note=word or TILES,
            diff=(*DIFF, *([word] if word else [])) if i < 2 else (),
        )
        for i in range(dispatches - 2)
    ]
    changed.append(
        DispatchDelta(
            base=None,
            head=dispatch(40, 900, 16, "elementwise"),
            matched="added",
            cause=cause,
            component="decoder",
            note=word,
        )
    )
    changed.append(
        DispatchDelta(
            base=dispatch(41, 700, 16, "elementwise"),
            head=None,
            matched="removed",
            cause=cause,
            component=word or "decoder",
            note="",
        )
    )
    parts = [
        ComponentDelta(
            name,
            _amounts(4, code_bytes, 64),
            _amounts(4, 2 * code_bytes, None if word else 128),
        )
        for name, code_bytes in (
            (f"{word}encoder.layer.*", 20_000),
            ("decoder", 900),
            ("unattributed", 40),
        )
    ]
    tree = [
        ComponentDelta(name, _amounts(2, 400, 64), _amounts(2, 500, 64))
        for name in (
            "encoder",
            "encoder.layer.0",
            f"encoder.layer.0.{word}attention",
            "encoder.layer.1",
            "decoder",
        )
    ]
    note = (
        f"{word} {TILES}".strip()
        if cause
        else "the baseline has no digests of the configuration"
    )
    phase = "configuration" if cause else None
    fields: dict[str, Any] = {
        "unchanged": 24,
        "rebased": 2,
        "components": tuple(parts),
        "tree": tuple(tree),
    }
    return Explanation(cause, phase, note, tuple(changed), **fields)


def _amounts(sites: int, code_bytes: int, stack_bytes: int | None) -> Amounts:
    return Amounts(sites, code_bytes, stack_bytes)


def family(word: str = "") -> Family:
    """Six executables that differ in a multiplier."""
    names = tuple(f"{word}main_dispatch_{index}" for index in range(6))
    return Family(
        "constants", names, (f"{word}arith.constant i32 → arith.muli: 3, 5, 7, 11",)
    )


def explained(report: Report, word: str = "") -> Report:
    """The report with a story for every changed and every newly broken cell that was measured.

    One is not known. `word`: the text of a model or compiler.
    """
    base_cells, head_cells = (
        {cell.key: cell for cell in side.cells} for side in (report.base, report.head)
    )
    keys = [
        delta.key
        for delta in report.deltas
        if delta.state in ("changed", "newly-broken")
        and (
            delta.key in base_cells
            and base_cells[delta.key].measured
            and delta.key in head_cells
            and head_cells[delta.key].measured
        )
    ]
    causes = (
        "strategy",
        "strategy",
        "strategy",
        "codegen",
        "fusion",
        None,
        "packaging",
    )
    stories = {
        key: explanation(causes[index % len(causes)], 4 + index % 9, word)
        for index, key in enumerate(keys)
    }

    def with_family(delta: CellDelta) -> CellDelta:
        if delta.key not in stories or delta.head is None:
            return delta
        head = replace(delta.head, program=Program(), families=(family(word),))
        return replace(delta, head=head)

    deltas = tuple(map(with_family, report.deltas))
    roots = root_causes(deltas, stories)
    return replace(report, deltas=deltas, explanations=stories, root_causes=roots)


def why() -> Report:
    """`many`, explained."""
    return explained(many())


def explained_small() -> Report:
    """`small`, explained."""
    return explained(small())
