"""Histories for tests: of made-up snapshots, and of six releases that were measured once.

`python -m history_factory SNAPSHOT…` packs snapshots into `tests/fixtures/history`,
each named after its release, with the cells of MODELS and TARGETS alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from places import FIXTURES
from replacing import replace
from report_factory import HOSTILE, digest, failed, grown, over, snapshot, with_metrics
from series import figures

from bot.config.configuration import load_config
from bot.core.history import History
from bot.core.planned import narrowed
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot
from bot.core.spec import release_in
from bot.core.study import Study, Variant, named_apart
from bot.store.entries import pack, unpack
from bot.study.history import explained_history
from bot.study.snapshot_files import load_snapshot

FOLDER = FIXTURES / "history"
RELEASES = ("3.8.0", "3.9.0", "3.10.0", "3.11.0", "3.12.0", "3.13.0")
MODELS = ("bert_l4_f32_s128", "mobilenet_v1_f32_224")
TARGETS = ("cuda", "llvm-cpu-x86_64")
TWO = {"cuda": "cuda", "llvm-cpu-x86_64": "llvm-cpu"}
BERT = CellKey("bert_l4_f32_s128", "llvm-cpu-x86_64")
MOBILENET = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
BERT_CUDA = CellKey("bert_l4_f32_s128", "cuda")


@cache
def stored(release: str) -> Snapshot:
    """What a release gave for MODELS on TARGETS."""
    path = FOLDER / f"{release}.json.xz"
    return unpack(path.read_bytes(), str(path))


def study_of(*snapshots: Snapshot) -> Study:
    """Releases, each with its snapshot."""
    return named_apart(
        [
            Variant(_name(snapshot), snapshot.compiler.spec, snapshot)
            for snapshot in snapshots
        ]
    )


def _name(release_snapshot: Snapshot) -> str:
    return (
        release_in(release_snapshot.compiler.spec) or release_snapshot.compiler.version
    )


def history_of(study: Study) -> History:
    """By the packaged configuration."""
    return explained_history(study, load_config())


@cache
def measured() -> History:
    """That of the six releases."""
    return history_of(study_of(*map(stored, RELEASES)))


def side(
    version: str, sizes: dict[CellKey, int | None], executables: int = 17
) -> Snapshot:
    """A release in which these cells have these artifacts; None: it does not compile."""

    def edit(key: CellKey, cell: Cell) -> Cell | None:
        if key not in sizes:
            return None
        size = sizes[key]
        if size is None:
            return failed(cell, "error: failed to distribute")
        return with_metrics(
            cell,
            **figures("artifact_bytes", size),
            executables=executables,
            compile_cpu_ms=3_000,
        )

    built = snapshot(version, edit, MODELS, TWO)
    return replace(built, compiler=replace(built.compiler, digest=digest(version)))


def gap() -> Variant:
    """A release that cannot be had."""
    return Variant(
        "3.12.0",
        "3.12.0",
        None,
        "iree-base-compiler==3.12.0: no such release for this machine and Python",
    )


@cache
def eventful() -> History:
    """A gap in the middle, a release that is not there, and two measurements of one release."""
    first = side("3.10.0", {BERT: 47_832, MOBILENET: 50_470, BERT_CUDA: 280_876})
    second = side("3.11.0", {BERT: 74_296, MOBILENET: 50_438, BERT_CUDA: None})
    third = side("3.13.0", {BERT: 64_920, MOBILENET: 83_990, BERT_CUDA: 282_332})
    again = side("3.13.0", {BERT: 64_920, MOBILENET: 83_990, BERT_CUDA: 282_400})
    variants = [
        Variant("3.10.0", "3.10.0", first),
        Variant("3.11.0", "3.11.0", second),
    ]
    variants += [
        gap(),
        Variant("3.13.0", "3.13.0", third),
        Variant("3.13.0", "head.json", again),
    ]
    return history_of(named_apart(variants))


def hostile(texts: Sequence[str] = HOSTILE) -> History:
    """Every text that is not ours is hostile."""
    names = tuple(sorted(dict.fromkeys(word for word in texts if word)))
    targets = {f"t {word}": "llvm-cpu" for word in names[:2]}

    def edit(key: CellKey, cell: Cell) -> Cell:
        index = names.index(key.model)
        if index % 3 == 0:
            return replace(failed(cell, "\n".join(names)), command=names[index])
        return replace(
            over(cell, 90_000) if index % 3 == 1 else grown(cell, artifact_bytes=77),
            command=names[index],
        )

    sides = [
        snapshot(str(number), edit if number else _same, names, targets)
        for number in range(2)
    ]
    evil = [
        Variant(
            f"{number} {names[number]}",
            names[0],
            replace(version_side, notes=names, compiler=_evil(number, names[number])),
        )
        for number, version_side in enumerate(sides)
    ]
    return history_of(named_apart([*evil, Variant(names[0], names[1], None, names[2])]))


def _same(_key: CellKey, cell: Cell) -> Cell:
    return cell


def _evil(number: int, word: str) -> CompilerInfo:
    return CompilerInfo(word, word, digest(str(number)), word)


@cache
def long(count: int = 60, models: int = 4) -> History:
    """Many commits with one compiler and then another, in which something moves now and then."""
    names = tuple(f"model_{number}" for number in range(models))

    def at(number: int) -> Snapshot:
        def edit(key: CellKey, cell: Cell) -> Cell:
            if key.model == "model_3" and 20 <= number < 24:
                return failed(cell, "error: failed to legalize")
            return grown(
                cell, artifact_bytes=(number // 10) * 100, executables=number // 30
            )

        info = CompilerInfo(
            f"3.{12 + number // 30}.0rc1",
            "",
            digest(f"{number // 30}"),
            f"3.{12 + number // 30}.0",
        )
        return replace(snapshot("1", edit, names, TWO), compiler=info)

    return history_of(
        Study(
            tuple(
                Variant(f"{n:010x}", f"3.{12 + n // 30}.0", at(n)) for n in range(count)
            )
        )
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        whole = load_snapshot(Path(name))
        chosen = narrowed({"it": whole}, model_globs=MODELS, target_globs=TARGETS)["it"]
        (FOLDER / f"{_name(whole)}.json.xz").write_bytes(pack(chosen))
