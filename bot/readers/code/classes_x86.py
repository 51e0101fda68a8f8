"""x86-64 instructions by class, from the mnemonics and operands that capstone prints in Intel syntax.

Mnemonics: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2. A mnemonic that no rule knows is
`other`.
"""

from __future__ import annotations

import re
from functools import lru_cache

PREFIXES = re.compile(r"^(?:(?:rep|repe|repne|repz|repnz|lock|notrack|bnd|data16|xacquire|xrelease) )+")
MOVING, SPREADING = "moving", "spreading"
"""Decided by the operands: to memory is a store, from memory a load, else a move or a shuffle."""
RULES = (
    (r"call", "call"),
    (r"j\w+|ret\w*|loop\w*", "branch"),
    (r"push\w*|stos[bwdq]", "store"),
    (r"pop|popf\w*|lods[bwdq]|v?p?gather\w+|v?lddqu|leave", "load"),
    (r"v?p?scatter\w+", "store"),
    (r"cmp|test|v?u?comis[sdh]|v?p?testn?m?[bwdq]?|v?test(?:ps|pd)|k(?:or)?test[bwdq]|set\w+", "compare"),
    (r"v?p?cmp(?!xchg)\w+", "compare"),
    (r"cmov\w+|v?p?blend\w+", "select"),
    (r"v?p?broadcast\w+|v?p?extr\w+", SPREADING),
    (r"v?(?:p|mask|pmask)?mov(?!s[lh]dup|ddup|hlps|lhps)\w*|kmov\w|xchg", MOVING),
    (r"v?mov(?:s[lh]dup|ddup|hlps|lhps)|v?p?shuf\w+|v?p?unpck\w+|v?perm\w+|v?p?insr?\w+", "shuffle"),
    (r"v?p?alignr|valign\w|v?pack\w+|v?p?(?:compress|expand)\w+|kunpck\w+|kshift\w+", "shuffle"),
    (r"add|adc|sub|sbb|i?mul|i?div|inc|dec|neg|not|andn?|or|xor|shl|shr|sal|sar|shld|shrd|ro[lr]|rc[lr]", "arithmetic"),
    (r"(?:shl|shr|sar|ror|mul|adc|ado)x|lea|bt[src]?|bs[fr]|bzhi|bls\w+|bextr|pext|pdep|popcnt|[lt]zcnt", "arithmetic"),
    (r"bswap|cdqe?|cqo|cbw|cwde?|xadd|cmpxchg\w*|crc32", "arithmetic"),
    (
        r"v?(?:add|sub|mul|div|max|min|sqrt|rsqrt|rcp|round|rndscale|scalef|reduce|range)(?:14|28)?[ps][sdh]",
        "arithmetic",
    ),
    (r"v?(?:andn?|x?or|h?add|hsub|addsub|dp)p[sd]|v?cvt\w+|vf\w*m(?:add|sub|addsub|subadd)\w+", "arithmetic"),
    (r"v?p(?:h?add|h?sub|mul|madd|max|min|andn?|x?or|s[lr]l|sra|s[lr]av|sign|abs|avg|rol|ror)\w*", "arithmetic"),
    (r"v?m?psadbw|vpternlog[dq]|vpdp\w+|vgetexp\w+|vgetmant\w+|vfixup\w+|vpopcnt\w|vplzcnt\w", "arithmetic"),
    (r"k(?:andn?|x?n?or|not|add)[bwdq]", "arithmetic"),
)
"""Patterns of whole mnemonics; the first that fits decides."""
_RULES = tuple((re.compile(pattern), name) for pattern, name in RULES)
SCALAR = re.compile(r"(?!v?p).*(?:s[sdh]|[sdu]2u?s[ihsd]\w*|2s[sdh])|v?mov[dq]|v?comis.|v?ucomis.")
"""Mnemonics that use one lane of a vector register, if they use one at all."""
WIDTH_OF = (("zmm", 512), ("ymm", 256), ("xmm", 128))
STACK = re.compile(r"\[rsp\b")
FRAME = re.compile(r"\[r[sb]p\b")
IMPLICIT = frozenset({"push", "pop", "pushfq", "popfq", "leave"})


@lru_cache(maxsize=4096)
def class_of(mnemonic: str) -> str:
    """The class of a mnemonic, or MOVING or SPREADING."""
    bare = PREFIXES.sub("", mnemonic)
    return next((name for pattern, name in _RULES if pattern.fullmatch(bare)), "other")


@lru_cache(maxsize=4096)
def is_scalar(mnemonic: str) -> bool:
    """True for what uses one lane of a vector register."""
    return SCALAR.fullmatch(mnemonic) is not None and "broadcast" not in mnemonic


def decided(name: str, operands: str) -> str:
    """The class of what is MOVING or SPREADING: the operand that it writes comes first."""
    target, _, _ = operands.partition(",")
    if "[" in operands:
        return "store" if "[" in target else "load"
    return "move" if name == MOVING else "shuffle"


def vector_bits(mnemonic: str, operands: str) -> int:
    """Bits of the widest vector register that it uses as a vector; 0 for none."""
    if "mm" not in operands or is_scalar(mnemonic):
        return 0
    return next((bits for register, bits in WIDTH_OF if register in operands), 0)


def makes_frame(mnemonic: str, operands: str) -> bool:
    """True where the base pointer begins to point to the frame."""
    return mnemonic == "mov" and operands == "rbp, rsp"


def uses_frame(mnemonic: str, operands: str, framed: bool) -> bool:
    """True for an access to the frame, pushes and pops too; `framed` says that the base pointer points to it."""
    if "[" not in operands:
        return mnemonic in IMPLICIT
    return mnemonic != "lea" and (FRAME if framed else STACK).search(operands) is not None
