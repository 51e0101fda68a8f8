"""Instructions by class: against disassemblers and tables that the bot does not use."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest
from elf_files import tiny_object
from hypothesis import given
from hypothesis import strategies as st
from reader_checks import BINARIES, fixture

from bot.core.codec.counts import counts_of
from bot.core.instructions import CLASSES
from bot.readers.code import classes_aarch64, classes_riscv, classes_x86
from bot.readers.code.instruction_counts import InstructionCounts, together
from bot.readers.code.machine_code import CHUNK_BYTES, EM_AARCH64, EM_RISCV, EM_X86_64, counter_for
from bot.readers.code.object_code import function_codes
from bot.readers.formats.artifact import read_artifact
from bot.readers.formats.elf import MACHINE_AT, parse_elf
from bot.readers.formats.ptx import PtxReader
from bot.readers.formats.ptx import count_instructions as count_ptx
from bot.readers.formats.spirv import SpirvReader

VECTORS = ("--mattr=+m,+a,+f,+d,+v",)
DISASSEMBLED = [
    ("dense.llvm-cpu-x86_64.o", "llvm-objdump", ()),
    ("dense.llvm-cpu-x86_64.o", "objdump", ()),
    ("dense.llvm-cpu-aarch64.o", "llvm-objdump", ()),
    ("dense.llvm-cpu-riscv64.o", "llvm-objdump", VECTORS),
]
BRANCH = {
    "x86": r"j\w+|rep[z ]*ret|ret[lq]?",
    "aarch64": r"b|b\.\w+|br|cbn?z|tbn?z|ret",
    "riscv64": r"b\w+|j|jr|ret|tail",
}
CALL = {"x86": r"call[lq]?", "aarch64": r"blr?", "riscv64": r"jal|jalr|call"}
COMPARE = {
    "x86": r"cmp[bwlq]?|test[bwlq]?|set\w+|v?u?comis[sd]|v?p?cmp\w+",
    "aarch64": r"cm[pn]|tst|f?ccm[pn]|fcmp|csetm?|f?cm(?:eq|g[te]|l[te]|hi|hs)",
    "riscv64": r"s(?:lt|nez|eqz|ltz|gtz)\w*|f(?:eq|lt|le)\.\w+|vmf?(?:s?eq|s?ne|s?l[te]|s?g[te])u?\.\w\w",
}
SELECT = {"x86": r"cmov\w+|v?p?blend\w+", "aarch64": r"f?csel|csin\w|cinc|b(?:sl|it|if)", "riscv64": r"vf?merge\.\w+"}
VECTOR = {"riscv64": r"v(?!set)\w+\.?.*"}
MEMORY = {
    "aarch64": (r"ld\w+", r"st\w+"),
    "riscv64": (r"l[bhwd]u?|fl[hwd]|vl\w+\.\w+", r"s[bhwd]|fs[hwd]|vs\w*e\d+\.v|vs\dr\.v"),
}


def machine_of(name: str) -> str:
    return next(machine for machine in BRANCH if machine in name)


def disassembled(name: str, tool: str, options: tuple[str, ...]) -> dict[str, list[tuple[int, str, str]]]:
    """Function → address, mnemonic and operands of each instruction, as the tool prints them."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not here")
    command = [tool, "-d", "--no-show-raw-insn", *options, str(BINARIES / name)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[tuple[int, str, str]]] = {}
    lines: list[tuple[int, str, str]] = []
    for line in text.splitlines():
        head = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if head and not head[1].startswith(".L"):
            lines = found[head[1]] = []
        elif (each := re.match(r"\s*([0-9a-f]+):\s*([\w.]+)\s*(.*)$", line)) and not head:
            lines.append((int(each[1], 16), each[2], each[3]))
    return found


def matching(rows: list[tuple[int, str, str]], pattern: str) -> int:
    return sum(re.fullmatch(pattern, mnemonic) is not None for _, mnemonic, _ in rows)


def jumps_back(rows: list[tuple[int, str, str]], branch: str) -> int:
    targets = [
        (at, re.search(r"(?:^|[ ,])(?:0x)?([0-9a-f]+) <", more))
        for at, name, more in rows
        if re.fullmatch(branch, name)
    ]
    return sum(target is not None and int(target[1], 16) < at for at, target in targets)


@pytest.mark.parametrize(("name", "tool", "options"), DISASSEMBLED)
def test_totals_and_control_flow_are_those_of_a_disassembler(name: str, tool: str, options: tuple[str, ...]) -> None:
    machine, functions = machine_of(name), function_codes(fixture(name))
    listed = disassembled(name, tool, options)
    assert listed.keys() == functions.keys()
    for function, rows in listed.items():
        counts = counts_of(functions[function].instructions or "")
        expected = {
            "total": len(rows),
            "branch": matching(rows, BRANCH[machine]),
            "call": matching(rows, CALL[machine]),
            "compare": matching(rows, COMPARE[machine]),
            "select": matching(rows, SELECT[machine]),
            "loop": jumps_back(rows, BRANCH[machine]),
        }
        assert {key: counts[key] for key in expected} == expected, function


@pytest.mark.parametrize(("name", "options"), [("dense.llvm-cpu-aarch64.o", ()), ("dense.llvm-cpu-riscv64.o", VECTORS)])
def test_memory_and_vectors_are_those_of_a_disassembler(name: str, options: tuple[str, ...]) -> None:
    machine, functions = machine_of(name), function_codes(fixture(name))
    loads, stores = MEMORY[machine]
    for function, rows in disassembled(name, "llvm-objdump", options).items():
        counts = counts_of(functions[function].instructions or "")
        assert (counts["load"], counts["store"]) == (matching(rows, loads), matching(rows, stores)), function
        if machine in VECTOR:
            assert counts["vector"] == matching(rows, VECTOR[machine]), function


def test_the_frame_of_x86_is_that_of_a_disassembler() -> None:
    name = "dense.llvm-cpu-x86_64.o"
    for function, rows in disassembled(name, "llvm-objdump", ()).items():
        text = "\n".join(f"{mnemonic} {operands}" for _, mnemonic, operands in rows)
        base = r"%r[sb]p" if "movq %rsp, %rbp" in text else "%rsp"
        expected = len(re.findall(rf"^(?:push|pop).*|^(?!lea|nop).*\({base}[,)]", text, re.MULTILINE))
        assert counts_of(function_codes(fixture(name))[function].instructions or "")["spill"] == expected, function


@pytest.mark.parametrize("name", ["dense.llvm-cpu-x86_64.o", "dense.llvm-cpu-aarch64.o", "dense.llvm-cpu-riscv64.o"])
def test_classes_add_up_and_few_are_other(name: str) -> None:
    for function, code in function_codes(fixture(name)).items():
        counts = counts_of(code.instructions or "")
        assert sum(counts[each] for each in CLASSES) == counts["total"] > 0
        assert counts["other"] <= counts["total"] / 4 or counts["total"] < 60, function


def test_what_a_real_dispatch_consists_of() -> None:
    code = function_codes(fixture("dense.llvm-cpu-x86_64.o"))["main_dispatch_0_matmul_48x96x40_f32"]
    assert code.instructions == (
        "arithmetic 122 branch 3 compare 3 load 84 loop 2 move 8 other 3 select 1 spill 16 store 16 total 240 "
        "vector 152 vector_bits 256"
    )


@pytest.mark.parametrize(
    ("mnemonic", "operands", "name"),
    [
        ("mov", "qword ptr [rsp + 8], rax", "store"),
        ("mov", "rax, qword ptr [rsp + 8]", "load"),
        ("mov", "rax, rbx", "move"),
        ("vbroadcastss", "ymm0, dword ptr [rax]", "load"),
        ("vbroadcastss", "ymm0, xmm0", "shuffle"),
        ("vextractf128", "xmmword ptr [rax], ymm0, 1", "store"),
        ("vmaskmovps", "ymm0, ymm1, ymmword ptr [rax]", "load"),
        ("vpermps", "ymm0, ymm1, ymm2", "shuffle"),
        ("vpcmpeqd", "ymm0, ymm1, ymm2", "compare"),
        ("cmpxchg", "dword ptr [rax], ecx", "arithmetic"),
        ("vfmadd231ps", "zmm0, zmm1, zmmword ptr [rax]", "arithmetic"),
        ("rep movsb", "byte ptr [rdi], byte ptr [rsi]", "store"),
        ("vzeroupper", "", "other"),
        ("notrack jmp", "rax", "branch"),
    ],
)
def test_x86_mnemonics(mnemonic: str, operands: str, name: str) -> None:
    found = classes_x86.class_of(mnemonic)
    assert (classes_x86.decided(found, operands) if found in ("moving", "spreading") else found) == name


@pytest.mark.parametrize(
    ("mnemonic", "operands", "bits"),
    [
        ("vaddps", "zmm0, zmm1, zmm2", 512),
        ("vaddss", "xmm0, xmm1, xmm2", 0),
        ("vpabsd", "xmm0, xmm1", 128),
        ("vpdpbusd", "ymm0, ymm1, ymm2", 256),
        ("vcvtsi2sd", "xmm0, xmm1, rax", 0),
        ("vcvttss2si", "eax, xmm0", 0),
        ("vcvttps2dq", "ymm0, ymm1", 256),
        ("vpmovsxwd", "ymm0, xmm1", 256),
        ("vmovd", "xmm0, eax", 0),
        ("vmovsd", "xmm0, qword ptr [rax]", 0),
        ("vbroadcastsd", "ymm0, xmm1", 256),
        ("comiss", "xmm0, xmm1", 0),
        ("add", "rax, rbx", 0),
    ],
)
def test_only_packed_instructions_of_x86_are_vectors(mnemonic: str, operands: str, bits: int) -> None:
    assert classes_x86.vector_bits(mnemonic, operands) == bits


@pytest.mark.parametrize(
    ("operands", "bits"),
    [
        ("v0.4s, v1.4s, v2.s[0]", 128),
        ("v0.2s, v1.2s", 64),
        ("q0, [x0]", 128),
        ("z0.s, p0/m, z1.s", 0),
        ("s0, s1", None),
    ],
)
def test_vectors_of_aarch64(operands: str, bits: int | None) -> None:
    assert classes_aarch64.vector_bits(operands) == bits


RISCV = """
0008 arithmetic 1 total 1 | addi s0, sp, 16
c841 load 1 total 1 | lw a0, 4(a1)
0864 load 1 total 1 | ld a0, 8(s0)
08e4 store 1 total 1 | sd a0, 8(s0)
0100 other 1 total 1 | nop
0505 arithmetic 1 total 1 | addi a0, a0, 1
0d45 move 1 total 1 | li a0, 3
0d65 move 1 total 1 | lui a0, 3
3d71 arithmetic 1 total 1 | addi sp, sp, -32
0d8d arithmetic 1 total 1 | sub a0, a0, a1
f5bf branch 1 loop 1 total 1 | j -4
01c5 branch 1 total 1 | beqz a0, 8
65fd branch 1 loop 1 total 1 | bnez a0, -8
a260 load 1 spill 1 total 1 | ld ra, 8(sp)
06e4 spill 1 store 1 total 1 | sd ra, 8(sp)
8280 branch 1 total 1 | ret
2e85 move 1 total 1 | mv a0, a1
8295 call 1 total 1 | jalr a1
2e95 arithmetic 1 total 1 | add a0, a0, a1
0290 other 1 total 1 | ebreak
17050000 arithmetic 1 total 1 | auipc a0, 0
33a5c500 compare 1 total 1 | slt a0, a1, a2
13b51500 compare 1 total 1 | seqz a0, a1
3385c502 arithmetic 1 total 1 | mul a0, a1, a2
e30cb5fe branch 1 loop 1 total 1 | beq a0, a1, -8
ef000001 call 1 total 1 | jal 16
0f00f00f other 1 total 1 | fence
07250500 load 1 total 1 | flw fa0, 0(a0)
5325b5a0 compare 1 total 1 | feq.s a0, fa0, fa1
5385b520 move 1 total 1 | fmv.s fa0, fa1
5395b520 arithmetic 1 total 1 | fneg.s fa0, fa1
530505e0 move 1 total 1 | fmv.x.w a0, fa0
43f5c568 arithmetic 1 total 1 | fmadd.s fa0, fa1, fa2, fa3
57f5050d other 1 total 1 | vsetvli a0, a1, e32, m1, ta, ma
07600502 load 1 total 1 vector 1 | vle32.v v0, (a0)
27600102 spill 1 store 1 total 1 vector 1 | vse32.v v0, (sp)
07058502 load 1 total 1 vector 1 whole_register 1 | vl1re8.v v10, (a0)
27048ce2 store 1 total 1 vector 1 whole_register 1 | vs8r.v v8, (s8)
07608506 load 1 total 1 vector 1 | vluxei32.v v0, (a0), v8
57001102 arithmetic 1 total 1 vector 1 | vadd.vv v0, v1, v2
57b01062 compare 1 total 1 vector 1 | vmseq.vi v0, v1, 1
57101166 compare 1 total 1 vector 1 | vmfle.vv v0, v1, v2
5730005e move 1 total 1 vector 1 | vmv.v.i v0, 0
57250042 move 1 total 1 vector 1 | vmv.x.s a0, v0
57150042 move 1 total 1 vector 1 | vfmv.f.s fa0, v0
57a51842 arithmetic 1 total 1 vector 1 | vfirst.m a0, v1
57b0103e shuffle 1 total 1 vector 1 | vslidedown.vi v0, v1, 1
57001132 shuffle 1 total 1 vector 1 | vrgather.vv v0, v1, v2
5720115e shuffle 1 total 1 vector 1 | vcompress.vm v0, v1, v2
57b0209e move 1 total 1 vector 1 | vmv2r.v v0, v2
57201166 arithmetic 1 total 1 vector 1 | vmand.mm v0, v1, v2
"""
"""Encodings by `llvm-mc -triple riscv64 -mattr=+m,+a,+f,+d,+c,+v -show-encoding`, each with what it is."""


@pytest.mark.parametrize("row", RISCV.strip().splitlines())
def test_riscv_instructions(row: str) -> None:
    code, text = row.partition(" |")[0].split(" ", 1)
    counts = classes_riscv.count(bytes.fromhex(code))
    assert counts is not None and counts.text() == text


@pytest.mark.parametrize("code", ["0000", "13", "6f00", "7b000000", "1f00000000000000"])
def test_what_is_no_riscv_instruction_of_the_tables_is_not_counted(code: str) -> None:
    assert classes_riscv.count(bytes.fromhex(code)) is None


def counter(machine: int) -> Callable[[bytes], InstructionCounts | None]:
    data = bytearray(tiny_object(64, "<"))
    data[MACHINE_AT : MACHINE_AT + 2] = machine.to_bytes(2, "little")
    found = counter_for(parse_elf(bytes(data)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("machine", "bad"), [(EM_X86_64, "9006"), (EM_AARCH64, "1f2003d5ffffffff"), (EM_RISCV, "00000000")]
)
def test_code_that_cannot_be_decoded_to_its_end_has_no_counts(machine: int, bad: str) -> None:
    assert counter(machine)(bytes.fromhex(bad)) is None


@pytest.mark.parametrize(("bits", "order", "machine"), [(32, "<", 62), (64, ">", 62), (64, "<", 8)])
def test_other_machines_have_no_counts(bits: int, order: str, machine: int) -> None:
    data = bytearray(tiny_object(bits, order))
    data[MACHINE_AT : MACHINE_AT + 2] = machine.to_bytes(2, "little" if order == "<" else "big")
    assert function_codes(bytes(data))["kernel"].instructions is None


@pytest.mark.parametrize("lead", range(11))
def test_an_instruction_across_two_chunks_counts_once(lead: int) -> None:
    """`movabs rax, …` has ten bytes, `nop` one."""
    movabs = bytes.fromhex("48b80102030405060708")
    code = b"\x90" * lead + movabs * (3 * CHUNK_BYTES // len(movabs))
    counts = counter(EM_X86_64)(code)
    assert counts is not None
    assert counts.classes == Counter(other=lead, move=3 * CHUNK_BYTES // len(movabs)) - Counter()


@pytest.mark.parametrize("machine", [EM_X86_64, EM_AARCH64, EM_RISCV])
@given(code=st.binary(max_size=400))
def test_any_bytes_give_counts_or_none(machine: int, code: bytes) -> None:
    counts = counter(machine)(code)
    assert counts is None or sum(counts.classes.values()) <= len(code)


def test_functions_of_one_name_add_up() -> None:
    one = InstructionCounts(Counter(load=2), vectors=1, spills=1, loops=0, vector_bits=128)
    other = InstructionCounts(Counter(load=1, call=1), vectors=0, spills=2, loops=1, vector_bits=256)
    assert together([one, other]).text() == "call 1 load 3 loop 1 spill 3 total 4 vector 1 vector_bits 256"


PTX = b"""
\t.reg .b32 %r<3>;
\tld.param.b64 %rd1, [k_param_0];
\tmov.b32 %r1, 0;
$L__BB0_1:
\tld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
\tfma.rn.f32 %f5, %f1, %f2, %f3;
\tst.local.b32 [%rd2], %f5;
\tsetp.lt.s32 %p1, %r1, 4;
\t{ // callseq 0, 0
\t.param .b32 param0;
\tst.param.b32 [param0], %r1;
\tcall.uni (retval0), f, (param0);
\t}
\t@!%p1 bra $L__BB0_3;
\t@%p1 bra $L__BB0_1;
$L__BB0_3: $L__BB0_4:
\twmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%rd1];
\twmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f1}, {%r1}, {%r2}, {%f1};
\tbar.sync 0;
\tret;
"""


def test_ptx_instructions() -> None:
    body = re.sub(rb"//[^\n]*", b" ", PTX)
    assert count_ptx(body).text() == (
        "arithmetic 2 branch 3 call 1 compare 1 load 3 loop 1 move 1 other 1 spill 1 store 2 total 14 vector 3 "
        "vector_bits 128"
    )


def test_the_total_of_real_ptx_is_its_statements() -> None:
    text = fixture("dense.cuda.ptx").decode()
    bodies = re.findall(r"^\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    expected = [len(re.findall(r"^\t(?:@!?%p\d+ \t?)?[a-z][^\n]*;", body, re.MULTILINE)) for body in bodies]
    entries = PtxReader().read(fixture("dense.cuda.ptx")).entry_points
    assert [counts_of(entry.instructions or "")["total"] for entry in entries] == expected


@given(body=st.binary(max_size=200))
def test_any_text_gives_counts(body: bytes) -> None:
    assert sum(count_ptx(body).classes.values()) <= body.count(b";") + 1


def test_spirv_instructions() -> None:
    """Of `dense.vulkan-spirv.0.spv`; operations as the dump of the compiler's own SPIR-V dialect counts them."""
    (entry,) = SpirvReader().read(fixture("dense.vulkan-spirv.0.spv")).entry_points
    assert entry.instructions == (
        "arithmetic 67 branch 4 compare 1 load 20 loop 1 move 4 shuffle 51 store 6 total 153 vector 71 vector_bits 128"
    )


@pytest.mark.parametrize("target", ["metal-spirv", "rocm", "vmvx"])
def test_formats_that_nobody_here_decodes_say_nothing(target: str) -> None:
    entries = [
        entry for each in read_artifact(fixture(f"dense.{target}.vmfb")).executables for entry in each.entry_points
    ]
    assert entries and all(entry.instructions is None for entry in entries)


@pytest.mark.parametrize("target", ["cuda", "vulkan-spirv"])
def test_artifacts_of_gpus_have_instructions(target: str) -> None:
    entries = [
        entry for each in read_artifact(fixture(f"dense.{target}.vmfb")).executables for entry in each.entry_points
    ]
    for entry in entries:
        counts = counts_of(entry.instructions or "")
        assert sum(counts[each] for each in CLASSES) == counts["total"] > 50
