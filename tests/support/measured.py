"""A snapshot with all that real cells have, as hard to pack: 13 models on 8 targets, 30 dispatches in each cell.

Numbers follow what 3.13 measured of such models: seven sources in eight have a code digest of their own, a strategy is
shared by neighbours, a program has four sites to a source, a cell five families of four.
"""

from __future__ import annotations

import random

from replacing import replace
from report_factory import TARGETS, digest, snapshot

from bot.core.json_text import counts_text
from bot.core.program import FAMILY_KINDS, Argument, Family, Program, Site, Source
from bot.core.snapshot import Cell, CellKey, Dispatch, Snapshot, written

DISPATCHES = 30
_KINDS = ("matmul", "conv", "reduction", "elementwise", "transpose", "softmax", "pooling", "pack")
_OPERATIONS = [f"{dialect}.{kind}" for dialect in ("arith", "linalg", "math", "tensor") for kind in _KINDS]
_PHASES = (
    "abi",
    "dispatch-creation",
    "executable-sources",
    "executable-targets",
    "flow",
    "hal",
    "input",
    "stream",
    "vm",
)
_REASON = "only llvm-cpu has stack allocations that the compiler limits"
_STRATEGIES = {
    "cpu": "DoubleTiling | distribution = [{}, {}], vector_common_parallel = [{}, {}], vector_reduction = [0, {}]",
    "gpu": "TileAndFuse workgroup_size = [{}, {}, 1] subgroup_size = 32 | {{thread = [{}, {}], workgroup = [{}, 32]}}",
}


def _code(rng: random.Random) -> str:
    return written(rng.randbytes(32))


def _names(model: str) -> list[tuple[str, str, str]]:
    """Executable, entry point, kind."""
    rng, rows, kind = random.Random(f"names of {model}"), [], _KINDS[0]
    for index in range(DISPATCHES):
        kind, executable = rng.choice((kind, rng.choice(_KINDS))), f"main$async_dispatch_{index}"
        shape = "x".join(str(rng.choice((1, 8, 32, 128, 384, 768, 3072))) for _ in range(3))
        rows.append((executable, f"{executable}_{kind}_{shape}_f32", kind))
    return rows


def _program(model: str) -> Program:
    rng, names = random.Random(f"program of {model}"), _names(model)
    words = [tuple(_code(rng) for _ in range(3)) for _ in names]
    sums = [rng.getrandbits(53) for _ in names]
    layer = rng.sample(range(DISPATCHES), 9)
    sites = [(i, number) for number in range(12) for i in (rng.randrange(DISPATCHES), *layer)]
    of_a_layer = [(kind, rng.randint(1, 45)) for kind in _KINDS]
    return Program(
        phases={phase: digest(f"{phase} of {model}") for phase in ("input", "global-optimization")},
        linalg_ops_before=rng.randint(90, 900),
        sources=tuple(
            Source(executable, word[0], words[index // 3][1], sums[index // 3], word[2])
            for index, ((executable, _, _), word) in enumerate(zip(names, words, strict=True))
        ),
        sites=tuple(Site(names[i][1], f"{model}/encoder.layer.{number}.{names[i][2]}", i < 3) for i, number in sites),
        arguments=tuple(Argument(name, 0, "i32", (64, 128, 4096), 3, 64, 0) for _, name, _ in names[:5]),
        operations=counts_text({name: rng.randint(1, 250) for name in rng.sample(_OPERATIONS, 20)}),
        places={f"{model}/encoder.layer.{number}.{kind}": count for number in range(12) for kind, count in of_a_layer},
    )


def _dispatches(key: CellKey) -> tuple[Dispatch, ...]:
    rng, pool = random.Random(f"code of {key}"), random.Random(f"strategies of {key.target}")
    is_cpu = key.target.startswith("llvm-cpu")
    text = _STRATEGIES["cpu" if is_cpu else "gpu"]
    sizes = [[pool.choice((1, 4, 8, 16, 32, 48, 60, 64, 96)) for _ in range(5)] for _ in range(100)]
    pooled = {kind: [text.format(*row) for row in rng.sample(sizes[at::8], 3)] for at, kind in enumerate(_KINDS)}
    codes = [_code(rng) for _ in range(DISPATCHES * 7 // 8)]
    return tuple(
        Dispatch(
            executable=executable,
            name=name,
            kind=kind,
            sites=sum(ord(char) for char in name) % 12 + 1,
            code_bytes=round(2 ** rng.uniform(4, 10)) * 4,
            stack_bytes=8 * rng.choice((0, 0, 0, 1, 2, rng.randint(3, 400))) if is_cpu else None,
            stack_kind="static" if is_cpu else None,
            alloca_bytes=0 if is_cpu else None,
            workgroup_bytes=None if is_cpu else rng.choice((0, 0, 0, 4_096)),
            vgprs=rng.randint(4, 128) if key.target == "rocm" else None,
            code=codes[index % len(codes)],
            strategy=rng.choice(pooled[kind]),
        )
        for index, (executable, name, kind) in enumerate(_names(key.model))
    )


def _families(model: str) -> tuple[Family, ...]:
    rng, names = random.Random(f"families of {model}"), [executable for executable, _, _ in _names(model)]
    return tuple(
        Family(rng.choice(FAMILY_KINDS), tuple(sorted(rng.sample(names, 4))), (f"argument {i}: 1x?x768, 1x?x3072",))
        for i in range(5)
    )


def measured() -> Snapshot:
    """104 cells, 3,120 dispatches."""
    programs: dict[str, Program] = {}

    def edit(key: CellKey, found: Cell) -> Cell:
        rng = random.Random(f"phases of {key}")
        return replace(
            found,
            dispatches=_dispatches(key),
            program=programs.setdefault(key.model, _program(key.model)),
            families=_families(key.model),
            phases_ms={phase: rng.randint(1, 1_500) for phase in _PHASES},
            reasons={} if key.target.startswith("llvm-cpu") else {"stack_alloca_bytes": _REASON},
        )

    return snapshot("3.13.0", edit, targets=TARGETS)
