"""Cells of suites: exactly the module's flags, models fetched once, and what cannot be had as a row with its reason."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model
from https_site import Page, Site, serving
from torch_models import configuration, module

from bot.cli.main import main
from bot.core.delta import diff
from bot.core.planned import COMMON_FLAGS
from bot.core.policy import lasts
from bot.core.sharding import unmeasured_models
from bot.core.snapshot import Cell, CellKey, Snapshot, from_json

FLAGS = ("--iree-hal-target-backends=vmvx", "--iree-opt-level=O2")
Measured = Callable[..., tuple[int, Snapshot, str]]
FIRST = CellKey("a-one", "suite-vmvx")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with serving(tmp_path, monkeypatch) as site:
        yield site


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path, "alpha")
    configuration(tmp_path)
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    install_native(tmp_path / "bin" / "iree-compile", fake)
    return tmp_path


@pytest.fixture
def measured(home: Path, capsys: pytest.CaptureFixture[str]) -> Measured:
    """Exit code, snapshot and standard error of one run."""

    def run(*arguments: str, out: str = "main.json") -> tuple[int, Snapshot, str]:
        argv = ["--compiler", "bin/iree-compile", "--config", "code-size.yml", "--cache", "cache", "--out", out]
        code = main(["measure", *argv, *arguments])
        text = (home / out).read_text(encoding="utf-8") if (home / out).exists() else ""
        return code, from_json(text), capsys.readouterr().err

    return run


def text(home: Path) -> bytes:
    return (home / "alpha.mlir").read_bytes()


def modules(home: Path, **mlir: str) -> None:
    for name, address in mlir.items():
        module(home / "suite", f"a/modules/{name}", address, FLAGS)


def cell(snapshot: Snapshot, model: str = "a-one") -> Cell:
    return next(cell for cell in snapshot.cells if cell.key.model == model)


def test_the_flags_are_the_modules_and_no_others(home: Path, site: Site, measured: Measured) -> None:
    url = site.put("/m.mlir?a=1&b=2", Page(text(home)))
    modules(home, one=url, two="../alpha.mlir")
    code, snapshot, _ = measured()
    assert code == 0 and [one.key for one in snapshot.cells] == [FIRST, CellKey("a-two", "suite-vmvx")]
    flags = " ".join(FLAGS)
    assert cell(snapshot).command == f"curl -fsSL {shlex.quote(url)} | iree-compile - {flags} -o a-one.vmfb"
    assert cell(snapshot, "a-two").command == f"iree-compile - {flags} -o a-two.vmfb < {home.name}/alpha.mlir"
    assert cell(snapshot).artifact_digest == cell(snapshot, "a-two").artifact_digest
    assert snapshot.models == dict.fromkeys(("a-one", "a-two"), hashlib.sha256(text(home)).hexdigest())
    assert snapshot.only == dict.fromkeys(("a-one", "a-two"), "suite-vmvx") and snapshot.flags == ()


def test_flags_of_the_configuration_are_for_its_own_cells_and_those_of_a_run_for_all(
    home: Path, measured: Measured
) -> None:
    modules(home, one="../alpha.mlir")
    configuration(home, more="models: [alpha.mlir]\ntargets: [rocm]\nflags: [--iree-opt-level=O1]\n")
    _, snapshot, _ = measured("--flags=--iree-opt-data-tiling")
    assert [one.key for one in snapshot.cells] == [FIRST, CellKey("alpha", "rocm")]
    assert f"{' '.join(FLAGS)} --iree-opt-data-tiling -o" in cell(snapshot).command
    assert " ".join((*COMMON_FLAGS, "--iree-hal-target-backends=rocm")) in cell(snapshot, "alpha").command
    assert "--iree-opt-level=O1 --iree-opt-data-tiling -o" in cell(snapshot, "alpha").command
    assert snapshot.flags == ("--iree-opt-data-tiling",)
    assert snapshot.planned == {FIRST, CellKey("alpha", "rocm")}


def test_a_model_is_fetched_once(home: Path, site: Site, measured: Measured) -> None:
    url = site.put("/m.mlir", Page(text(home)))
    modules(home, one=url, two=url)
    assert "fetching the model of a-one: " in measured()[2]
    assert "fetching" not in measured("--flags=--x=1")[2]
    assert site.asked == {"/m.mlir": 1}


def test_one_that_was_changed_in_the_cache_is_fetched_again(home: Path, site: Site, measured: Measured) -> None:
    modules(home, one=site.put("/m.mlir", Page(text(home))))
    measured()
    (kept,) = (home / "cache/models").glob("*.mlir")
    kept.write_bytes(b"something else")
    assert cell(measured()[1]).status == "ok" and site.asked["/m.mlir"] == 2


def test_a_digest_that_is_expected_is_held(home: Path, site: Site, measured: Measured) -> None:
    modules(home, one=site.put("/m.mlir", Page(b"an older one"), Page(text(home))))
    right = hashlib.sha256(text(home)).hexdigest()
    entry = "{torch_models: suite, sha256: {a/modules/one: '%s'}}"
    configuration(home, entry % right)
    code, snapshot, _ = measured()
    older = hashlib.sha256(b"an older one").hexdigest()
    assert code == 5 and not snapshot.models and not list((home / "cache/models").iterdir())
    assert (failure := cell(snapshot).failure) is not None
    assert f"has the SHA-256 {older}, and {right} is expected" in failure.message
    assert cell(measured()[1]).status == "ok"
    configuration(home, entry % older)
    assert cell(measured()[1]).status == "failed", "what the cache has is not what is expected any more"


BROKEN = {
    "missing": (Page(status=404), "the server answers 404"),
    "cut": (Page(b"func", missing_bytes=9), "broke off before its end"),
    "empty": (Page(b""), "is empty"),
    "large": (Page(b"x" * 3000), "has 3,000 bytes, and 2,048 are allowed"),
    "inside": (
        Page(status=301, headers={"Location": "https://169.254.169.254/"}),
        "169.254.169.254 is no public address",
    ),
    "plain": (Page(status=301, headers={"Location": "http://localhost/"}), "which is no https address"),
}


def test_what_cannot_be_had_is_a_row_and_the_others_go_on(home: Path, site: Site, measured: Measured) -> None:
    addresses = {name: site.put(f"/{name}.mlir", page) for name, (page, _) in BROKEN.items()}
    modules(home, **addresses, here="../alpha.mlir")
    configuration(home, "{torch_models: suite, max_size: 2KiB}")
    code, snapshot, err = measured()
    assert code == 0 and cell(snapshot, "a-here").status == "ok"
    for name, (_, said) in BROKEN.items():
        row = cell(snapshot, f"a-{name}")
        assert row.status == "failed" and row.failure is not None and row.failure.stage == "fetch"
        assert said in row.failure.message and "\n" not in row.failure.message and not lasts(row)
        assert f"failed: a-{name} on suite-vmvx: not fetched: " in err
    assert list(snapshot.models) == ["a-here"] and len(snapshot.only) == len(BROKEN) + 1


def test_a_model_that_could_not_be_fetched_says_nothing_of_the_compiler(
    home: Path, site: Site, measured: Measured
) -> None:
    modules(home, one=site.put("/m.mlir", Page(status=404), Page(text(home))), two="../alpha.mlir")
    _, without, _ = measured()
    _, whole, _ = measured(out="whole.json")
    for sides in ((whole, without), (without, whole)):
        (delta,) = (delta for delta in diff(*sides) if delta.key == FIRST)
        assert delta.state == "unmeasured" and "the server answers 404" in delta.reason
        assert not unmeasured_models(*sides)
    assert {delta.state for delta in diff(whole, whole)} == {"same"}
    assert {delta.key for delta in diff(whole, whole)} == whole.planned


def test_shards_fetch_what_is_theirs(home: Path, site: Site, measured: Measured) -> None:
    for name in ("one", "two", "three"):
        modules(home, **{name: site.put(f"/{name}.mlir", Page(text(home) + f"// {name}".encode()))})
    configuration(home, more="models: [alpha.mlir]\ntargets: [rocm]\n")
    parts = [measured("--shard", f"{number}/2", out=f"{number}.json") for number in (1, 2)]
    assert sorted(len(snapshot.cells) for _, snapshot, _ in parts) == [2, 2]
    assert set(site.asked.values()) == {1}
    assert main(["merge", "1.json", "2.json", "--out", "all.json"]) == 0
    merged = from_json((home / "all.json").read_text(encoding="utf-8"))
    code, whole, _ = measured(out="whole.json")
    assert code == 0 and merged.only == whole.only and merged.models == whole.models and merged.flags == whole.flags
    assert [one.artifact_digest for one in merged.cells] == [one.artifact_digest for one in whole.cells]


def test_selectors_and_lists_know_suites(
    home: Path, site: Site, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    modules(home, one=f"{site.url}/m.mlir", two="../alpha.mlir")
    configuration(home, more="models: [alpha.mlir]\n")
    assert [one.key for one in measured("--model", "a-two")[1].cells] == [CellKey("a-two", "suite-vmvx")]
    assert list(measured("--target", "suite-vmvx", "--model", "*two")[1].targets) == ["suite-vmvx"]
    assert main(["models", "--config", "code-size.yml", "--format", "json"]) == 0
    told = {model["name"]: model for model in json.loads(capsys.readouterr().out)["models"]}
    assert told["a-one"] == {"name": "a-one", "file": f"{site.url}/m.mlir", "size_bytes": None, "cells": 1}
    assert main(["targets", "--config", "code-size.yml", "--target", "suite-*"]) == 0
    assert "suite-vmvx       2" in capsys.readouterr().out
    assert not site.asked, "only what is measured is fetched"


def test_a_snapshot_without_suites_is_what_it_always_was(home: Path, measured: Measured) -> None:
    (home / "code-size.yml").write_text("schema: code-size-config/1\nmodels: [alpha.mlir]\ntargets: [rocm]\n")
    measured()
    assert "only" not in json.loads((home / "main.json").read_text(encoding="utf-8"))
