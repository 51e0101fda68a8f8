"""Artifacts against iree-dump-module, and the containers, VM modules and flatbuffers in them."""

from __future__ import annotations

import re
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator

import flatbuffers
import needs
import pytest
from growth import steps
from reader_checks import BINARIES, fixture

from bot.errors import MalformedBinary
from bot.readers.artifact import ptx_modules, read_artifact
from bot.readers.container import CONTAINER
from bot.readers.flatbuffer_table import MAX_TABLES, UINT32, root_table
from bot.readers.vm_module import VM_MODULE, exported_functions, parse_module

ARTIFACTS = sorted(path.name for path in BINARIES.glob("*.vmfb"))
SMALLEST = "dense.vmvx.vmfb"
MODULE = "dense.vmvx.module"


@pytest.mark.parametrize("name", ARTIFACTS)
def test_sizes_are_those_of_iree_dump_module(name: str) -> None:
    """And of its recorded dump; all but tables and padding is attributed."""
    reading = read_artifact(fixture(name))
    data = fixture(name)
    command = [
        needs.program("iree-dump-module"),
        "--output=metadata",
        str(BINARIES / name),
    ]
    now = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for dump in (fixture(f"{name}.dump.txt").decode(), now):
        rows = re.findall(
            r"^ +\.rodata\[ *\d+\] (embedded|external) +(\d+) bytes", dump, re.M
        )
        bytecode = re.search(r"^ +Bytecode: (\d+) bytes", dump, re.M)
        assert (
            bytecode is not None
            and reading.vm_bytes == int(bytecode[1])
            and len(rows) > 5
        )
        assert (reading.executable_bytes or 0) + (reading.rodata_bytes or 0) == sum(
            int(size) for _, size in rows
        )
        # In these artifacts no constant is so large that it stands outside of the
        # flatbuffer.
        external = [int(size) for kind, size in rows if kind == "external"]
        assert [executable.size_bytes for executable in reading.executables] == external
        assert reading.executable_bytes == sum(external) and reading.unread == ()
    assert (
        0
        < reading.unattributed_bytes
        < int.from_bytes(data[:4], "little") + 200 - reading.vm_bytes
    )
    assert steps(lambda: read_artifact(data)) < 20 * len(data)


def disguised(data: bytes) -> bytes:
    """The artifact with its executables in a format that nobody knows."""
    for magic in (b"CDA1", b"VKE1", b"\x7fELF"):
        data = data.replace(magic, b"\0\1\2\3")
    return data


@pytest.mark.parametrize(
    "name",
    ["dense.cuda.vmfb", "dense-3.8.0.vulkan-spirv.vmfb", "dense.llvm-cpu-x86_64.vmfb"],
)
def test_executables_of_an_unknown_format_are_no_constants(name: str) -> None:
    data = fixture(name)
    original = read_artifact(data)
    hidden = read_artifact(disguised(data))
    assert (hidden.executable_bytes, hidden.rodata_bytes, hidden.executables) == (
        None,
        None,
        (),
    )
    assert (hidden.vm_bytes, hidden.unattributed_bytes) == (
        original.vm_bytes,
        original.unattributed_bytes,
    )
    assert hidden.unread == (
        (
            "the bot cannot read its executables, so they cannot be separated from"
            " constants"
        ),
    )


def test_an_artifact_that_loads_no_executables_has_none() -> None:
    data = fixture("dense.cuda.vmfb")
    original = read_artifact(data)
    idle = read_artifact(
        disguised(data).replace(b"hal.executable.", b"hal.somethings.")
    )
    assert (idle.executable_bytes, idle.unread) == (0, ())
    assert original.executable_bytes and original.rodata_bytes
    assert idle.rodata_bytes == original.executable_bytes + original.rodata_bytes


def test_an_executable_that_cannot_be_read_keeps_its_bytes_and_says_why() -> None:
    for target, magic, damage, reason in (
        ("llvm-cpu-x86_64", b"\x7fELF\x02", b"\x7fELF\x09", "elf"),
        ("cuda", b"CDA1", b"XXX1", "unknown container b'XXX1'"),
        ("vulkan-spirv", b"\x03\x02\x23\x07", bytes(4), "spirv"),
    ):
        data = fixture(f"dense.{target}.vmfb")
        whole = read_artifact(data)
        damaged = read_artifact(data.replace(magic, damage))
        assert (damaged.executable_bytes, damaged.executables) == (
            whole.executable_bytes,
            (),
        )
        assert len(damaged.unread) == len(whole.executables)
        assert (
            damaged.unread[0].startswith("executable of ")
            and reason in damaged.unread[0]
        )


def huge(constant_bytes: int) -> bytes:
    """An artifact with one constant of zeros outside of its flatbuffer."""
    builder = flatbuffers.Builder(64)
    builder.StartObject(5)
    builder.PrependUint64Slot(4, constant_bytes, 0)
    segments = vector(builder, [int(builder.EndObject())])
    bytecode = builder.CreateByteVector(bytes(64))
    builder.Finish(table(builder, {9: segments, 14: bytecode}), file_identifier=b"IREE")
    module = bytes(builder.Output())
    head = len(module).to_bytes(4, "little") + module
    return head + bytes(-len(head) % 64 + constant_bytes)


@pytest.mark.parametrize("read", [read_artifact, ptx_modules])
def test_a_large_constant_is_not_copied(read: Callable[[bytes], object]) -> None:
    data = huge(64 << 20)
    tracemalloc.start()
    try:
        read(data)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20
    assert read_artifact(data).rodata_bytes == 64 << 20


# Polyglots: ZIP files whose first file is the module.


def zipped(data: bytes, name: bytes = b"module.fb", extra: bytes = b"") -> bytes:
    """The module behind the header of a ZIP's local file, padded so that its segments stay aligned."""
    gap = -(30 + len(name) + len(extra)) % 64
    lengths = len(name).to_bytes(2, "little") + (len(extra) + gap).to_bytes(2, "little")
    return b"PK\3\4" + bytes(22) + lengths + name + extra + bytes(gap) + data


@pytest.mark.parametrize("artifact", ARTIFACTS)
def test_the_header_of_a_polyglot_zip_is_unattributed(artifact: str) -> None:
    plain = read_artifact(fixture(artifact))
    polyglot = read_artifact(zipped(fixture(artifact), extra=bytes(70)))
    assert (polyglot.executables, polyglot.unread) == (plain.executables, plain.unread)
    assert (polyglot.executable_bytes, polyglot.rodata_bytes) == (
        plain.executable_bytes,
        plain.rodata_bytes,
    )
    assert polyglot.unattributed_bytes == plain.unattributed_bytes + 128
    assert (
        exported_functions(zipped(fixture(artifact)))
        == exported_functions(fixture(artifact))
        == ("main",)
    )


def test_a_zip_that_is_cut_off_or_holds_no_module_is_refused() -> None:
    data = zipped(fixture(SMALLEST))
    for size in (*range(4, 200), len(data) - 1):
        with pytest.raises(MalformedBinary):
            read_artifact(data[:size])
    with pytest.raises(MalformedBinary):
        read_artifact(zipped(b"PK" * 100))


# VM modules, against the dump of the runtime's own tool.


def test_the_code_is_the_bytecode_of_the_function() -> None:
    data = fixture(MODULE)
    matmul, reduction = (entry.code for entry in VM_MODULE.read(data).entry_points)
    assert matmul != reduction
    names = [entry.name for entry in VM_MODULE.read(fixture(SMALLEST)).entry_points]
    assert names == ["main"], "functions of the loader are none"
    renamed = data.replace(b"main_dispatch_1_reduction", b"main_dispatch_2_something")
    assert renamed != data
    assert [entry.code for entry in VM_MODULE.read(renamed).entry_points] == [
        matmul,
        reduction,
    ]
    bytecode = parse_module(data).bytecode
    differ = [
        [
            entry.code
            for entry in VM_MODULE.read(
                data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
            ).entry_points
        ]
        for position in range(bytecode.start, bytecode.end)
    ]
    assert (
        sum(codes[0] != matmul for codes in differ)
        == VM_MODULE.read(data).entry_points[0].code_bytes
    )
    assert (
        sum(codes[1] != reduction for codes in differ)
        == VM_MODULE.read(data).entry_points[1].code_bytes
    )


# Containers of the GPU targets, against the modules that the compiler dumped.


READ = CONTAINER.read
PAYLOADS = {
    "cuda": ["dense.cuda.ptx"],
    "rocm": ["dense.rocm.hsaco"],
    "vulkan-spirv": ["dense.vulkan-spirv.0.spv", "dense.vulkan-spirv.1.spv"],
    "metal-spirv": ["dense.metal-spirv.0.metal", "dense.metal-spirv.1.metal"],
}
"""Target → the modules as the compiler dumped them."""
PTX = b".version 7.6\n.visible .entry kernel() { ret; }\n"


def containers(target: str, prefix: str = "dense") -> Iterator[bytes]:
    data = fixture(f"{prefix}.{target}.vmfb")
    segments = (segment.of(data) for segment in sorted(parse_module(data).segments))
    return (segment for segment in segments if CONTAINER.accepts(segment))


def test_the_program_name_and_the_launch_of_an_export() -> None:
    (reading,) = [READ(container) for container in containers("cuda")]
    assert [entry.workgroup_bytes for entry in reading.entry_points] == [0, 20]
    reading = READ(
        cuda([(0, b"kernel", 48, b"main$async_kernel")], [PTX], source=b"x" * 100)
    )
    assert [(entry.name, entry.workgroup_bytes) for entry in reading.entry_points] == [
        ("main$async_kernel", 48)
    ]
    assert (reading.parts["sources"], reading.parts["header"]) == (100, 64)
    two = PTX + PTX.replace(b".version 7.6\n", b"").replace(b"kernel", b"other")
    reading = READ(
        cuda(
            [(0, b"other", 1, b""), (1, b"kernel", 2, b""), (0, b"kernel", 3, b"")],
            [two, PTX],
        )
    )
    launches = [(entry.name, entry.workgroup_bytes) for entry in reading.entry_points]
    assert launches == [("other", 1), ("kernel", 2), ("kernel", 3)]


@pytest.mark.parametrize(
    ("exports", "message"),
    [
        ([(1, b"kernel", 0, b"")], "export 'kernel' names module 1"),
        ([(0, b"absent", 0, b"")], "export 'absent' is not in its module"),
    ],
)
def test_exports_without_a_kernel_are_refused(
    exports: list[tuple[int, bytes, int, bytes]], message: str
) -> None:
    with pytest.raises(MalformedBinary, match=message):
        READ(cuda(exports=exports, modules=[PTX]))


def test_an_unknown_identifier_or_version_is_recognised_and_refused() -> None:
    container = next(containers("cuda"))
    bare = next(containers("cuda", "dense-3.8.0"))
    unknown = container.replace(b"CDA1", b"NEW1")
    assert CONTAINER.accepts(unknown) and not CONTAINER.accepts(
        bare.replace(b"CDA1", b"NEW1")
    )
    with pytest.raises(MalformedBinary, match="unknown container b'NEW1', version 0"):
        READ(unknown)
    with pytest.raises(MalformedBinary, match="version 1"):
        READ(container[:4] + b"\1" + container[5:])


@pytest.mark.parametrize("magic", [b"CDA1", b"HIP1", b"VKE1", b"MTL1"])
def test_a_constant_with_an_identifier_in_it_is_no_executable(magic: bytes) -> None:
    for start in (b"\x0c\0\0\0", bytes(4), b"\xff" * 4):
        assert not CONTAINER.accepts(start + magic + bytes(200))
        assert not CONTAINER.accepts(start + magic)


def test_modules_that_overlap_are_refused() -> None:
    data = cuda(exports=[], modules=[PTX, PTX])
    first, second = (
        find(len(PTX).to_bytes(4, "little") + PTX) for find in (data.index, data.rindex)
    )
    # The first module's string now claims to reach into the second.
    with pytest.raises(MalformedBinary, match="share the byte"):
        READ(
            data[:first]
            + (second + 8 - first).to_bytes(4, "little")
            + data[first + 4 :]
        )


def cuda(
    exports: list[tuple[int, bytes, int, bytes]],
    modules: list[bytes],
    source: bytes = b"",
) -> bytes:
    """A container: exports as module ordinal, kernel, workgroup bytes and debug name."""
    builder = flatbuffers.Builder(1024)
    module_tables = [
        table(builder, {0: builder.CreateString(module)}) for module in modules
    ]
    export_tables = []
    for ordinal, kernel, launch_bytes, debug_name in exports:
        name = builder.CreateString(kernel)
        debug = table(builder, {0: builder.CreateString(debug_name)})
        export_tables.append(
            table(builder, {1: name, 6: debug}, {0: ordinal, 3: launch_bytes})
        )
    sources = [table(builder, {1: builder.CreateByteVector(source)})] if source else []
    vectors = {
        slot: vector(builder, tables)
        for slot, tables in enumerate((export_tables, module_tables, sources))
    }
    builder.Finish(table(builder, vectors), file_identifier=b"CDA1")
    content = bytes(builder.Output())
    return b"CDA1" + bytes(4) + len(content).to_bytes(8, "little") + bytes(48) + content


def table(
    builder: flatbuffers.Builder,
    offsets: dict[int, int],
    numbers: dict[int, int] | None = None,
) -> int:
    builder.StartObject(16)
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


# Flatbuffers whose offsets and counts cannot be followed.


def test_offsets_outside_of_the_file_and_endless_vectors_and_names_are_refused() -> (
    None
):
    """A field that the writer did not know of is one that is not there."""
    builder = flatbuffers.Builder(64)
    name = builder.CreateString("x" * 1025)
    many = vector(builder, [0] * (MAX_TABLES + 1))
    builder.Finish(table(builder, {1: name, 2: many}, {0: 7}), file_identifier=b"TEST")
    data = bytearray(builder.Output())
    root = root_table(
        bytes(data),
        start=0,
        expected=b"TEST",
        where="test",
        fields="number text children newer",
    )
    assert (
        root.scalar("number", UINT32),
        root.text("newer"),
        root.scalar("of another schema", UINT32),
    ) == (7, "", 0)
    with pytest.raises(MalformedBinary, match="a vector of 65537 tables"):
        next(root.tables("children", ""))
    with pytest.raises(MalformedBinary, match="a name of 1025 bytes"):
        root.text("text")
    data[root.position : root.position + 4] = (root.position + 2).to_bytes(4, "little")
    with pytest.raises(MalformedBinary, match="at offset -2"):
        root_table(
            bytes(data), start=0, expected=b"TEST", where="test", fields="number"
        ).scalar("number", UINT32)
    with pytest.raises(
        MalformedBinary, match="no flatbuffer with the identifier b'ELSE'"
    ):
        root_table(bytes(data), start=0, expected=b"ELSE", where="test", fields="")
