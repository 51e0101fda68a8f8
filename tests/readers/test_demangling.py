"""Names of C++ functions: their stems, and a name that no one can read."""

from __future__ import annotations

import pytest

from bot.readers.demangling import demangled, stem_of

STEMS = {
    "_ZL14flash_attn_extILi64ELi2EEvPKcS1_f": "flash_attn_ext",
    "_ZN2at6native6kernelEPfi": "at::native::kernel",
    "_ZN3FooIiE3barEv": "Foo::bar",
    "_ZN3FooIiE3bazIfEET_S2_": "Foo::baz",
    "_ZN12_GLOBAL__N_14sameERKN4View1SE": "{anonymous}::same",
    "_ZNK1a1KclEi": "a::K::operator()",
    "_ZN1a1KltERKS0_": "a::K::operator<",
    "_ZNK1a1KcvmEv": "a::K::operator unsigned long",
    "_ZlsRSoRK3Foo": "operator<<",
    "_Znwm": "operator new",
    "_ZN1a1KC2Ei": "a::K::K",
    "_ZN1a1KD0Ev": "a::K::~K",
    "_Z3fptIiEPFiiET_.isra.0": "fpt",
    "_ZZ3useRK4ViewiENKUliE0_clEi": "use::{lambda#2}::operator()",
    "_Z1fB5cxx11v": "f",
    "_ZThn8_N1A1bEv": "thunk to A::b",
    "_Z3fooi.cold": "foo.cold",
    "_Z3fooi.part.0.constprop.1": "foo.part",
    "_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
    "attn_fwd": "attn_fwd",
    "own.constprop.0": "own",
    "_Zbroken": "_Zbroken",
}


def test_stems_are_qualified_names_without_what_a_function_takes() -> None:
    texts = demangled(STEMS)
    assert {name: stem_of(name, texts.get(name)) for name in STEMS} == STEMS


@pytest.mark.parametrize("levels", [20, 100])
def test_a_name_that_doubles_with_each_parameter_ends(levels: int) -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names = [
        "S_",
        *(
            f"S{digits[i // 36]}{digits[i % 36]}_".replace("S0", "S", 1)
            for i in range(levels)
        ),
    ]
    bomb = "_Z1f1AIiiE" + "".join(
        f"S_I{names[i + 1]}{names[i + 1]}E" for i in range(levels)
    )
    texts = demangled([bomb])
    assert sum(map(len, texts.values())) < 10_000
