"""A model of several layers, made of the text of one."""

from __future__ import annotations

import pytest

from bot.core.layered import NotLayered, with_layers

TEXT = """\
module @m_{layers} attributes {a = 1} {
  // repeat
  global @w{layer}
  // end
  func (%x0) {
    // repeat
    %x{layer} = use %x{previous}, {other}
    // end
    return %x{layers}
"""


def test_each_layer_has_its_number_and_that_of_the_layer_before() -> None:
    assert (
        with_layers(TEXT, 2)
        == "module @m_2 attributes {a = 1} {\n  global @w1\n  global @w2\n  func"
        " (%x0) {\n"
        "    %x1 = use %x0, {other}\n    %x2 = use %x1, {other}\n    return %x2\n"
    )


@pytest.mark.parametrize("layers", [1, 3, 16])
def test_the_number_of_lines_grows_with_the_layers_alone(layers: int) -> None:
    assert len(with_layers(TEXT, layers).splitlines()) == 3 + 2 * layers


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("module {}\n", "the model has no lines between '// repeat' and '// end'"),
        ("", "the model has no lines between '// repeat' and '// end'"),
        ("// repeat\nx\n", "line 1: '// repeat' without '// end'"),
        ("a\n// end\n", "line 2: '// end' without '// repeat'"),
        (
            "// repeat\n// repeat\n// end\n",
            "line 2: '// repeat' inside the repeated lines that begin in line 1",
        ),
    ],
)
def test_a_text_that_has_no_layer_is_refused_with_its_line(
    text: str, reason: str
) -> None:
    with pytest.raises(NotLayered) as caught:
        with_layers(text, 2)
    assert str(caught.value) == reason
