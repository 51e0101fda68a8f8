"""The code object reader, against llvm-readelf and on damaged metadata."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import msgpack
import needs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, fixture, outcome

from bot.core.reading import Reading
from bot.errors import MalformedBinary
from bot.readers import elf, hsaco
from bot.readers.elf import STT_FUNC, STT_OBJECT, parse_elf
from bot.readers.hsaco import FIELDS, MAX_METADATA_BYTES

NAME = "dense.rocm.hsaco"
READ = hsaco.read


def test_the_metadata_is_that_of_llvm_readelf() -> None:
    command = [needs.program("llvm-readelf"), "--notes", str(BINARIES / NAME)]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    entries = READ(fixture(NAME)).entry_points
    for field, key in FIELDS.items():
        figures = [int(figure) for figure in re.findall(rf"{re.escape(key)}: +(\d+)", notes)]
        assert [getattr(entry, field) for entry in entries] == figures
    assert [entry.name for entry in entries] == re.findall(r"^    \.name: +(\S+)", notes, re.M)


def test_code_is_the_size_of_the_symbol_in_readelf() -> None:
    command = [needs.program("readelf"), "-sW", str(BINARIES / NAME)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sizes = {name: int(size) for size, name in re.findall(r" (\d+) FUNC +GLOBAL PROTECTED +\d+ (\S+)$", symbols, re.M)}
    assert {entry.name: entry.code_bytes for entry in READ(fixture(NAME)).entry_points} == sizes


def test_names_and_the_place_of_the_code_do_not_count() -> None:
    before = [entry.code for entry in READ(fixture(NAME)).entry_points]
    assert len(set(before)) == 2
    renamed = patched(b"main_dispatch_0_", b"main_dispatch_7_")
    assert [entry.code for entry in READ(renamed).entry_points] == before
    assert [entry.code for entry in READ(flipped("main_dispatch_0", ".kd", 16)).entry_points] == before


@pytest.mark.parametrize("suffix", ["", ".kd"])
@pytest.mark.parametrize("offset", [0, 48, 63])
def test_code_and_descriptor_count(suffix: str, offset: int) -> None:
    before, after = (READ(data).entry_points for data in (fixture(NAME), flipped("main_dispatch_0", suffix, offset)))
    assert before[0].code != after[0].code
    assert before[1].code == after[1].code


def test_without_a_descriptor_the_code_is_not_known() -> None:
    entries = READ(patched(b".kd\0", b".xy\0")).entry_points
    assert {entry.code for entry in entries} == {None}
    assert all(entry.code_bytes for entry in entries)


def test_parts_are_those_of_the_elf_file() -> None:
    assert dict(READ(fixture(NAME)).parts) == dict(elf.read(fixture(NAME)).parts)


def test_a_private_segment_and_a_dynamic_stack_show() -> None:
    data = patched(b"\xbb.private_segment_fixed_size\x00", b"\xbb.private_segment_fixed_size\x40")
    assert [entry.stack_bytes for entry in READ(data).entry_points] == [64, 64]
    dynamic = data.replace(b"\xb3.uses_dynamic_stack\xc2", b"\xb3.uses_dynamic_stack\xc3", 1)
    assert [entry.stack_kind for entry in READ(dynamic).entry_points] == ["dynamic", "static"]


def test_a_missing_figure_is_none_and_not_zero() -> None:
    entry = READ(patched(b".vgpr_spill_count", b".some_other_thing")).entry_points[0]
    assert entry.vgpr_spills is None
    assert entry.sgpr_spills == 0


def test_a_missing_private_segment_has_no_kind() -> None:
    entry = READ(patched(b".private_segment_fixed_size", b".xrivate_segment_fixed_size")).entry_points[0]
    assert (entry.stack_bytes, entry.stack_kind) == (None, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"AMDGPU\0", b"AMDGPX\0", "no AMDGPU metadata note"),
        (b"amdhsa.kernels", b"amdhsa.colonel", "metadata without a list of kernels"),
        (
            b"\xbb.private_segment_fixed_size\x00",
            b"\xbb.private_segment_fixed_size\xff",
            "fixed_size is '-1'",
        ),
        (b"\xb3.uses_dynamic_stack\xc2", b"\xb3.uses_dynamic_stack\xc1", "metadata is no msgpack"),
        (b"\xa5.name", b"\xa5.nome", "a kernel without a name"),
    ],
)
def test_damaged_metadata_is_refused(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        READ(patched(old, new))


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [2**53 + 1, 2**64 - 1])
def test_a_figure_that_a_snapshot_cannot_state_is_refused(field: str, number: int) -> None:
    kernel = {".name": "k", FIELDS[field]: number}
    with pytest.raises(MalformedBinary, match=f"^k: {field.replace('_', ' ')} out of range"):
        note(msgpack.packb({"amdhsa.kernels": [kernel]}))
    kernel[FIELDS[field]] = 2**53
    assert getattr(note(msgpack.packb({"amdhsa.kernels": [kernel]})).entry_points[0], field) == 2**53


def test_a_claim_of_four_billion_kernels_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="no msgpack"):
        note(b"\x81\xae" + b"amdhsa.kernels" + b"\xdd\xff\xff\xff\xff")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="no msgpack"):
        note(b"\x91" * 1400 + b"\xc0")


def test_enormous_metadata_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="metadata of 4194305 bytes"):
        note(bytes(MAX_METADATA_BYTES + 1), grow=True)


KEYS = st.sampled_from(["amdhsa.kernels", ".name", *FIELDS.values()])
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)


@given(st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner), max_leaves=12))
def test_any_metadata(metadata: Any) -> None:
    outcome(lambda _: note(msgpack.packb(metadata)), fixture(NAME))


def test_only_code_objects_are_accepted() -> None:
    assert hsaco.accepts(fixture(NAME))
    assert not hsaco.accepts(fixture("dense.llvm-cpu-x86_64.so"))


def flipped(name: str, suffix: str, offset: int) -> bytes:
    """The fixture with a byte of a kernel's code or descriptor changed."""
    data = fixture(NAME)
    elf = parse_elf(data)
    symbols = (*elf.symbols(STT_OBJECT), *elf.symbols(STT_FUNC))
    (own,) = (each for each in symbols if re.fullmatch(rf"{name}_\w+{re.escape(suffix)}", each.name))
    section = elf.sections[own.section]
    at = section.span.start + own.value - section.address + offset
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def patched(old: bytes, new: bytes) -> bytes:
    data = fixture(NAME)
    assert old in data
    assert len(old) == len(new)
    return data.replace(old, new)


def note(packed: bytes, *, grow: bool = False) -> Reading:
    """Read the fixture with other metadata in its note, or in a larger note section at the end of the file."""
    data = fixture(NAME)
    contents = data.index(b"AMDGPU\0\0") + 8
    size = int.from_bytes(data[contents - 16 : contents - 12], "little")
    head = len(packed).to_bytes(4, "little") + data[contents - 12 : contents]
    if not grow:
        assert len(packed) <= size
        return READ(data[: contents - 16] + head + packed.ljust(size, b"\0") + data[contents + size :])
    section = data[contents - 20 : contents - 16] + head + packed
    # The first section header is the note's; its offset and size are 24 and 32 bytes into it.
    header = int.from_bytes(data[40:48], "little") + 64 + 24
    moved = len(data).to_bytes(8, "little") + len(section).to_bytes(8, "little")
    return READ(data[:header] + moved + data[header + 16 :] + section)
