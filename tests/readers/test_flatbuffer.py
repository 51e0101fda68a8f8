"""Flatbuffer access, against what the library itself writes."""

from __future__ import annotations

import re
from pathlib import Path

import flatbuffers
import pytest

from bot.errors import MalformedBinary
from bot.readers import artifact, executable, vm_module
from bot.readers.flatbuffer import MAX_TABLES, UINT32, UINT64, root_table

ROOT, CHILD = "number text children absent payload", "value"


def example() -> bytes:
    """A table with a number, a string, two child tables, an empty slot and a byte vector."""
    builder = flatbuffers.Builder(64)
    text, payload = builder.CreateString("name"), builder.CreateByteVector(b"payload")
    children = []
    for value in (7, 8):
        builder.StartObject(1)
        builder.PrependUint32Slot(0, value, 0)
        children.append(builder.EndObject())
    builder.StartVector(4, 2, 4)
    for child in reversed(children):
        builder.PrependUOffsetTRelative(child)
    vector = builder.EndVector()
    builder.StartObject(5)
    builder.PrependUint64Slot(0, 2**40, 0)
    for slot, offset in ((1, text), (2, vector), (4, payload)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TEST")
    return bytes(builder.Output())


def everything(data: bytes) -> tuple[object, ...]:
    root = root_table(data, 0, b"TEST", "test", ROOT)
    children = [child.scalar("value", UINT32) for child in root.tables("children", CHILD)]
    span = root.span("payload")
    return (
        root.scalar("number", UINT64),
        root.text("text"),
        children,
        root.table("absent", CHILD),
        span and span.of(data),
        root.scalar("of another schema", UINT32),
    )


def test_reads_what_the_library_wrote() -> None:
    assert everything(example()) == (2**40, "name", [7, 8], None, b"payload", 0)


def test_a_field_that_the_writer_did_not_know_of_is_one_that_is_not_there() -> None:
    root = root_table(example(), 0, b"TEST", "test", f"{ROOT} newer newest")
    assert (root.span("newer"), root.text("newest"), root.scalar("newer", UINT32)) == (None, "", 0)


def test_every_field_that_is_read_is_in_a_schema() -> None:
    """A name in no schema would be read as a field that is never there."""
    for module in (executable, vm_module, artifact):
        text = Path(str(module.__file__)).read_text("utf-8")
        known = {word for value in vars(module).values() if isinstance(value, str) for word in value.split()}
        known |= {word for layout in getattr(module, "LAYOUTS", {}).values() for word in layout.module.split()}
        known |= {word for fields in re.findall(r"tables?\(\"\w+\", \"([\w ]+)\"\)", text) for word in fields.split()}
        known |= {word for word in vm_module.MODULE.split() if module is artifact}
        read = re.findall(r"\.(?:span|scalar|text|tables?)\(\"(\w+)\"", text)
        assert read and set(read) <= known


def test_a_buffer_inside_a_file_is_read_from_its_start() -> None:
    root = root_table(b"\xff" * 12 + example(), 12, b"TEST", "test", ROOT)
    assert root.text("text") == "name"


def test_another_identifier_is_refused() -> None:
    with pytest.raises(MalformedBinary, match="no flatbuffer with the identifier b'ELSE'"):
        root_table(example(), 0, b"ELSE", "test", ROOT)


def test_a_vtable_before_the_file_is_refused_and_does_not_wrap_around() -> None:
    data = bytearray(example())
    position = int.from_bytes(data[:4], "little")
    data[position : position + 4] = (position + 2).to_bytes(4, "little")
    with pytest.raises(MalformedBinary, match="at offset -2"):
        everything(bytes(data))


def test_a_vector_of_a_million_tables_is_refused_before_the_first() -> None:
    builder = flatbuffers.Builder(64)
    builder.StartVector(4, MAX_TABLES + 1, 4)
    for _ in range(MAX_TABLES + 1):
        builder.PrependUint32(0)
    vector = builder.EndVector()
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(2, vector, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TEST")
    with pytest.raises(MalformedBinary, match="a vector of 65537 tables"):
        next(root_table(bytes(builder.Output()), 0, b"TEST", "test", ROOT).tables("children", CHILD))


def test_an_endless_name_is_refused() -> None:
    builder = flatbuffers.Builder(64)
    text = builder.CreateString("x" * 1025)
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TEST")
    with pytest.raises(MalformedBinary, match="a name of 1025 bytes"):
        root_table(bytes(builder.Output()), 0, b"TEST", "test", "text").text("text")
