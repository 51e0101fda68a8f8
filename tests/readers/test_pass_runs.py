"""The passes of a directory of dumps, and the pipeline that runs them again.

The regions of a program.
"""

from __future__ import annotations

from pathlib import Path

from bot.readers.flow_regions import distance, named_regions, regions_of
from bot.readers.pass_runs import PassRun, pass_runs, pipeline_of

MODULE = "builtin_module_no-symbol-name"
REGION = """  flow.executable private @{name} {{
    flow.executable.export public @{name}_{kind}
    builtin.module {{
      func.func @{name}_{kind}() {{
        {body}
      }}
    }}
  }}
"""


def dump(home: Path, folder: str, name: str, header: str) -> None:
    """Write one dump as the compiler does."""
    place = home / MODULE / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(
        f"// -----// IR Dump After {header} //----- //\n", encoding="utf-8"
    )


def test_passes_over_functions_are_nested_once(tmp_path: Path) -> None:
    """Two functions are compiled by the same passes; wrappers and options without a value go."""
    dump(
        tmp_path,
        "",
        "0_first.mlir",
        "FirstPass: first{target-registry=unknown keep=true}",
    )
    for function in ("util_func_main", "util_func_main$async"):
        dump(tmp_path, function, "0_0_cse.mlir", "CSEPass: cse")
        dump(tmp_path, function, "0_1_fold.mlir", "FoldPass: fold{deep={a,b} most=3}")
    dump(
        tmp_path,
        "",
        "1_iree-op-pipeline-adaptor.mlir",
        "a::OpPipelineAdaptorPass: iree-op-pipeline-adaptor",
    )
    dump(tmp_path, "", "2_last.mlir", "LastPass (last)")
    runs = pass_runs(tmp_path)
    assert [run.name for run in runs] == ["first", "cse", "fold", "last"]
    assert [run.class_name for run in runs] == [
        "FirstPass",
        "CSEPass",
        "FoldPass",
        "LastPass",
    ]
    assert (
        pipeline_of(runs)
        == "builtin.module(first{ keep=true},util.func(cse,fold{deep={a,b}"
        " most=3}),last)"
    )
    assert pipeline_of([]) == "builtin.module()"


def test_an_option_that_a_pass_does_not_have_is_left_out() -> None:
    run = PassRun(("builtin.module",), "fold", "{deep={a,b} most=3}")
    assert run.without_option("deep").options == "{most=3}"
    assert run.without_option("most").options == "{deep={a,b} }"
    assert run.without_option("deep").without_option("most").options == ""
    assert run.without_option("eep") == run


def test_regions_are_compared_without_their_numbers() -> None:
    """A region that is launched twice counts twice; one more region before it changes nothing."""
    first = REGION.format(name="main_dispatch_0", kind="add", body="arith.addi")
    different = REGION.format(name="main_dispatch_1", kind="mul", body="arith.muli")
    site = "    flow.dispatch @main_dispatch_{}::@main_dispatch_{}_add()\n"
    renumbered = REGION.format(name="main_dispatch_7", kind="add", body="arith.addi")
    twice = regions_of(first + site.format(0, 0) * 2)
    assert sorted(twice.values()) == [2]
    assert distance(twice, regions_of(renumbered + site.format(7, 7))) == 1
    assert distance(regions_of(first), regions_of(first + different)) == 1
    assert distance(regions_of(first), regions_of(different)) == 2
    assert (
        named_regions(first)["main_dispatch_0"]
        == named_regions(renumbered)["main_dispatch_7"]
    )
