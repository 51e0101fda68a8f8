"""Real compilers, real models, and changes whose cause is known beforehand: the report must say just that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from places import FIXTURES, ROOT
from real_compilers import bot, own_cache

from bot.core.snapshot import Cell
from bot.core.snapshot_json import from_json

LAYERS = (FIXTURES / "answers/layers.mlir").read_text(encoding="utf-8")
X86 = [
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=x86-64-v3",
]

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache(tmp_path_factory.mktemp("cache"), "3.13.0")


@dataclass(frozen=True)
class Lab:
    """Measures models under a configuration, and compares what it measured."""

    home: Path
    cache: Path

    def measure(self, name: str, models: Mapping[str, str], **config: Any) -> Path:
        """The snapshot of these texts; `config` are keys of the configuration file."""
        folder = self.home / name
        for model, text in models.items():
            path = folder / "models" / f"{model}.mlir"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        keys = {
            "schema": "code-size-config/1",
            "models": ["models/*.mlir"],
            "targets": ["llvm-cpu-x86_64"],
            **config,
        }
        (folder / "config.yml").write_text(json.dumps(keys), encoding="utf-8")
        out = folder / "snapshot.json"
        bot(
            "measure",
            "--compiler",
            "3.13.0",
            "--config",
            folder / "config.yml",
            "--cache",
            self.cache,
            "--out",
            out,
        )
        return out

    def report(self, base: Path, head: Path) -> dict[str, Any]:
        """The `report.json` of two snapshots."""
        out = self.home / "out"
        options = (
            "--config",
            head.parent / "config.yml",
            "--cache",
            self.cache,
            "--out",
            out,
        )
        bot("report", "--base", base, "--head", head, *options)
        plain: dict[str, Any] = json.loads(
            (out / "report.json").read_text(encoding="utf-8")
        )
        return plain


@pytest.fixture
def lab(tmp_path: Path, cache: Path) -> Lab:
    """A folder of its own for each test."""
    return Lab(tmp_path, cache)


def only_cell(report: Mapping[str, Any]) -> dict[str, Any]:
    """The one cell of a report on one model and one target, beside the backends that nobody asked about."""
    [cell] = [cell for cell in report["cells"] if cell["state"] != "unmeasured"]
    return dict(cell)


def causes(cell: Mapping[str, Any]) -> set[str | None]:
    """The causes of its dispatches."""
    return {dispatch["cause"] for dispatch in cell["dispatches"]}


def change(cell: Mapping[str, Any], metric: str) -> int:
    """Head − base."""
    values = cell["metrics"][metric]
    return int(values["head"] - values["base"])


def assert_parts_sum_to_the_whole(
    sides: Sequence[Cell], cell: Mapping[str, Any]
) -> None:
    """Sites and code of the dispatches that are not the same explain the whole change of both."""
    for attribute in ("sites", "code_bytes"):
        base, head = (
            sum(getattr(dispatch, attribute) for dispatch in side.dispatches)
            for side in sides
        )
        rows = cell["dispatches"]
        difference = sum(
            ((r["head"] or {}).get(attribute, 0) or 0)
            - ((r["base"] or {}).get(attribute, 0) or 0)
            for r in rows
        )
        assert difference == head - base


def cells_of(*paths: Path) -> list[Cell]:
    """The one cell of each snapshot."""
    return [from_json(path.read_text(encoding="utf-8")).cells[0] for path in paths]


def test_aggressive_fusion_off_and_on(lab: Lab) -> None:
    text = (ROOT / "configs/models/bert_l4_f32_s128.mlir").read_text(encoding="utf-8")
    off = lab.measure(
        "off",
        {"bert": text},
        targets=["vmvx"],
        flags=["--iree-dispatch-creation-enable-aggressive-fusion=false"],
    )
    on = lab.measure("on", {"bert": text}, targets=["vmvx"])
    cell = only_cell(lab.report(off, on))
    assert (
        cell["first"] == "dispatch-creation"
        and {"fusion", "host"} <= cell["waterfall"].keys()
    )
    assert change(cell, "dispatch_sites") < 0
    assert "fusion" in causes(cell)
    assert_parts_sum_to_the_whole(cells_of(off, on), cell)
    back = only_cell(lab.report(on, off))
    assert (
        back["cause"] == cell["cause"]
        and back["waterfall"]["fusion"] == -cell["waterfall"]["fusion"]
    )
    assert [-change(cell, "dispatch_sites"), len(cell["dispatches"])] == [
        change(back, "dispatch_sites"),
        len(back["dispatches"]),
    ]


@pytest.mark.parametrize(
    ("flags", "cause"),
    [
        pytest.param(
            ["--iree-llvmcpu-target-cpu-features=+avx512f"],
            "strategy",
            id="wider vectors",
        ),
        pytest.param(
            ["--iree-llvmcpu-target-vector-width-in-bytes=16"], "strategy", id="tiles"
        ),
        pytest.param(
            ["--iree-llvmcpu-target-cpu-features=-fma"],
            "codegen",
            id="a missing instruction",
        ),
        pytest.param(
            ["--iree-llvmcpu-loop-vectorization=true"],
            "packaging",
            id="nothing to vectorize",
        ),
    ],
)
def test_an_option_of_the_code_generator(
    lab: Lab, flags: Sequence[str], cause: str
) -> None:
    def target(extra: Sequence[str]) -> dict[str, Any]:
        return {"cpu": {"backend": "llvm-cpu", "flags": [*X86, *extra]}}

    base = lab.measure("base", {"layers": LAYERS}, targets=target([]))
    head = lab.measure("head", {"layers": LAYERS}, targets=target(flags))
    cell = only_cell(lab.report(base, head))
    assert (cell["state"], cell["cause"]) == ("changed", cause)
    assert causes(cell) <= {"strategy", "codegen"}
    assert bool(cell["dispatches"]) == (cause != "packaging")
    assert_parts_sum_to_the_whole(cells_of(base, head), cell)


def test_an_operation_inserted_early_in_the_model(lab: Lab) -> None:
    """The ordinals of everything after it shift.

    One dispatch is new, and nothing else is said to have changed.
    """
    inserted = LAYERS.replace(
        "  // INSERT\n",
        '  %sq = math.tanh %x : tensor<32x128xf32> loc("net.embedding")\n',
    ).replace("ins(%x, %w0", "ins(%sq, %w0")
    base = lab.measure("base", {"layers": LAYERS})
    head = lab.measure("head", {"layers": inserted})
    report = lab.report(base, head)
    cell = only_cell(report)
    assert change(cell, "dispatch_sites") == 1
    [edit] = report["edits"]
    assert (edit["model"], edit["operations"], edit["components"]) == (
        "layers",
        {"math.tanh": 1},
        {"embedding": 1},
    )
    assert (edit["base"], edit["head"]) == (
        report["base"]["models"]["layers"],
        report["head"]["models"]["layers"],
    )
    assert (cell["cause"], cell["first"]) == ("input", "input")
    [added] = cell["dispatches"]
    assert (added["cause"], added["component"], added["base"]) == (
        "input",
        "embedding",
        None,
    )
    assert added["head"]["kind"] == "elementwise"
    gone = only_cell(lab.report(head, base))
    [removed] = gone["dispatches"]
    assert (gone["cause"], removed["head"]) == ("input", None)


def test_another_level_that_changes_nothing_but_names(lab: Lab) -> None:
    """Dispatches are called otherwise at O2: no code, no region and no configuration is said to differ."""
    targets = ["llvm-cpu-x86_64", "cuda", "vulkan-spirv"]
    base = lab.measure("base", {"layers": LAYERS}, targets=targets)
    head = lab.measure(
        "head", {"layers": LAYERS}, targets=targets, flags=["--iree-opt-level=O2"]
    )
    cells = [
        cell for cell in lab.report(base, head)["cells"] if cell["state"] == "changed"
    ]
    assert len(cells) == 3
    assert all(cell["dispatches"] == [] and cell["unchanged"] == 2 for cell in cells)
    assert all(
        cell["waterfall"].keys() <= {"container", "host", "packaging"} for cell in cells
    )


def test_a_constant_changed_in_the_model(lab: Lab) -> None:
    """One number: its dispatch has other code, and all that moved is the model's."""
    text = (FIXTURES / "families/constants.mlir").read_text(encoding="utf-8")
    changed = text.replace("1340891776", "1340891777", 1)
    assert changed != text
    base = lab.measure("base", {"chain": text})
    head = lab.measure("head", {"chain": changed})
    cell = only_cell(lab.report(base, head))
    assert (cell["cause"], cell["first"]) == ("input", "input") or cell[
        "waterfall"
    ] == {}
    assert causes(cell) <= {"input"} and len(cell["dispatches"]) == 1


@pytest.mark.parametrize(
    ("fixture", "members", "says"),
    [
        (
            "constants",
            6,
            (
                "i64 constant of arith.muli: 1340891776",
                "i64 constant of arith.shrsi",
                "i32 constant of arith.addi",
            ),
        ),
        (
            "operand_order",
            3,
            (
                "arguments in another order: 1 0 2",
                "operands or operations in another order",
            ),
        ),
    ],
)
def test_what_deduplication_leaves_behind(
    lab: Lab, fixture: str, members: int, says: Sequence[str]
) -> None:
    text = (FIXTURES / f"families/{fixture}.mlir").read_text(encoding="utf-8")
    snapshot = lab.measure(fixture, {fixture: text}, targets=["vmvx"])
    [cell] = cells_of(snapshot)
    family = next(
        family for family in cell.families if family.kind == fixture.replace("_", "-")
    )
    assert len(family.members) == members
    assert set(family.members) <= {dispatch.executable for dispatch in cell.dispatches}
    assert all(any(phrase in line for line in family.varying) for phrase in says), (
        family.varying
    )


def test_explain_tells_the_story_of_one_cell(lab: Lab) -> None:
    base = lab.measure("base", {"layers": LAYERS})
    head = lab.measure(
        "head", {"layers": LAYERS.replace("128x40", "128x56").replace("32x40", "32x56")}
    )
    lab.report(base, head)
    options = [
        "explain",
        str(lab.home / "out/report.json"),
        "--model",
        "lay*",
        "--target",
        "llvm-cpu-x86_64",
    ]
    printed = bot(*options).stdout
    assert printed.startswith("layers on llvm-cpu-x86_64: changed")
    assert (
        "input in head: the model itself changed; the sides first differ in input."
        in printed
    )
    assert "iree-compile -" in printed
    dispatch_text = bot(*options, "--dispatch", "*32x56x128*").stdout
    assert "matched by same structure" in dispatch_text
    assert (
        "+++ head" in dispatch_text
        and "128x40" in dispatch_text
        and "128x56" in dispatch_text
    )
