"""Instructions of a function in machine IR."""

from __future__ import annotations

from bot.readers.machine_code import machine_instructions

TEXT = """--- |
  define void @"main$f"() {
    ret void
  }
...
---
name:            'main$f'
body:             |
  bb.0 (%ir-block.0):
    successors: %bb.1(0x80000000)
    liveins: $rdi

    %0:gr64 = COPY $rdi
    early-clobber renamable $rax, $rbx = nofpexcept MOV64rm $rdi, 1, $noreg, 8, $noreg :: (load (s64) from %ir.1)
    ; a comment
    BUNDLE implicit-def $r0 {
      $r0 = ADDI $r0, 1
    }
    CFI_INSTRUCTION def_cfa_offset 16

  bb.1:
    %1:gr64 = COPY %0
    RET64
...
---
name:            other
body:             |
  bb.0:
    RET64
...
"""


def test_instructions_of_the_named_function_are_counted() -> None:
    counted = machine_instructions(TEXT, "main_f")
    assert counted == {"COPY": 2, "MOV64rm": 1, "BUNDLE": 1, "ADDI": 1, "RET64": 1}
    assert machine_instructions(TEXT, "other") == {"RET64": 1}


def test_a_function_that_is_not_there_has_no_counts() -> None:
    assert machine_instructions(TEXT, "third") is None
    assert machine_instructions("", "f") is None
    assert machine_instructions(TEXT + TEXT, "other") is None
