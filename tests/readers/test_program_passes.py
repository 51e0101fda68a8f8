"""What a dispatch consists of before it is one, read from dumps as compilers write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.trace import REGION, DispatchTrace
from bot.readers.program_passes import LOCATION, ProgramReader, joint_places

HEADERS = {
    "3.8.0": "// -----// IR Dump After P ({}) //----- //\n",
    "3.13.0": "// -----// IR Dump After P: {}{{a=b}} //----- //\n",
}
AT = ' loc(callsite("<stdin>":{}:8 at "<stdin>":1:1))'
HOST = "util.func public @main(%arg0: !hal.buffer_view) -> !hal.buffer_view {\n"
ADDED = (
    '  %a = tensor.empty() : tensor<4xf32> loc("<stdin>":2:8)\n'
    + f"""  %0 = linalg.generic {{maps = [#m]}} ins(%x : tensor<4xf32>) outs(%a : tensor<4xf32>) {{
  ^bb0(%in: f32 loc("<stdin>":5:8), %out: f32 loc(unknown)):
    %1 = arith.addf %in, %in : f32 loc(unknown)
    linalg.yield %1 : f32{AT.format(8)}
  }} -> tensor<4xf32>{AT.format(3)}
"""
)
SUMMED = (
    "  %2 = linalg.fill ins(%c : f32) outs(%a : tensor<4xf32>) ->"
    f" tensor<4xf32>{AT.format(9)}\n"
)
END = '  util.return %2 : !hal.buffer_view loc("<stdin>":1:1)\n} loc("<stdin>":1:1)\n'
REGION_OF = "  %r = flow.dispatch.region -> (tensor<4xf32>) {{\n{}  }}{}\n"
EXECUTABLE = """  flow.executable private @main_dispatch_{0} {{
    flow.executable.export public @main_dispatch_{0} workgroups() -> (index) {{
    }} loc("<stdin>":3:8)
    builtin.module {{
      func.func @main_dispatch_{0}_f32(%arg0: tensor<4xf32>) {{
{1}      }}{2}
    }} loc("<stdin>":3:8)
  }} loc("<stdin>":3:8)
"""


def program(directory: Path, release: str, *, fused: bool) -> ProgramReader:
    """Two operations that become one dispatch or two."""
    single_regions = [
        REGION_OF.format(text, AT.format(place))
        for text, place in ((ADDED, 3), (SUMMED, 9))
    ]
    regions = (
        REGION_OF.format(ADDED + SUMMED, AT.format(9))
        if fused
        else "".join(single_regions)
    )
    parts = [(ADDED + SUMMED, 9)] if fused else [(ADDED, 3), (SUMMED, 9)]
    executables = "".join(
        EXECUTABLE.format(number, text, AT.format(place))
        for number, (text, place) in enumerate(parts)
    )
    files = {
        "m/1_inline.mlir": (
            "inline",
            f"module {{\n{HOST}{ADDED}{SUMMED}{END}}} loc(unknown)\n",
        ),
        "m/util_func_main/1_10_cse.mlir": ("cse", HOST + regions + END),
        "m/util_func_main/1_9_form.mlir": ("form", HOST + regions + END),
        "m/util_initializer_no-symbol-name/1_9_form.mlir": (
            "form",
            "util.initializer {\n" + regions + "}\n",
        ),
        "m/2_outline.mlir": (
            "outline",
            f"module {{\n{executables}{HOST}{END}}} loc(unknown)\n",
        ),
        "m/3_last.mlir": (
            "iree-flow-deduplicate-executables",
            f"module {{\n{HOST}{END}}} loc(unknown)\n",
        ),
    }
    for name, (heading, text) in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADERS[release].format(heading) + text, encoding="utf-8")
    return ProgramReader(directory, b"")


@pytest.mark.parametrize("release", HEADERS)
def test_operations_are_counted_by_place_before_and_after_they_are_dispatches(
    tmp_path: Path, release: str
) -> None:
    """In the order of the numbers, without what runs when the module is loaded, until dispatches are folded."""
    fused_program = program(tmp_path / "1", release, fused=True)
    split_program = program(tmp_path / "2", release, fused=False)
    assert fused_program.names == {"main_dispatch_0": "main_dispatch_0_f32"}
    places = joint_places([fused_program, split_program], ["main_dispatch_0", ""])
    assert places == {f'"<stdin>":{line}:8'.encode() for line in (3, 9)}
    assert places == joint_places(
        [fused_program, split_program], ["", "main_dispatch_1"]
    )
    for reader, regions in ((fused_program, 1), (split_program, 2)):
        steps = reader.steps(places)
        assert [step.name for step in steps] == [
            "inline",
            "form",
        ], "outlining makes them no others"
        _, state = DispatchTrace(steps).states()
        assert state.operations == {
            "linalg.generic": 1,
            "arith.addf": 1,
            "linalg.fill": 1,
            REGION: regions,
        }
    assert (
        joint_places([fused_program, split_program], ["", "main_dispatch_7"])
        == frozenset()
    )


def test_locations_of_a_model_are_taken_from_it_but_not_their_definitions() -> None:
    text = (
        b'#loc1 = loc("a.b"("f.py":1:2))\n%0 = x.y %a : f32 loc(#loc1)\n%1 = x.y %a :'
        b' f32 loc("n":3:4) // loc\n'
    )
    assert (
        LOCATION.sub(b"", text)
        == b'#loc1 = loc("a.b"("f.py":1:2))\n%0 = x.y %a : f32\n%1 = x.y %a : f32 //'
        b" loc\n"
    )
