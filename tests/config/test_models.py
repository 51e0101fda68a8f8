"""Models in bot.study.prepare: files as values, and one line for a file that cannot be a model."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from bot.config.configuration import configs_dir, load_config
from bot.core.planned import Model
from bot.errors import InputError
from bot.study.prepare import load_models


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "repo" / "suite"
    folder.mkdir(parents=True)
    (folder / "bert.f32.mlir").write_bytes(b"module {}\n")
    (folder / "gpt2.mlirbc").write_bytes(b"ML\xefR\x00")
    return folder


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_models([path], None)
    return caught.value.line


def test_a_model_is_named_by_its_stem_and_known_by_its_bytes(suite: Path) -> None:
    path = suite / "bert.f32.mlir"
    assert load_models([path], suite.parent) == (
        Model("bert.f32", str(path), "suite/bert.f32.mlir", hashlib.sha256(b"module {}\n").hexdigest(), 10),
    )


def test_models_keep_their_order_and_may_be_binary(suite: Path) -> None:
    models = load_models([suite / "gpt2.mlirbc", suite / "bert.f32.mlir"], None)
    assert [(model.name, model.size_bytes) for model in models] == [("gpt2", 5), ("bert.f32", 10)]


@pytest.mark.parametrize(
    ("top", "shown"),
    [
        (".", "repo/suite/bert.f32.mlir"),
        ("repo", "suite/bert.f32.mlir"),
        ("repo/suite", "bert.f32.mlir"),
        ("elsewhere", "suite/bert.f32.mlir"),
        (None, "suite/bert.f32.mlir"),
    ],
)
def test_the_printed_path_is_relative_to_the_repository_or_the_folder(suite: Path, top: str | None, shown: str) -> None:
    (model,) = load_models([suite / "bert.f32.mlir"], suite.parent.parent / top if top else None)
    assert model.shown == shown


def test_neither_the_folder_nor_a_link_to_it_changes_what_a_model_is(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(suite)
    (direct,) = load_models([suite / "bert.f32.mlir"], suite.parent)
    (linked,) = load_models([tmp_path / "link" / ".." / "suite" / "bert.f32.mlir"], tmp_path / "link" / "..")
    assert linked == direct


def test_a_relative_path_is_found_again_from_anywhere(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite)
    (model,) = load_models([Path("bert.f32.mlir")], None)
    assert model.path == str(suite / "bert.f32.mlir")
    assert model.shown == "suite/bert.f32.mlir"


@pytest.mark.parametrize("data", [b"", b" \n\t\n"])
def test_an_empty_model_is_refused(suite: Path, data: bytes) -> None:
    (suite / "void.mlir").write_bytes(data)
    assert refusal(suite / "void.mlir") == f"{suite}/void.mlir: is empty (a model holds at least one function)"


def test_a_missing_model_is_refused(suite: Path) -> None:
    expected = "cannot be read: No such file or directory (check `models` of the configuration)"
    assert refusal(suite / "none.mlir") == f"{suite}/none.mlir: {expected}"


def test_a_directory_is_no_model(suite: Path) -> None:
    assert "cannot be read: Is a directory" in refusal(suite)


def test_a_name_that_no_snapshot_could_hold_is_refused(suite: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(suite) + b"/caf\xe9.mlir"))
    path.write_bytes(b"module {}")
    line = refusal(path)
    assert "has a name that is not UTF-8" in line
    assert line.encode()


def test_the_packaged_suite_can_be_read_whole() -> None:
    config = load_config()
    models = load_models(config.models, configs_dir().parent)
    assert len({model.name for model in models}) == len(models) >= 12
    assert len({model.digest for model in models}) == len(models)
    assert all(model.shown == f"configs/models/{Path(model.path).name}" for model in models)
