"""The IR of a baseline on its way: from the job that measures to the store, and from the store to a pull request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from action_stage import MODEL, Stage
from msgspec.structs import replace

from bot.core.ladder import Rung
from bot.core.stored_ir import PhaseText, StoredDispatch
from bot.store.entries import compressed, decompressed, ir_path_of, path_of
from bot.store.ir_files import digest_of_ir, packed_ir, stored_ir_of

LONGER = {"models/a.mlir": MODEL.format("a") + "// longer\n"}
UNPACKED = 1 << 20


def ir_of(compiler: str) -> bytes:
    text = PhaseText("module {}", '"builtin.module"')
    dispatch = StoredDispatch(
        model="a",
        target="vmvx",
        name="main_dispatch_0",
        code="a" * 16,
        source=text,
        configured=text,
        translated=text,
        end=Rung(100),
    )
    return packed_ir(compiler, [dispatch])


def with_ir(stage: Stage) -> bytes:
    """Store the only baseline anew, with IR; return the file."""
    (stored,) = stage.store.entries()
    snapshot = stage.store.load(stored)
    ir = ir_of(snapshot.compiler.digest)
    (stage.home / "store" / path_of(stored)).unlink()
    stage.store.save(stored, replace(snapshot, stored_ir=digest_of_ir(ir)), ir)
    return ir


def test_a_pull_request_reads_the_ir_and_says_what_was_not_possible(
    stage: Stage,
) -> None:
    stage.push(stage.main())
    with_ir(stage)
    ran = stage.pull(*stage.open_pull(LONGER))
    assert ran.code == 0, ran.error
    assert ran.report.base.stored_ir
    assert "stored IR is not used" not in ran.said


@pytest.mark.parametrize("damage", ["torn", "gone", "foreign", "version", "compiler"])
def test_ir_that_is_not_the_base_s_is_not_used_and_a_note_says_so(
    stage: Stage, damage: str
) -> None:
    stage.push(stage.main())
    ir = with_ir(stage)
    (stored,) = stage.store.entries()
    path = stage.home / "store" / ir_path_of(stored)
    if damage == "torn":
        path.write_bytes(ir[:-8])
    elif damage == "gone":
        path.unlink()
    elif damage == "foreign":
        path.write_bytes(ir_of("d" * 64))
    else:
        snapshot = stage.store.load(stored)
        text = decompressed(ir, "x", UNPACKED).decode()
        if damage == "version":
            text = text.replace("code-size-stored-ir/1", "code-size-stored-ir/2")
        else:
            text = text.replace(snapshot.compiler.digest, "d" * 64)
        handed_ir = compressed(text.encode())
        (stage.home / "store" / path_of(stored)).unlink()
        stage.store.save(
            stored, replace(snapshot, stored_ir=digest_of_ir(handed_ir)), handed_ir
        )
    reason = {
        "torn": "is not the IR that the snapshot names",
        "gone": "cannot be read",
        "foreign": "is not the IR that the snapshot names",
        "version": "code-size-stored-ir/2",
        "compiler": "is of another compiler than the snapshot",
    }[damage]
    ran = stage.pull(*stage.open_pull(LONGER))
    assert ran.code == 0, ran.error
    (note,) = (note for note in ran.report.notes if "stored IR" in note)
    assert note.startswith("the base's stored IR is not used: ")
    assert reason in note
    assert ran.states == {"a on vmvx": "changed"}


def handed(stage: Stage) -> Path:
    return stage.home / f"run-{stage.runs}" / "out"


def pin(stage: Stage, ir: bytes) -> None:
    """Let the snapshot of the job that measured name this IR."""
    path = handed(stage) / "head.json"
    row = json.loads(path.read_text())
    row["stored_ir"] = digest_of_ir(ir)
    path.write_text(json.dumps(row))


@pytest.mark.parametrize("file", ["missing", "other", "link", "large"])
def test_the_job_that_stores_refuses_ir_that_the_snapshot_does_not_name(
    stage: Stage, file: str
) -> None:
    ir = ir_of("c" * 64)

    def meanwhile() -> None:
        pin(stage, bytes(1 << 20) if file == "large" else ir)
        path = handed(stage) / "ir.xz"
        if file == "other":
            path.write_bytes(ir + b"more")
        elif file == "link":
            path.symlink_to("head.json")
        elif file == "large":
            path.write_bytes(bytes(1 << 20))

    stage.after_measuring = meanwhile
    ran = stage.push(stage.main())
    reason = {
        "missing": "is missing",
        "other": "is not the IR that the snapshot names",
        "link": "is not a plain file",
        "large": "has more than 512 KiB",
    }[file]
    assert ran.code == 2
    assert "artifact ir.xz" in ran.error and reason in ran.error
    assert stage.store.entries() == []


def test_ir_is_stored_with_its_snapshot_and_again_with_a_commit_that_takes_a_change_back(
    stage: Stage,
) -> None:
    written = list[bytes]()

    def meanwhile() -> None:
        path = handed(stage) / "head.json"
        compiler = json.loads(path.read_text())["compiler"]["digest"]
        written.append(ir_of(compiler))
        (handed(stage) / "ir.xz").write_bytes(written[-1])
        pin(stage, written[-1])

    stage.after_measuring = meanwhile
    assert stage.push(stage.main()).code == 0
    stage.after_measuring = lambda: None
    assert stage.push(stage.origin.push_main("Longer", LONGER)).code == 0
    back = stage.origin.push_main("Back", {"models/a.mlir": MODEL.format("a")})
    assert stage.push(back).code == 0
    (last,) = (entry for entry in stage.store.entries() if entry.sha == back)
    assert stage.store.load_ir(last) == written[0]
    assert stored_ir_of(stage.store, last, stage.store.load(last)) is not None
