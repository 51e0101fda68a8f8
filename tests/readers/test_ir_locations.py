"""Components from the text of locations: the notation of MLIR's language reference, any other text, real ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.readers.ir_worker.ir_program import COMPONENT_CHARACTERS, component_of


@pytest.mark.parametrize(
    ("location", "component"),
    [
        ("unknown", None),
        ('"net.py":3:14', None),
        ('"net.py":3:14 to 5:2', None),
        ('"net.py":3:14 to :20', None),
        ('"encoder.layer.0"', "encoder.layer.0"),
        ('"encoder.layer.0"("net.py":3:14)', "encoder.layer.0"),
        ('"outer"("inner")', "outer"),
        (r'"a \22quoted\22 \\ name"(unknown)', 'a "quoted" \\ name'),
        (r'"caf\C3\A9"', "café"),
        (r'"line\0Abreak\09tab\1B[0m"', "line?break?tab?[0m"),
        (r'"\FF\FEbytes"', "��bytes"),
        ('"conv1;relu;bias"("m.tflite":0:0)', "conv1"),
        ('";relu"', None),
        ('""', None),
        ('"<root>"', None),
        ('"%0"', None),
        ('"12"', None),
        ('" spaced "', " spaced "),
        ('callsite("layer" at "model")', "layer"),
        ('callsite("net.py":1:1 at "model")', None),
        ('callsite(callsite("deep"("a":1:1) at "b") at callsite("c" at unknown))', "deep"),
        ('fused["net.py":1:1, unknown, "second", "third"]', "second"),
        ('fused["net.py":1:1, callsite("f.py":1:1 at "no"), callsite("yes" at "no")]', "yes"),
        ("fused[]", None),
        ('fused[fused["a.py":1:1 to 2:3, "<root>"], fused<1 : i32>["x"], "y"]', "x"),
        ('fused<"meta">["a"]', "a"),
        ('fused<{k = "]>\\22", m = affine_map<(d0) -> (d0)>, s = affine_set<(d0) : (d0 >= 0)>}>[unknown, "a"]', "a"),
        ('"with, (brackets] <in> it"', "with, (brackets] <in> it"),
        ('fused["f(":1:1, "b"]', "b"),
        ("#alias", None),
    ],
)
def test_the_component_of_a_location(location: str, component: str | None) -> None:
    assert component_of(f"loc({location})") == component


def test_a_long_name_is_cut() -> None:
    assert component_of(f'loc("{"ab" * 500}")') == "ab" * (COMPONENT_CHARACTERS // 2)


@given(st.text() | st.text(alphabet='lcfused"()[]<>at,: 0\\;xn'))
def test_any_text_gives_a_line_or_nothing(text: str) -> None:
    for location in (text, f"loc({text})", f"loc(fused[{text}", f"loc(callsite({text}"):
        component = component_of(location)
        assert component is None or (component.isprintable() and 0 < len(component) <= COMPONENT_CHARACTERS)
