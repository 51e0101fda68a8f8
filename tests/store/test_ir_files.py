"""The file with a baseline's IR: its bounds, its digest, and where stores keep it."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from github_runner import git
from hypothesis import given
from hypothesis import strategies as some
from msgspec import UNSET
from msgspec.structs import replace
from report_factory import snapshot

from bot.core.baseline import Entry, kept
from bot.core.ladder import Rung
from bot.core.snapshot import Dispatch, Snapshot
from bot.core.snapshot_json import from_json
from bot.core.stored_ir import (
    BaseIr,
    Bitcode,
    PhaseText,
    StoredDispatch,
    StoredIr,
    read_ir,
    written_ir,
)
from bot.errors import InputError
from bot.store.checkout import CheckedOut
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import (
    MOST_IR_BYTES,
    compressed,
    entry_of,
    ir_path_of,
    pack,
    unpack,
)
from bot.store.ir_files import (
    MOST_UNPACKED_IR_BYTES,
    digest_of_ir,
    ir_file_of,
    packed_ir,
    stored_ir_of,
    unpacked_ir,
)
from bot.store.retention import IR_DAYS
from bot.system.cancel import Cancel
from bot.system.git import Git

DAY = 86_400
MONDAY = 1_767_571_200
BRANCH = "code-size-data"
COMPILER = "b" * 64
CODE = "a" * 16


def dispatch(name: str = "main_dispatch_0", text: str = "module {}") -> StoredDispatch:
    phase = PhaseText(text, f'"{text}"')
    return StoredDispatch(
        model="m",
        target="t",
        name=name,
        code=CODE,
        source=phase,
        configured=phase,
        translated=PhaseText(why="not printed"),
        end=Rung(100),
        bitcode=Bitcode(Rung(101), "42c0de"),
    )


def incompressible(number: int, size_bytes: int = 80_000) -> str:
    return Random(number).randbytes(size_bytes).hex()


def side(ir: bytes, base: Snapshot | None = None) -> Snapshot:
    plain = base or snapshot("3.13.0")
    compiler = replace(plain.compiler, digest=COMPILER)
    return replace(plain, compiler=compiler, stored_ir=digest_of_ir(ir))


def entry(number: int) -> Entry:
    return Entry("default", f"{number:040x}", "c" * 64)


IR = packed_ir(COMPILER, [dispatch()])
SNAPSHOT = kept(side(IR))


def test_ir_is_found_by_the_code_that_it_is_of() -> None:
    base_ir = unpacked_ir(IR, SNAPSHOT, "x")
    row = Dispatch("e", "main_dispatch_0", code_bytes=100, code=CODE)
    stored = dispatch()
    assert base_ir.of(stored.key, row) == stored
    assert base_ir.of(stored.key, replace(row, code="b" * 16)) is None
    assert base_ir.of(stored.key, replace(row, code_bytes=99)) is None
    assert base_ir.of(stored.key, replace(row, name="main_dispatch_1")) is None
    assert base_ir.compiler == COMPILER


def test_equal_ir_gives_equal_bytes() -> None:
    again = packed_ir(COMPILER, [dispatch()])
    assert again == IR
    stored = StoredIr(COMPILER, (dispatch(), dispatch("main_dispatch_1")))
    assert read_ir(written_ir(stored), "x") == stored


def test_a_snapshot_names_its_ir_through_a_store() -> None:
    assert unpack(pack(SNAPSHOT), "x").stored_ir == digest_of_ir(IR)
    plain = replace(SNAPSHOT, stored_ir=UNSET)
    assert unpack(pack(plain), "x").stored_ir is UNSET
    text = lzma.decompress(pack(SNAPSHOT)).decode()
    with pytest.raises(InputError, match="stored_ir"):
        from_json(text.replace(digest_of_ir(IR), "short"), "x")


@pytest.mark.slow
def test_what_does_not_fit_is_left_out_and_the_largest_dispatches_stay() -> None:
    dispatches = [dispatch(f"d{number}", incompressible(number)) for number in range(9)]
    data = packed_ir(COMPILER, dispatches)
    assert 0 < len(data) <= MOST_IR_BYTES
    base_ir = unpacked_ir(data, side(data), "x")
    names = [
        f"d{number}"
        for number in range(9)
        if base_ir.of(
            dispatch().key, Dispatch("e", f"d{number}", code_bytes=100, code=CODE)
        )
    ]
    assert 0 < len(names) < 9
    assert names == [f"d{number}" for number in range(len(names))]


@pytest.mark.slow
def test_nothing_is_stored_where_the_first_dispatch_is_too_large() -> None:
    assert packed_ir(COMPILER, [dispatch(text=incompressible(1, 600_000))]) == b""
    long_text = "x" * (MOST_UNPACKED_IR_BYTES // 4)
    assert packed_ir(COMPILER, [dispatch(text=long_text)]) == b""
    assert packed_ir(COMPILER, []) == b""


def with_text(change: Callable[[str], str]) -> bytes:
    return compressed(change(lzma.decompress(IR).decode()).encode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(MOST_IR_BYTES + 1), "has more than 512 KiB"),
        (IR[:-1], "not a complete xz file"),
        (IR + IR, "bytes after its end"),
        (b"", "not a complete xz file"),
        (compressed(b"\xff"), "not UTF-8|not JSON"),
        (compressed(b"[" * 100_000), "is not a file with a baseline's IR"),
        (with_text(lambda text: text.replace("stored-ir/1", "stored-ir/2")), "schema"),
        (with_text(lambda text: text.replace(COMPILER, "d" * 64)), "another compiler"),
        (with_text(lambda text: text.replace("42c0de", "42c0d")), "bitcode"),
        (with_text(lambda text: text.replace("42c0de", "")), "bitcode"),
        (with_text(lambda text: text.replace('"plain"', '"plane"')), "plane"),
        (with_text(lambda text: text.replace("not printed", "")), "IR or a reason"),
    ],
)
def test_a_file_that_is_not_ir_of_this_snapshot_is_refused(
    data: bytes, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        unpacked_ir(data, side(data), "x")


def test_ir_that_unpacks_to_too_much_is_refused() -> None:
    data = compressed(bytes(MOST_UNPACKED_IR_BYTES + 1))
    with pytest.raises(InputError, match="unpacks to more than 32 MiB"):
        unpacked_ir(data, side(data), "x")


@given(some.integers(0, len(IR) - 1), some.integers(1, 255))
def test_a_changed_byte_is_not_the_ir_that_the_snapshot_names(
    place: int, change: int
) -> None:
    data = bytearray(IR)
    data[place] ^= change
    with pytest.raises(InputError, match="is not the IR that the snapshot names"):
        unpacked_ir(bytes(data), SNAPSHOT, "x")


# Stores


def test_a_directory_keeps_ir_beside_its_snapshot(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    assert store.save(entry(1), SNAPSHOT, IR)
    assert store.entries() == [entry(1)]
    assert entry_of(ir_path_of(entry(1))) is None
    assert stored_ir_of(store, entry(1), SNAPSHOT) is not None
    plain = replace(SNAPSHOT, stored_ir=UNSET)
    assert stored_ir_of(store, entry(1), plain) is None
    (tmp_path / ir_path_of(entry(1))).write_bytes(bytes(MOST_IR_BYTES + 1))
    with pytest.raises(InputError, match="bytes"):
        stored_ir_of(store, entry(1), SNAPSHOT)
    (tmp_path / ir_path_of(entry(1))).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        stored_ir_of(store, entry(1), SNAPSHOT)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    bare = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(bare, "config", "uploadpack.allowFilter", "true")
    return bare


def branch(origin: Path, seconds: float = MONDAY, keep_days: int = 7) -> DataBranch:
    clone = origin.parent / "clone"
    if not clone.exists():
        git(origin.parent, "clone", "-q", origin.as_uri(), str(clone))
    return DataBranch(
        Git(clone, Cancel()), BRANCH, keep_days=keep_days, now=lambda: seconds
    )


def stored_names(origin: Path) -> list[str]:
    return git(origin, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def test_a_branch_keeps_ir_in_the_commit_of_its_snapshot(origin: Path) -> None:
    with branch(origin) as store:
        assert store.save(entry(1), SNAPSHOT, IR)
        assert not store.save(entry(1), SNAPSHOT, IR)
        assert store.save(entry(2), replace(SNAPSHOT, stored_ir=UNSET))
    with branch(origin) as store:
        assert store.entries() == [entry(1), entry(2)]
        assert isinstance(stored_ir_of(store, entry(1), SNAPSHOT), BaseIr)
        with pytest.raises(InputError, match="is not stored"):
            ir_file_of(store, entry(2), SNAPSHOT)
    assert int(git(origin, "rev-list", "--count", BRANCH)) == 3


def test_a_copy_has_the_ir_of_its_first_entries(origin: Path, tmp_path: Path) -> None:
    with branch(origin) as store:
        for number in range(7):
            ir = packed_ir(COMPILER, [dispatch(f"d{number}")])
            store.save(entry(number), side(ir), ir)
        nearest_first = [entry(number) for number in reversed(range(7))]
        store.entries()
        store.copy(nearest_first, tmp_path / "copy")
    copied = CheckedOut(Git(tmp_path / "copy", Cancel()))
    assert copied.entries() == sorted(nearest_first)
    assert copied.in_order(copied.entries())[-1] == entry(6)
    present = [
        number
        for number in range(7)
        if (tmp_path / "copy" / ir_path_of(entry(number))).exists()
    ]
    assert present == [2, 3, 4, 5, 6]
    assert stored_ir_of(copied, entry(6), copied.load(entry(6))) is not None


def test_retention_removes_ir_with_its_snapshot_and_earlier(origin: Path) -> None:
    """Snapshots of one a week stay, and only those of the last days have IR."""
    days = [0, 1, 7, 14, 21, 28]
    for day in days:
        with branch(origin, MONDAY + (day + 0.5) * DAY) as store:
            ir = packed_ir(COMPILER, [dispatch(f"d{day}")])
            store.save(entry(day), side(ir), ir)
    names = stored_names(origin)
    with_snapshot = [
        day for day in days if any(f"{day:040x}.{'c' * 64}.json" in n for n in names)
    ]
    with_ir = [day for day in days if ir_path_of(entry(day)) in names]
    assert with_snapshot == [1, 7, 14, 21, 28]
    assert with_ir == [day for day in with_snapshot if 28 - day <= IR_DAYS]
    reader = origin.parent / "reader"
    git(origin.parent, "clone", "-q", "-b", BRANCH, origin.as_uri(), str(reader))
    objects = git(reader, "rev-list", "--objects", f"origin/{BRANCH}").splitlines()
    kept_ir = [line for line in objects if line.endswith(".ir.xz")]
    assert len(kept_ir) == len(with_ir), "a clone has no dropped IR"
    with branch(origin) as store:
        last = store.load(entry(28))
        assert stored_ir_of(store, entry(28), last) is not None


def test_the_last_baseline_keeps_its_ir_however_old_it_is(origin: Path) -> None:
    with branch(origin, MONDAY) as store:
        store.save(entry(1), SNAPSHOT, IR)
    with branch(origin, MONDAY + 400 * DAY) as store:
        store.save(replace(entry(2), report_id="other"), SNAPSHOT, IR)
    names = stored_names(origin)
    assert ir_path_of(entry(1)) in names


def test_a_digest_is_of_the_whole_file() -> None:
    assert digest_of_ir(IR) == hashlib.sha256(IR).hexdigest()
