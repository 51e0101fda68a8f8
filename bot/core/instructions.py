"""The words in which `Dispatch.instructions` counts machine code: one table for every format.

Each instruction that is counted has exactly one of `CLASSES`, so these add up to `total`. The rest of the table says
more of the same instructions, and an instruction may have several of them.

| name | on every format | exactly |
|---|---|---|
| `load`, `store` | move values from and to memory, and nothing else | x86-64 `add rax, [rsi]` is arithmetic |
| `arithmetic` | integer, floating-point, logic, addresses, conversions | matrix instructions too |
| `compare` | make a flag, a mask or a truth value | `cmp`, `setp`, `vmfeq`, `cset` |
| `select` | take one of two values | `cmov`, `csel`, `blend`, `selp`, `vmerge` |
| `move` | between registers, or a constant into one | CUDA `mov`, SPIR-V `OpCopyObject` |
| `shuffle` | put the parts of vectors in other places | `vperm`, `zip`, `vrgather`, `shfl`, `OpCompositeExtract` |
| `branch` | jumps, conditional or not, and returns | |
| `call` | call another function | |
| `other` | none of these | `nop`, fences, barriers, `vsetvli`, `vzeroupper` |
| `total` | all of them | |
| `vector` | those of any class that work on whole vectors | x86-64 packed; CUDA `.v4`, matrices |
| `spill` | those that access its own frame, by stack or frame pointer | also small buffers there; CUDA: `.local` |
| `whole_register` | RISC-V: loads and stores of whole vector registers: so they are spilled | `vs8r.v` |
| `loop` | those that jump back within the function; SPIR-V: its loops | |
| `vector_bits` | no count: the widest vector of all `vector` | absent where the format leaves it to the machine |

Unknown are those of rocm (no decoder here knows AMD's instructions; its metadata has registers and spills),
metal-spirv (source, of which the device's compiler makes code) and vmvx (bytecode; its operations are the last IR's),
and those of a CPU function with bytes that the decoder does not know: RISC-V extensions for vendors, instructions newer
than capstone.
"""

from __future__ import annotations

CLASSES = ("load", "store", "arithmetic", "compare", "select", "move", "shuffle", "branch", "call", "other")
TOTAL, VECTOR, SPILL, LOOP, VECTOR_BITS = "total", "vector", "spill", "loop", "vector_bits"
WHOLE_REGISTER = "whole_register"
