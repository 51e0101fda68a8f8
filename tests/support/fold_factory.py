"""Made-up fold audits for the tests of how they are shown: deterministic, in the shape that real ones have."""

from __future__ import annotations

import random

from replacing import replace
from report_factory import COMMON, HOSTILE, MODELS, TARGETS, digest

from bot.core.runs import Price
from bot.core.snapshot import CompilerInfo
from bot.fold.audit import (
    FOLD_SCHEMA,
    BeforeAfter,
    FoldAudit,
    FoldCell,
    FoldedFamily,
    FoldModel,
    LeftFamily,
)

UNKNOWN = BeforeAfter(None, None)
QUANTISED = ("mobilebert_l6_int8_tosa", "mobilenet_v1_int8_tosa")
PLAIN = ("jax_mlp_train_step_f32", "mobilenet_v2_f32_224")  # Models without a family
RUN = ("llvm-cpu-x86_64", "vmvx")
RUN_NOTE = "equal bit by bit over 3 draws of random inputs"
FLOAT_NOTE = "equal within 1e-5 relative, 1e-6 absolute over 3 draws of random inputs"
LEGALISE = (
    "it does not compile: error: failed to legalize operation 'arith.extsi' that was"
    " explicitly marked illegal"
)
SHAPE = "a constant is used as a shape"
DIFFER = (
    "with it the outputs differ: 3 of 1,000 elements, the first by 1; it was taken back"
)
SLOW = "run time 1.08 [1.06, 1.11]: slower than the 1 % that are allowed"
TIED = "the compiler gives 2 of them other operations once their constants are operands"


def price(rng: random.Random) -> Price:
    """Some run time."""
    ratio = 1 + rng.randint(-3, 6) / 100
    return Price(12_000, round(12_000 * ratio), 21, ratio, ratio - 0.02, ratio + 0.03)


def compiler(version: str = "3.13.0") -> CompilerInfo:
    """A made-up compiler."""
    return CompilerInfo(
        version, digest(version)[:40], digest(version), f"iree-base-compiler=={version}"
    )


def command(model: str, target: str) -> str:
    """What makes the folded artifact."""
    flags = " ".join(
        (*COMMON, f"--iree-hal-target-backends={TARGETS.get(target, target)}")
    )
    return (
        f"iree-compile - --compile-from=flow {flags} -o {model}.vmfb <"
        f" folded/{model}.{target}.mlir"
    )


def families(model: str) -> tuple[FoldedFamily, ...]:
    """What is folded of a model on a usual target."""
    rng = random.Random(f"families {model}")
    kinds = [
        ("identical", ()),
        ("constants", ("i32", "i32", "i64", "i32")),
        ("static-shapes", ("index", "index")),
    ]
    chosen = kinds if model in QUANTISED else kinds[2:]
    return tuple(
        FoldedFamily(
            kind,
            tuple(
                f"main_dispatch_{10 * start + step}"
                for step in range(rng.randint(2, 9))
            ),
            operands,
        )
        for start, (kind, operands) in enumerate(chosen)
    )


def left(model: str, target: str) -> tuple[LeftFamily, ...]:
    """What was left, and why."""
    remaining = [
        LeftFamily("static-shapes", ("main_dispatch_71", "main_dispatch_72"), SHAPE)
    ]
    if target in ("vulkan-spirv", "metal-spirv") and model in QUANTISED:
        remaining.insert(
            0,
            LeftFamily(
                "constants", tuple(f"main_dispatch_{i}" for i in range(36)), LEGALISE
            ),
        )
    if (model, target) == ("whisper_tiny_encoder_f32", "vmvx"):
        remaining.append(
            LeftFamily("constants", ("main_dispatch_80", "main_dispatch_81"), DIFFER)
        )
    if model == "gpt2_f32_dyn" and target in RUN:
        remaining.append(
            LeftFamily(
                "static-shapes",
                ("main_dispatch_5", "main_dispatch_6", "main_dispatch_7"),
                SLOW,
            )
        )
    if model == "vit_l4_f32_224":
        remaining.append(
            LeftFamily(
                "extra-operation", ("main_dispatch_90", "main_dispatch_91"), TIED
            )
        )
    return tuple(remaining)


def failed(model: str, target: str, note: str) -> FoldCell:
    """A cell without figures."""
    return FoldCell(model, target, "failed", UNKNOWN, UNKNOWN, None, (), (), note=note)


def cell(model: str, target: str) -> FoldCell:
    """One cell as real ones are."""
    rng = random.Random(f"{model} {target}")
    executables = random.Random(model).randint(30, 156)
    artifact = rng.randint(40_000, 400_000)
    same = BeforeAfter(executables, executables), BeforeAfter(artifact, artifact)
    if (model, target) == ("vit_l4_f32_224", "rocm"):
        return failed(
            model,
            target,
            "error: uses 81920 bytes of shared memory; exceeded the limit of 65536"
            " bytes",
        )
    if model == "tinyllama_l4_f32_dyn" and target == "vmvx":
        return failed(
            model,
            target,
            "its program could not be read: the compiler's bindings crashed (SIGSEGV)",
        )
    if model in PLAIN:
        return FoldCell(model, target, "nothing-to-fold", *same, None, (), (), artifact)
    unequal = model == "whisper_tiny_encoder_f32" and target == "llvm-cpu-x86_64"
    return folded(
        model,
        target,
        rng,
        BeforeAfter(executables, None),
        artifact,
        equal=False if unequal else None,
    )


def folded(
    model: str,
    target: str,
    rng: random.Random,
    executables: BeforeAfter,
    artifact: int,
    equal: bool | None,
) -> FoldCell:
    """A cell of which something was folded; vulkan and metal refuse what is quantised."""
    folds = (
        families(model)
        if target not in ("vulkan-spirv", "metal-spirv")
        else families(model)[-1:]
    )
    gone = sum(len(family.members) - 1 for family in folds)
    before = executables.before or 0
    after = artifact - rng.randint(500, artifact // 2)
    run = target in RUN and model != "gpt2_f32_dyn"
    note = (
        "parameters of 500 MB are not drawn"
        if target in RUN
        else "not a target of this machine"
    )
    exact = RUN_NOTE if model in QUANTISED else FLOAT_NOTE
    return FoldCell(
        model,
        target,
        "folded",
        BeforeAfter(before, before - gone),
        BeforeAfter(artifact, after),
        (True if equal is None else equal) if run else None,
        folds,
        left(model, target),
        artifact - 16 if rng.random() < 0.1 else artifact,
        (
            (exact if equal is None else "17 of 1,000 elements differ, the first by 3")
            if run
            else note
        ),
        price(rng) if run else None,
        "" if run else note,
        command(model, target),
        f"folded/{model}.{target}.mlir",
    )


def model_of(model: str, cells: tuple[FoldCell, ...]) -> FoldModel:
    """How far each step takes a model."""
    counts = [
        cell.executables
        for cell in cells
        if cell.model == model and cell.executables.before is not None
    ]
    today = counts[0].before if counts else None
    after = min(
        (count.after for count in counts if count.after is not None), default=None
    )
    if today is None:
        return FoldModel(model, None, None, None)
    return FoldModel(model, 2 * today + 30, today, after)


def audit(
    models: tuple[str, ...] = MODELS, targets: tuple[str, ...] = tuple(TARGETS)
) -> FoldAudit:
    """An audit of these models and targets."""
    cells = tuple(
        cell(model, target) for model in sorted(models) for target in sorted(targets)
    )
    fold_models = tuple(model_of(model, cells) for model in sorted(models))
    machine = "AMD EPYC 7763 64-Core Processor, 2 cores"
    return FoldAudit(FOLD_SCHEMA, compiler(), COMMON, machine, 0.01, fold_models, cells)


def many() -> FoldAudit:
    """13 models × 8 targets, one target that cannot be compiled stand-alone, and a model with a long name."""
    first_audit = audit(
        (
            *MODELS,
            "a_model_of_somebody_else_with_a_name_that_does_not_end_int8_s128_b1_per_channel_tosa",
        )
    )
    inline = (
        "it makes no executables of its own: its code is inlined into the host program"
    )
    cells = [
        FoldCell(
            model.model,
            "vmvx-inline",
            "unsupported",
            UNKNOWN,
            UNKNOWN,
            None,
            (),
            (),
            note=inline,
        )
        for model in first_audit.models
    ]
    all_cells = tuple(
        sorted((*first_audit.cells, *cells), key=lambda row: (row.model, row.target))
    )
    return replace(first_audit, cells=all_cells)


def small() -> FoldAudit:
    """Three models on two targets."""
    return audit(
        (QUANTISED[1], PLAIN[0], "whisper_tiny_encoder_f32"),
        ("llvm-cpu-x86_64", "vulkan-spirv"),
    )


def nothing() -> FoldAudit:
    """Nothing to fold anywhere."""
    return audit(PLAIN)


def unmeasured() -> FoldAudit:
    """Not a single figure."""
    cells = tuple(
        failed("bert", target, "error: unknown option") for target in ("cuda", "vmvx")
    )
    return FoldAudit(
        FOLD_SCHEMA,
        compiler(),
        (),
        "",
        None,
        (FoldModel("bert", None, None, None),),
        cells,
    )


def hostile(hostile_texts: tuple[str, ...] = HOSTILE) -> FoldAudit:
    """Every text that is not ours is hostile."""
    names = sorted({word or "-" for word in hostile_texts})
    cells = []
    for number, word in enumerate(names):
        for target in ("cuda", names[-number - 1]):
            usual = cell(
                MODELS[number % len(MODELS)],
                "llvm-cpu-x86_64" if number % 2 else "cuda",
            )
            plain = failed(word, target, word) if number % 5 == 4 else usual
            folded_of_it = tuple(
                FoldedFamily(f.kind, (word, *names[:2]), (word,)) for f in plain.folded
            )
            texts = dict.fromkeys(
                ("model", "equal_note", "price_note", "command", "module", "note"), word
            )
            other_fields = {
                "folded": folded_of_it,
                "left": (LeftFamily(word, (word,), word),),
                "target": target,
            }
            cells.append(replace(plain, **texts, **other_fields))
    unique = {(cell.model, cell.target): cell for cell in cells}
    info = CompilerInfo(
        hostile_texts[0], hostile_texts[-1], hostile_texts[0], hostile_texts[0]
    )
    fold_models = tuple(FoldModel(name, 9, 8, 4) for name in names)
    return FoldAudit(
        FOLD_SCHEMA,
        info,
        hostile_texts,
        hostile_texts[0],
        0.5,
        fold_models,
        tuple(unique[key] for key in sorted(unique)),
    )
