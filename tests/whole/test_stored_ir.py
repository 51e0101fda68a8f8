"""Proofs without base's compiler: a push stores its IR, its wheel is deleted, and a pull request proves causes."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from fake_github import FakeGitHub
from github_runner import Origin, Run, Runner, git, pull_event, push_event
from ladder_models import POINTWISE
from msgspec.structs import replace
from product_model import PRODUCT
from real_compilers import binary, bot, offered

from bot.core.ladder import NO_BASE_COMPILER, Ladder, attribution
from bot.core.proof import PROVED
from bot.core.snapshot import CellKey, Snapshot
from bot.core.snapshot_json import from_json
from bot.store.entries import MOST_IR_BYTES
from bot.store.ir_files import digest_of_ir
from bot.system.defaults import default_cache

pytestmark = [pytest.mark.compiler, pytest.mark.slow]

BASE = "3.11.0"
HEAD = "3.13.0"
BRANCH = "code-size-data"
X86 = "llvm-cpu-x86_64"
AARCH64 = "llvm-cpu-aarch64"
MODELS = {"models/product.mlir": PRODUCT, "models/pointwise.mlir": POINTWISE}


def configuration(release: str) -> str:
    keys = {
        "schema": "code-size-config/1",
        "compiler": {"head": release},
        "models": ["models/*.mlir"],
        "targets": [X86, AARCH64],
    }
    return yaml.safe_dump(keys, sort_keys=False)


@dataclass
class Stage:
    """A repository whose compilers can be deleted, from the index and from the cache."""

    home: Path
    hub: FakeGitHub
    origin: Origin
    runner: Runner

    def offer(self, release: str) -> None:
        """Leave this release alone: the index and the cache have no other one."""
        home = self.home / f"only-{release}"
        toolchains = home / "toolchains"
        toolchains.mkdir(parents=True)
        name = binary(release).relative_to(default_cache() / "toolchains").parts[0]
        (toolchains / name).symlink_to(default_cache() / "toolchains" / name)
        self.runner.cache = home
        self.runner.environment = offered(home / "wheels", release)

    def pushed(self, release: str) -> Run:
        """Push main with this release, and store its baseline."""
        files = {"code-size.yml": configuration(release), **MODELS}
        sha = self.origin.push_main(f"With {release}", files)
        writer = self.hub.token(permissions={"contents": "write"})
        ran = self.runner.run(
            "push",
            push_event(sha),
            sha=sha,
            ref="refs/heads/main",
            token=writer,
            run_id=1,
        )
        assert ran.code == 0, ran.log
        return ran

    def proposed(self, release: str, number: int = 1) -> tuple[Run, Run]:
        """Open a pull request with this release; return the runs that measured and reported it."""
        files: dict[str, str | None] = {"code-size.yml": configuration(release)}
        head, merge = self.origin.push_pull(number, files)
        base = git(self.origin.bare, "rev-parse", "main")
        self.hub.add_pull(number, head, merge_sha=merge, base_sha=base)
        payload = pull_event(number, head, "octo/repo")
        place = {"sha": merge, "ref": f"refs/pull/{number}/merge"}
        measured = self.runner.job(
            "pull_request",
            payload,
            **place,
            run_id=2,
            command="measure",
            out="code-size-measured",
        )
        reported = self.runner.job(
            "pull_request",
            payload,
            **place,
            run_id=2,
            token=self.hub.token(),
            command="report",
            measured=str(measured.report),
        )
        return measured, reported

    def stored_files(self) -> dict[str, bytes]:
        """Name → content of each file of the data branch."""
        names = git(self.origin.bare, "ls-tree", "-r", "--name-only", BRANCH)
        clone = self.home / "data"
        if not clone.exists():
            uri = self.origin.bare.as_uri()
            git(self.home, "clone", "-q", "-b", BRANCH, uri, str(clone))
        return {name: (clone / name).read_bytes() for name in names.splitlines()}


def ladders_of(snapshot: Snapshot) -> dict[tuple[CellKey, str], Ladder]:
    return {
        (cell.key, name): ladder
        for cell in snapshot.cells
        for name, ladder in cell.ladders.items()
    }


def with_both_compilers(home: Path) -> dict[tuple[CellKey, str], Ladder]:
    """Return the ladders of the same comparison where both compilers are there."""
    home.mkdir()
    for name, text in MODELS.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    (home / "code-size.yml").write_text(configuration(HEAD))
    bot("compare", "--base", BASE, "--head", HEAD, "--out", "out", cwd=home)
    return ladders_of(from_json((home / "out" / "head.json").read_text()))


def test_a_stored_baseline_proves_what_both_compilers_prove(tmp_path: Path) -> None:
    with FakeGitHub("octo/repo") as hub:
        hub.add_user("alice", permission="write")
        origin = Origin.create(tmp_path)
        stage = Stage(tmp_path, hub, origin, Runner(tmp_path, hub, origin, tmp_path))
        stage.offer(BASE)
        stage.pushed(BASE)
        stage.offer(HEAD)
        measured, reported = stage.proposed(HEAD)
        assert measured.code == 0, measured.log
        assert reported.code in (0, 1), reported.log
        files = stage.stored_files()
        (comment,) = hub.comments(1)
    (ir,) = (data for name, data in files.items() if name.endswith(".ir.xz"))
    assert len(ir) < MOST_IR_BYTES
    assert lzma.decompress(ir).startswith(b'{"compiler":"')
    base = from_json((measured.report / "base.json").read_text())
    assert base.compiler.version.startswith("3.11")
    assert base.stored_ir == digest_of_ir(ir)

    ladders = ladders_of(from_json((reported.report / "head.json").read_text()))
    expected = with_both_compilers(tmp_path / "both")
    one_order = {
        place: replace(ladder, back=None, back_why=NO_BASE_COMPILER)
        for place, ladder in expected.items()
    }
    assert ladders == one_order
    assert all(ladder.is_whole for ladder in ladders.values())
    phases = {
        phase
        for ladder in ladders.values()
        for phase, part in attribution(ladder).items()
        if part
    }
    assert phases >= {"configuration", "code_generator"}
    knobs = [ladder.knobs for ladder in ladders.values() if ladder.knobs is not None]
    proved = [proof for proof in knobs if proof.status == PROVED]
    assert ("vector_common_parallel",) in [proof.knobs for proof in proved]
    assert "the base compiler is not available" in str(comment["body"])
