"""bot.compiler.cell_cache: what a key depends on, and that nothing damaged is ever taken for a measurement."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fake_compiler import ARM, X86, cells_of
from places import ROOT
from replacing import replace

from bot.compiler import cell_cache as cache_module
from bot.compiler import importing, measuring_code
from bot.compiler.bindings import IR_WORKER
from bot.compiler.cell_cache import (
    CellCache,
    TextStore,
    cell_key,
    digest_of,
)
from bot.compiler.measuring_code import (
    measured_by,
    remember_digest_in,
    tree_digest,
)
from bot.core import this_machine as lasting
from bot.core.json_text import canonical
from bot.core.snapshot import Cell, Dispatch, Failure
from bot.core.this_machine import here

KEY = digest_of("a key")
CELL = Cell(
    "bert",
    "rocm",
    "ok",
    metrics={"artifact_bytes": 4321, "stack_max_bytes": None},
    dispatches=(
        Dispatch(
            "main_dispatch_0",
            "main_dispatch_0_matmul",
            "matmul",
            sites=3,
            code_bytes=100,
        ),
    ),
    command="iree-compile - -o bert.vmfb < models/bert.mlir",
    artifact_digest="cd" * 32,
    reasons={"stack_max_bytes": "größe unbekannt"},
)


def failed(stage: str, signal: str | None = None) -> Cell:
    status = "timeout" if stage == "timeout" else "failed"
    return Cell("bert", "rocm", status, failure=Failure(stage, "error: no", 1, signal))


ROW: dict[str, Any] = json.loads(canonical(CELL))


def entry(root: Path) -> Path:
    """The one file of a cache."""
    [path] = [path for path in root.rglob("*") if path.is_file()]
    return path


def stored(root: Path, cell: Cell = CELL) -> Path:
    CellCache(root).store(KEY, cell)
    return entry(root)


def forge(path: Path, plain: Any) -> None:
    """Write an entry with a right checksum."""
    body = canonical({"programs": {}, **plain})
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


# Keys


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    parts = [("ab", "c"), ("a", "bc"), ("abc",), (["ab", "c"],), ("ab", ["c"])]
    assert len({digest_of(*part) for part in parts}) == len(parts)


def test_a_key_is_what_a_measurement_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [cell] = cells_of(tmp_path, ["m"], [X86], ["--y", "--z"])
    key = cell_key("digest", cell)
    renamed = replace(
        cell,
        model=replace(
            cell.model, name="n", path="/elsewhere", shown="n.mlir", size_bytes=1
        ),
    )
    assert cell_key("digest", replace(renamed, target=replace(X86, name="cpu"))) == key
    other_keys = [
        cell_key("other digest", cell),
        cell_key("digest", replace(cell, model=replace(cell.model, digest="0" * 64))),
        cell_key("digest", replace(cell, target=ARM)),
        cell_key("digest", replace(cell, user_flags=(*cell.user_flags, "--x"))),
        cell_key("digest", replace(cell, user_flags=cell.user_flags[::-1])),
    ]
    monkeypatch.setattr(cache_module, "measured_by", lambda: "other code")
    other_keys.append(cell_key("digest", cell))
    assert len({key, *other_keys}) == 7


def test_a_cell_is_measured_anew_by_other_code(tmp_path: Path) -> None:
    """A copy of the program differs in one line of a reader, or of the metrics.

    A comment and a docstring change nothing.
    """
    shutil.copytree(
        ROOT / "bot", tmp_path / "bot", ignore=shutil.ignore_patterns("__pycache__")
    )
    command = [
        sys.executable,
        "-c",
        "from bot.compiler.measuring_code import measured_by; print(measured_by())",
    ]
    digests = []
    for name, line in (
        ("readers/assemble", ""),
        ("readers/assemble", "\n# A comment.\n"),
        ("readers/assemble", '\nOTHER = 1\n"""A text below a name."""\n'),
        (
            "readers/assemble",
            '\ndef other() -> int:\n    """Return 1."""\n    return 1\n',
        ),
        ("core/metrics", "\nOTHER = 1\n"),
    ):
        with (tmp_path / f"bot/{name}.py").open("a", encoding="utf-8") as file:
            file.write(line)
        digests.append(
            subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, check=True
            ).stdout.strip()
        )
    plain, commented, named, defined, of_metrics = digests
    assert plain == commented == measured_by()
    assert len({plain, named, defined, of_metrics}) == 4


def test_what_a_file_says_is_its_code_without_comments_docstrings_and_layout() -> None:
    plain = {"a.py": b"def f(x):\n    return [x, 'text']\n"}
    documented = {
        "a.py": b'"""A."""\n\n\ndef f(x):  # why\n    """F."""\n    return [\n        x,\n        "text",\n    ]\n'
    }
    assert tree_digest(plain) == tree_digest(documented)
    changed_sources = [
        {"b.py": plain["a.py"]},
        {"a.py": b"def f(x):\n    return [x, b'text']\n"},
        {"a.py": b"def f(x):\n    return [x, 'other']\n"},
        {"a.py": b"def f(x):\n    return (x, 'text')\n"},
        {"a.py": b"def f(y):\n    return [y, 'text']\n"},
        {"a.py": b"def f(x):\n    return [x], 'text'\n"},
        {"a.py": b"def f(x):\n    return [[x, 'text']]\n"},
        {"a.py": b"def f(x):\n    return [x, 1]\n"},
        {"a.py": b"def f(x):\n    return [x, True]\n"},
        {"a.py": b"def f(x):\n    return [x, 1.0]\n"},
    ]
    assert len({tree_digest(plain), *map(tree_digest, changed_sources)}) == 11


def test_a_cache_remembers_the_digest_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured_by.cache_clear()
    monkeypatch.setattr(measuring_code, "_caches", [])
    remember_digest_in(tmp_path)
    digest = measured_by()
    [entry] = (tmp_path / "digests").iterdir()
    assert entry.read_text() == digest
    for text, expected in (("0" * 64, "0" * 64), ("torn", digest)):
        entry.write_text(text)
        measured_by.cache_clear()
        assert measured_by() == expected
    measured_by.cache_clear()


# Round trips


def test_an_entry_is_replaced(tmp_path: Path) -> None:
    stored(tmp_path, failed("compile"))
    stored(tmp_path)
    assert CellCache(tmp_path).load(KEY) == CELL


def test_the_moments_fault_and_what_is_true_of_this_machine_alone_are_not_kept(
    tmp_path: Path,
) -> None:
    reason = here("the IR reader ended without an answer")
    for cell in (
        failed("timeout"),
        failed("compile", "SIGSEGV"),
        failed("compile", "SIGKILL"),
        replace(
            failed("import"),
            failure=Failure("import", here("needs the onnx package"), 1),
        ),
        replace(
            failed("import"),
            failure=Failure("import", f"cannot import ONNX: {here('no bindings')}"),
        ),
        replace(CELL, reasons={"linalg_ops": f"IR worker: {reason}"}),
        replace(CELL, reasons={**CELL.reasons, "strategies": reason}),
    ):
        CellCache(tmp_path).store(KEY, cell)
        assert list(tmp_path.rglob("*")) == [], cell
    CellCache(tmp_path, keeps=False).store(KEY, CELL)  # a cache that is only read
    TextStore(tmp_path, keeps=False).keep("t" * 16, "text")
    assert list(tmp_path.rglob("*")) == []
    assert f'HERE = "{lasting.HERE}"  # ' in IR_WORKER.read_text(), (
        "the script beside the bot uses the same words"
    )


def test_a_key_has_what_imports_the_model_and_the_processor_where_code_is_for_it(
    tmp_path: Path,
) -> None:
    [mlir] = cells_of(tmp_path, ["m"], [X86])
    onnx = replace(mlir, model=replace(mlir.model, path="m.onnx"))
    [host] = cells_of(tmp_path, ["m"], [X86], ["--iree-llvmcpu-target-cpu=host"])

    def keys() -> list[str]:
        importing.importer_version.cache_clear()
        return [cell_key("digest", cell) for cell in (mlir, onnx, host)]

    usual = keys()
    with patch("bot.compiler.importing.version", lambda _: "0.0.1"):
        assert [old == new for old, new in zip(usual, keys(), strict=True)] == [
            True,
            False,
            True,
        ]
    with patch("platform.machine", lambda: "another"):
        assert [old == new for old, new in zip(usual, keys(), strict=True)] == [
            True,
            True,
            False,
        ]
    importing.importer_version.cache_clear()


def test_a_key_has_the_options_of_the_import_also_without_the_package(
    tmp_path: Path,
) -> None:
    def missing(_: str) -> str:
        raise PackageNotFoundError

    [mlir] = cells_of(tmp_path, ["m"], [X86])
    onnx = replace(mlir, model=replace(mlir.model, path="m.onnx"))
    flags = ("--opset-version=17",)
    other = replace(onnx, model=replace(onnx.model, import_flags=flags))
    importing.importer_version.cache_clear()
    with patch("bot.compiler.importing.version", missing):
        assert cell_key("digest", onnx) != cell_key("digest", other)
    importing.importer_version.cache_clear()


def test_what_another_python_imports_is_not_cached(tmp_path: Path) -> None:
    [mlir] = cells_of(tmp_path, ["m"], [X86])
    onnx = replace(mlir, model=replace(mlir.model, path="m.onnx"))
    own = importing.with_known_importer((mlir, onnx), sys.executable)
    foreign = importing.with_known_importer((mlir, onnx), "/opt/python3.10")
    assert own == (mlir, onnx)
    assert foreign[0] == mlir
    assert foreign[1].unlisted == "/opt/python3.10 has an onnx package of its own"
    assert cell_key("digest", foreign[1]) == ""


# What cannot be trusted is absent


def test_torn_entries_foreign_ones_with_a_right_checksum_and_one_under_another_name(
    tmp_path: Path,
) -> None:
    path = stored(tmp_path)
    other_key = digest_of("another key")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert CellCache(tmp_path).load(KEY) is None
    for plain in (
        {"key": other_key, "cell": ROW},
        {"cell": ROW},
        {"key": KEY},
        {"key": KEY, "cell": []},
        {"key": KEY, "cell": None},
        {"key": KEY, "cell": {**ROW, "status": "splendid"}},
        {"key": KEY, "cell": {**ROW, "metrics": {"artifact_bytes": "12"}}},
        {"key": KEY, "cell": {**ROW, "metrics": {"artifact_bytes": True}}},
        {"key": KEY, "cell": {**ROW, "metrics": {"no_such_metric": 1}}},
        {"key": KEY, "cell": {**ROW, "new_field": 1}},
        {"key": KEY, "cell": {k: v for k, v in ROW.items() if k != "model"}},
    ):
        forge(path, plain)
        assert CellCache(tmp_path).load(KEY) is None, plain
    forge(path, {"key": KEY, "cell": ROW})
    assert CellCache(tmp_path).load(KEY) == CELL
    place = (
        tmp_path
        / path.relative_to(tmp_path).parts[0]
        / other_key[:2]
        / f"{other_key}.json"
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    path.rename(place)
    assert CellCache(tmp_path).load(other_key) is None
