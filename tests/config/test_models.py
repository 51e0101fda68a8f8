"""Models in bot.study.model_files: files as values, and one line for a file that cannot be a model."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from bot.config.configuration import configs_dir, load_config
from bot.core.planned import Model
from bot.errors import InputError
from bot.study.model_files import load_models


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "repo" / "suite"
    folder.mkdir(parents=True)
    (folder / "bert.f32.mlir").write_bytes(b"module {}\n")
    (folder / "gpt2.mlirbc").write_bytes(b"ML\xefR\x00")
    return folder


def test_a_model_is_named_by_its_stem_and_known_by_its_bytes(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = suite / "bert.f32.mlir"
    digest = hashlib.sha256(b"module {}\n").hexdigest()
    expected = Model(
        name="bert.f32",
        path=str(path),
        shown="suite/bert.f32.mlir",
        digest=digest,
        size_bytes=10,
    )
    assert load_models([path], suite.parent) == (expected,)
    models = load_models([suite / "gpt2.mlirbc", path], None)
    assert [(model.name, model.size_bytes) for model in models] == [
        ("gpt2", 5),
        ("bert.f32", 10),
    ]
    monkeypatch.chdir(suite)
    assert load_models([Path("bert.f32.mlir")], None) == (expected,), (
        "a relative path is found again from anywhere"
    )


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (".", "repo/suite/bert.f32.mlir"),
        ("repo", "suite/bert.f32.mlir"),
        ("repo/suite", "bert.f32.mlir"),
        ("elsewhere", "suite/bert.f32.mlir"),
        (None, "suite/bert.f32.mlir"),
    ],
)
def test_the_printed_path_is_relative_to_the_repository_or_the_folder(
    suite: Path, top: str | None, expected: str
) -> None:
    (model,) = load_models(
        [suite / "bert.f32.mlir"], suite.parent.parent / top if top else None
    )
    assert model.shown == expected


def test_neither_the_folder_nor_a_link_to_it_changes_what_a_model_is(
    suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(suite)
    (direct,) = load_models([suite / "bert.f32.mlir"], suite.parent)
    (linked,) = load_models(
        [tmp_path / "link" / ".." / "suite" / "bert.f32.mlir"], tmp_path / "link" / ".."
    )
    assert linked == direct


def test_what_cannot_be_a_model_is_refused_in_one_line(suite: Path) -> None:
    def refusal(path: Path) -> str:
        with pytest.raises(InputError) as caught:
            load_models([path], None)
        return caught.value.line

    for data in (b"", b" \n\t\n"):
        (suite / "void.mlir").write_bytes(data)
        assert (
            refusal(suite / "void.mlir")
            == f"{suite}/void.mlir: is empty (a model holds at least one function)"
        )
    gone = (
        "cannot be read: No such file or directory (check `models` of the"
        " configuration)"
    )
    assert refusal(suite / "none.mlir") == f"{suite}/none.mlir: {gone}"
    assert "cannot be read: Is a directory" in refusal(suite)
    path = Path(os.fsdecode(os.fsencode(suite) + b"/caf\xe9.mlir"))
    path.write_bytes(b"module {}")
    assert "has a name that is not UTF-8" in refusal(path) and refusal(path).encode()


def test_the_packaged_suite_can_be_read_whole() -> None:
    config = load_config()
    models = load_models(config.models, configs_dir().parent)
    assert len({model.name for model in models}) == len(models) >= 12
    assert len({model.digest for model in models}) == len(models)
    assert all(
        model.shown == f"configs/models/{Path(model.path).name}" for model in models
    )
