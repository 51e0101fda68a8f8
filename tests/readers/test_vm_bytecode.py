"""The VM module reader, against the dump of the runtime's own tool."""

from __future__ import annotations

import re

import pytest
from reader_checks import fixture

from bot.errors import MalformedBinary
from bot.readers import vm_module
from bot.readers.vm_module import parse_module

NAME = "dense.vmvx.module"
READ = vm_module.read


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        (NAME, ["main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"]),
        ("dense.vmvx.vmfb", ["main"]),
    ],
)
def test_entry_points_are_the_exports_of_the_dump_but_the_loaders(name: str, functions: list[str]) -> None:
    rows = re.findall(r"^ +\d+ \| \w+ \| +(\d+) \|.*\| (\S+)$", fixture(f"{name}.dump.txt").decode(), re.M)
    lengths = {exported: int(length) for length, exported in rows if exported != "__init"}
    assert list(lengths) == functions
    assert {entry.name: entry.code_bytes for entry in READ(fixture(name)).entry_points} == lengths


def test_a_frame_is_not_known() -> None:
    entries = READ(fixture(NAME)).entry_points
    assert {(entry.stack_bytes, entry.stack_kind, entry.workgroup_bytes) for entry in entries} == {(None, None, None)}


def test_the_code_is_the_bytecode_of_the_function() -> None:
    data = fixture(NAME)
    matmul, reduction = (entry.code for entry in READ(data).entry_points)
    assert matmul != reduction
    renamed = data.replace(b"main_dispatch_1_reduction", b"main_dispatch_2_something")
    assert renamed != data
    assert [entry.code for entry in READ(renamed).entry_points] == [matmul, reduction]
    bytecode = parse_module(data).bytecode
    differ = [
        [entry.code for entry in READ(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).entry_points]
        for at in range(bytecode.start, bytecode.end)
    ]
    assert sum(codes[0] != matmul for codes in differ) == READ(data).entry_points[0].code_bytes
    assert sum(codes[1] != reduction for codes in differ) == READ(data).entry_points[1].code_bytes


def test_spans_lie_inside_the_flatbuffer_or_behind_it() -> None:
    data = fixture("dense.vulkan-spirv.vmfb")
    module, end = parse_module(data), 4 + int.from_bytes(data[:4], "little")
    assert 4 <= module.bytecode.start < module.bytecode.end <= end
    external = [segment for segment in module.segments if segment.start >= end]
    assert [segment.of(data)[:4] for segment in external] == [b"VKE1", b"VKE1"]


def test_a_zip_header_in_front_is_skipped() -> None:
    plain = fixture(NAME)
    header = (
        b"PK\x03\x04" + bytes(22) + (9).to_bytes(2, "little") + (25).to_bytes(2, "little") + b"module.fb" + bytes(25)
    )
    assert len(header) == 64
    assert parse_module(header + plain).bytecode.of(header + plain) == parse_module(plain).bytecode.of(plain)
    with pytest.raises(MalformedBinary, match="cut short"):
        parse_module(header[:29])


def test_another_flatbuffer_is_refused() -> None:
    data = fixture(NAME).replace(b"IREE", b"TREE", 1)
    assert not vm_module.accepts(data)
    with pytest.raises(MalformedBinary, match="no flatbuffer with the identifier b'IREE'"):
        READ(data)
