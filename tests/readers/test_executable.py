"""Containers of the GPU targets, against the modules that the compiler dumped."""

from __future__ import annotations

from collections.abc import Iterator

import flatbuffers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import fixture, outcome

from bot.errors import MalformedBinary
from bot.readers import executable
from bot.readers.artifact import read_executable
from bot.readers.vm_module import parse_module

READ = executable.read
NAMES = ["main_dispatch_0_matmul_48x96x40_f32", "main_dispatch_1_reduction_48x96_f32"]
PAYLOADS = {
    "cuda": ["dense.cuda.ptx"],
    "rocm": ["dense.rocm.hsaco"],
    "vulkan-spirv": ["dense.vulkan-spirv.0.spv", "dense.vulkan-spirv.1.spv"],
    "metal-spirv": ["dense.metal-spirv.0.metal", "dense.metal-spirv.1.metal"],
}
"""Target → the modules as the compiler dumped them."""
SMALLEST = "metal-spirv"
PTX = b".version 7.6\n.visible .entry kernel() { ret; }\n"


def containers(target: str, prefix: str = "dense") -> Iterator[bytes]:
    data = fixture(f"{prefix}.{target}.vmfb")
    segments = (segment.of(data) for segment in sorted(parse_module(data).segments))
    return (segment for segment in segments if executable.accepts(segment))


@pytest.mark.parametrize("target", PAYLOADS)
def test_the_container_holds_the_modules_that_the_compiler_dumped(target: str) -> None:
    found = list(containers(target))
    assert len(found) == len(PAYLOADS[target])
    for container, name in zip(found, PAYLOADS[target], strict=True):
        payload = fixture(name)
        assert payload in container
        inside, alone = READ(container), read_executable(payload)
        assert inside.format == alone.format
        assert {label: inside.parts[label] for label in alone.parts if label != "header"} == {
            label: size for label, size in alone.parts.items() if label != "header"
        }
        assert [entry.code_bytes for entry in inside.entry_points] == [entry.code_bytes for entry in alone.entry_points]


@pytest.mark.parametrize("prefix", ["dense", "dense-3.11.0", "dense-3.8.0", "dense-3.5.0"])
@pytest.mark.parametrize("target", PAYLOADS)
def test_entry_points_of_every_release_have_the_programs_names(target: str, prefix: str) -> None:
    found = [READ(container) for container in containers(target, prefix)]
    # 3.5.0 calls the row maxima by their other operation.
    names = [entry.name.replace("elementwise", "reduction") for reading in found for entry in reading.entry_points]
    assert names == NAMES
    assert all(entry.code_bytes for reading in found for entry in reading.entry_points)


@pytest.mark.parametrize("target", PAYLOADS)
def test_the_header_of_newer_releases_is_all_that_differs(target: str) -> None:
    for container in containers(target):
        with_header, bare = READ(container), READ(container[64:])
        assert with_header.parts == {**bare.parts, "header": 64 + bare.parts.get("header", 0)}
        assert with_header.entry_points == bare.entry_points
        assert with_header.unattributed_bytes == bare.unattributed_bytes


@pytest.mark.parametrize("target", PAYLOADS)
def test_little_of_a_container_is_unattributed(target: str) -> None:
    for container in containers(target):
        assert READ(container).unattributed_bytes < 700


def test_the_launch_of_a_cuda_kernel_adds_its_shared_memory() -> None:
    (reading,) = [READ(container) for container in containers("cuda")]
    assert [entry.workgroup_bytes for entry in reading.entry_points] == [0, 20]
    assert [entry.workgroup_bytes for entry in read_executable(fixture("dense.cuda.ptx")).entry_points] == [
        0,
        None,
    ]


def test_the_program_name_goes_before_the_kernel_name() -> None:
    reading = READ(cuda(exports=[(0, b"kernel", 48, b"main$async_kernel")], modules=[PTX]))
    assert [(entry.name, entry.workgroup_bytes) for entry in reading.entry_points] == [("main$async_kernel", 48)]
    (entry,) = READ(cuda(exports=[(0, b"kernel", 0, b"")], modules=[PTX])).entry_points
    assert (entry.name, entry.workgroup_bytes) == ("kernel", 0)


def test_embedded_sources_have_a_label() -> None:
    reading = READ(cuda(exports=[], modules=[PTX], source=b"x" * 100))
    assert reading.parts["sources"] == 100
    assert reading.parts["header"] == 64


def test_several_exports_of_one_module() -> None:
    two = PTX + PTX.replace(b".version 7.6\n", b"").replace(b"kernel", b"other")
    reading = READ(
        cuda(
            exports=[(0, b"other", 1, b""), (1, b"kernel", 2, b""), (0, b"kernel", 3, b"")],
            modules=[two, PTX],
        )
    )
    found = [(entry.name, entry.workgroup_bytes) for entry in reading.entry_points]
    assert found == [("other", 1), ("kernel", 2), ("kernel", 3)]


@pytest.mark.parametrize(
    ("exports", "message"),
    [
        ([(1, b"kernel", 0, b"")], "export 'kernel' names module 1"),
        ([(0, b"absent", 0, b"")], "export 'absent' is not in its module"),
    ],
)
def test_exports_without_a_kernel_are_refused(exports: list[tuple[int, bytes, int, bytes]], message: str) -> None:
    with pytest.raises(MalformedBinary, match=message):
        READ(cuda(exports=exports, modules=[PTX]))


def test_an_unknown_identifier_is_recognised_and_refused() -> None:
    container = next(containers("cuda")).replace(b"CDA1", b"NEW1")
    assert executable.accepts(container)
    with pytest.raises(MalformedBinary, match="unknown container b'NEW1', version 0"):
        READ(container)


@pytest.mark.parametrize("magic", [b"CDA1", b"HIP1", b"VKE1", b"MTL1"])
def test_a_constant_with_an_identifier_in_it_is_no_executable(magic: bytes) -> None:
    for start in (b"\x0c\0\0\0", bytes(4), b"\xff" * 4):
        assert not executable.accepts(start + magic + bytes(200))
        assert not executable.accepts(start + magic)


def test_without_a_header_an_unknown_identifier_names_nothing() -> None:
    container = next(containers("cuda", "dense-3.8.0")).replace(b"CDA1", b"NEW1")
    assert not executable.accepts(container)
    with pytest.raises(MalformedBinary, match="unknown container b'NEW1'"):
        READ(container)


def test_a_newer_version_is_refused() -> None:
    container = bytearray(next(containers("cuda")))
    container[4] = 1
    with pytest.raises(MalformedBinary, match="version 1"):
        READ(bytes(container))


def test_modules_that_overlap_are_refused() -> None:
    data = cuda(exports=[], modules=[PTX, PTX])
    second = data.rindex(len(PTX).to_bytes(4, "little") + PTX)
    first = data.index(len(PTX).to_bytes(4, "little") + PTX)
    # The first module's string now claims to reach into the second.
    longer = data[:first] + (second + 8 - first).to_bytes(4, "little") + data[first + 4 :]
    with pytest.raises(MalformedBinary, match="share the byte"):
        READ(longer)


@given(st.sampled_from([b"CDA1", b"HIP1", b"VKE1", b"MTL1", b"ABCD"]), st.binary(max_size=300))
def test_any_content(magic: bytes, content: bytes) -> None:
    outcome(
        READ,
        magic + bytes(4) + len(content).to_bytes(8, "little") + bytes(48) + b"\x08\0\0\0" + magic + content,
    )


def cuda(exports: list[tuple[int, bytes, int, bytes]], modules: list[bytes], source: bytes = b"") -> bytes:
    """A container: exports as module ordinal, kernel, workgroup bytes and debug name."""
    builder = flatbuffers.Builder(1024)
    module_tables = [table(builder, {0: builder.CreateString(module)}) for module in modules]
    export_tables = []
    for ordinal, kernel, launch_bytes, debug_name in exports:
        name, debug = builder.CreateString(kernel), table(builder, {0: builder.CreateString(debug_name)})
        export_tables.append(table(builder, {1: name, 6: debug}, {0: ordinal, 3: launch_bytes}))
    sources = [table(builder, {1: builder.CreateByteVector(source)})] if source else []
    vectors = {slot: vector(builder, tables) for slot, tables in enumerate((export_tables, module_tables, sources))}
    builder.Finish(table(builder, vectors), file_identifier=b"CDA1")
    content = bytes(builder.Output())
    return b"CDA1" + bytes(4) + len(content).to_bytes(8, "little") + bytes(48) + content


def table(builder: flatbuffers.Builder, offsets: dict[int, int], numbers: dict[int, int] | None = None) -> int:
    builder.StartObject(8)
    for slot, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, number in (numbers or {}).items():
        builder.PrependUint32Slot(slot, number, 0)
    return int(builder.EndObject())


def vector(builder: flatbuffers.Builder, tables: list[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for offset in reversed(tables):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())
