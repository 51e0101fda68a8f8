"""AArch64 instructions by class, from the mnemonics and operands that capstone prints.

Mnemonics: "Arm Architecture Reference Manual for A-profile architecture", chapters C6 and C7. A mnemonic that no rule
knows is `other`.
"""

from __future__ import annotations

import re
from functools import lru_cache

RULES = (
    (r"bl|blra?\w*", "call"),
    (r"b|b\.\w+|br|cbn?z|tbn?z|ret\w*|eret", "branch"),
    (r"ld\w+", "load"),
    (r"st\w+", "store"),
    (r"cm[pn]|tst|f?ccmpe?|ccmn|fcmpe?|csetm?|f?cm(?:eq|g[et]|h[is]|l[et]|tst)|fac(?:ge|gt|le|lt)", "compare"),
    (r"f?csel|csin[cv]|csneg|c(?:inc|inv|neg)|b(?:sl|it|if)", "select"),
    (r"mov|movz|movk|movn|movi|mvni|[fus]mov|mrs", "move"),
    (r"zip[12]|uzp[12]|trn[12]|ext|tb[lx]|dup|ins|rev(?:16|32|64)?", "shuffle"),
    (r"adrp?|adcs?|sbcs?|negs?|ngcs?|ands?|bics?|or[rn]|eo[rn]|mvn|not|(?:ls[lr]|asr|ror)v?|extr|cl[sz]", "arithmetic"),
    (
        r"[us]?(?:add|sub|mul|div|hadd|rhadd|hsub|abd|aba|abs|max|min)[lwspv]*2?|[us]?m(?:add|sub|neg|la|ls)l?2?",
        "arithmetic",
    ),
    (r"[us]m(?:ul[hl]|neg[hl])2?|rbit|cnt|crc32\w+|pmull?2?|[us]adalp|[us]?addhn2?|raddhn2?", "arithmetic"),
    (
        r"[us]?bf(?:m|x|i|iz|xil|c)|[us]xt[bhwl]2?|[us]?q?r?sh[lr](?:ll?|n|un)?2?|[us]r?sra|s[lr]i|[us]?q?xtu?n2?",
        "arithmetic",
    ),
    (r"f(?:add|sub|n?mul|mulx|div|abs|neg|sqrt|abd|n?m(?:add|sub|la|ls)|rint\w|cvt\w*|recp\w|rsqrt\w)", "arithmetic"),
    (
        r"faddp|f(?:max|min)\w*|[us]cvtf|[us]q(?:add|sub|r?dmul|neg|abs)\w*|sqr?dmul\w+|(?:[us]|us|su)?(?:dot|mmla)",
        "arithmetic",
    ),
)
"""Patterns of whole mnemonics; the first that fits decides."""
_RULES = tuple((re.compile(pattern), name) for pattern, name in RULES)
WIDE = re.compile(r"\bv\d+\.(?:16b|8h|4s|2d|1q)|\bq\d")
LANES = re.compile(r"\bv\d+\.\d*[bhsd]|\bz\d+\.")
STACK = re.compile(r"\[sp\b")
FRAME = re.compile(r"\[(?:sp|x29)\b")


@lru_cache(maxsize=4096)
def class_of(mnemonic: str) -> str:
    """The class of a mnemonic."""
    return next((name for pattern, name in _RULES if pattern.fullmatch(mnemonic)), "other")


def vector_bits(operands: str) -> int | None:
    """Bits of the vector registers; None for no vector, 0 where the machine decides (SVE)."""
    if WIDE.search(operands):
        return 128
    found = LANES.search(operands)
    return None if found is None else 0 if found[0].startswith("z") else 64


def makes_frame(mnemonic: str, operands: str) -> bool:
    """True where x29 begins to point to the frame."""
    return mnemonic in ("mov", "add") and operands.startswith("x29, sp")


def uses_frame(operands: str, framed: bool) -> bool:
    """True for an access to the frame; `framed` says that x29 points to it."""
    return "[" in operands and (FRAME if framed else STACK).search(operands) is not None
