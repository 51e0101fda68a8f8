"""Configurations read out of configured IR, and values of one text put into another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bot.errors import MalformedBinary
from bot.readers.configurations import (
    NotTransplantable,
    configurations,
    differing_knobs,
    transplanted,
)

TEXT = """hal.executable public @d {
  hal.executable.variant public @v target(<"llvm-cpu", "f", {cpu = "a", layout = "e-m:{<[(\\""}>) {
    builtin.module {
      func.func @d() attributes {translation_info = #iree_codegen.translation_info<INFO>} {
        %0 = linalg.fill {lowering_config = FILL} ins(%c : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
        %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]} outs(%0 : tensor<4x4xf32>) attrs =  \
{lowering_config = GENERIC} {
        ^bb0(%in: f32):
          linalg.yield %in : f32
        } -> tensor<4x4xf32>
        return
      }
    }
  }
}
"""
OLD = {
    "CPU": "CPUDoubleTilingExpert",
    "GPU": "LLVMGPUTileAndFuse",
    "SPIRV": "SPIRVBaseVectorize",
}
NEW = {
    "CPU": "#iree_cpu.pipeline<DoubleTilingExpert>",
    "GPU": "#iree_gpu.pipeline<TileAndFuse>",
    "SPIRV": "#iree_gpu.spirv_pipeline<BaseVectorize>",
}


def text(
    info: str = OLD["CPU"],
    fill: str = "vector = [1, 8]",
    generic: str = "tile = [4, 4], vector = [1, 8]",
) -> str:
    """Configured IR; the values of two operations without what is around them."""
    return (
        TEXT.replace("INFO", f"pipeline = {info}")
        .replace("FILL", f"#iree_cpu.lowering_config<{fill}>")
        .replace("GENERIC", f"#iree_cpu.lowering_config<{generic}>")
    )


def differing(base: str, head: str) -> tuple[str, ...]:
    knobs = differing_knobs(base, head)
    assert not isinstance(knobs, NotTransplantable), knobs
    return knobs


def put(head: str, base: str, *knobs: str) -> str:
    result = transplanted(head, base, knobs)
    assert isinstance(result, str), result
    return result


def refused(base: str, head: str) -> str:
    knobs = differing_knobs(base, head)
    result = transplanted(head, base, ["vector"])
    assert isinstance(knobs, NotTransplantable) and knobs == result
    return knobs.why


def test_each_configuration_has_its_operation_and_its_values_in_order() -> None:
    info, fill, generic = configurations(
        text("CPUX workgroup_size = [64, 1] subgroup_size = 32, {peel, o = #a.b<c>}")
    )
    assert (info.operation, info.is_translation) == ("func.func", True)
    assert [*info.values.items()] == [
        *(("pipeline", "CPUX"), ("workgroup_size", "[64, 1]"), ("subgroup_size", "32")),
        *(("peel", ""), ("o", "#a.b<c>")),
    ]
    assert (fill.operation, dict(fill.values)) == ("linalg.fill", {"vector": "[1, 8]"})
    assert (generic.operation, [*generic.values]) == (
        "linalg.generic",
        ["tile", "vector"],
    )


QUOTED = 's = "a, {b = <", z = {k = affine_map<(d0) -> (d0)>}'
LAYOUT = "#iree_gpu.mma_layout<X>"
KINDS: dict[str, dict[str, str]] = {
    f"#iree_gpu.lowering_config<{{a = [1], m = {LAYOUT}}}>": {"a": "[1]", "m": LAYOUT},
    "#iree_codegen.lowering_config<tile_sizes = [[1, 32], [1]]>": {
        "tile_sizes": "[[1, 32], [1]]"
    },
    "#iree_gpu.derived_thread_config": {},
    "#iree_cpu.lowering_config<>": {},
    f"#iree_gpu.lowering_config<{{{QUOTED}}}>": {
        "s": '"a, {b = <"',
        "z": "{k = affine_map<(d0) -> (d0)>}",
    },
    "#iree_cpu.lowering_config<v = [1, [8], 0]>": {"v": "[1, [8], 0]"},
}


@pytest.mark.parametrize("attribute", KINDS)
def test_every_kind_of_configuration_is_read_and_written_as_it_was(
    attribute: str,
) -> None:
    whole = (
        TEXT.replace("GENERIC", attribute)
        .replace("FILL", "#a.b")
        .replace("INFO", "pipeline = X")
    )
    *_, configuration = configurations(whole)
    assert dict(configuration.values) == KINDS[attribute]
    assert (
        configuration.written(configuration.values)
        if configuration.values
        else attribute
    ) == attribute


PLACES = {
    "in generic form": (
        (
            '%1:2 = "linalg.fill"(%a) <{s = array<i32: 1>}> ({\n ^bb0:\n "x.y"() : ()'
            " -> ()\n}) {C} : ()"
        ),
        "linalg.fill",
    ),
    "behind a region": (
        (
            "%p = tensor.pad %a low[0] {\n^bb0(%i: index):\n  tensor.yield %c : f32\n}"
            " {C} : tensor<4xf32>"
        ),
        "tensor.pad",
    ),
    "behind two regions": ("scf.if %c {\n} else {\n} {C}", "scf.if"),
    "within a dictionary": (
        "%1 = a.attention {decomposition_config = {qk_attrs = {other, C}}} ins(%a)",
        "a.attention decomposition_config.qk_attrs",
    ),
    "behind comparisons and arrows": (
        "x.while %a < %b {\n  x.if 1 > 2 => !x.t {\n  }\n  a.b {C} : () => ()\n}",
        "a.b",
    ),
    "before a comment": ("a.b {x = 1, C} // in words: lowering_config = #c.d<{", "a.b"),
}


@pytest.mark.parametrize(("line", "place"), PLACES.values(), ids=PLACES)
def test_the_operation_is_found_wherever_its_attributes_are(
    line: str, place: str
) -> None:
    (configuration,) = configurations(
        "builtin.module"
        f" {{\n{line.replace('C}', 'lowering_config = #q.lowering_config<v = 1>}')}\n}}"
    )
    assert (configuration.place, configuration.values) == (place, {"v": "1"})


def test_texts_and_other_attributes_that_look_like_a_configuration_are_none() -> None:
    user = (
        "#iree_codegen.compilation_info<lowering_config = #q.lowering_config<v = 1>,"
        " translation_info = #q.t<x>>"
    )
    assert not configurations(
        'a.b {x = "lowering_config = #q.lowering_config<v = 1>", compilation_info ='
        f" {user}}}"
    )


def test_aliases_are_written_out() -> None:
    head = text(generic="tile = [8, 8], vector = [1, 8]")
    base = (
        "#n = [4, 4]\n#c = #iree_cpu.lowering_config<tile = [4, 4], vector = [1, 1], o"
        " = #o>\n#o = #iree.x<#u>\n"
    )
    base += (
        text()
        .replace("#iree_cpu.lowering_config<tile = [4, 4], vector = [1, 8]>", "#c")
        .replace("[1, 8]", "[1, 1]")
    )
    assert differing(base, head) == ("vector", "tile", "o")
    assert "lowering_config<tile = [8, 8], vector = [1, 1], o = #iree.x<#u>>}" in put(
        head, base, "vector", "o"
    )
    with pytest.raises(MalformedBinary, match="stand for each other"):
        configurations("#a = #b\n#b = #a\nx.y {lowering_config = #a}")
    doubling = "".join(f"#a{n} = [#a{n + 1}, #a{n + 1}]\n" for n in range(60))
    with pytest.raises(MalformedBinary, match="too long"):
        configurations(f"{doubling}x.y {{lowering_config = #q.c<v = #a0>}}")


def test_chosen_values_alone_are_put_into_head() -> None:
    base = text(
        fill="vector = [1, 1]", generic="cache = [2, 2], tile = [4, 4], vector = [1, 1]"
    )
    head = text(generic="tile = [8, 8], vector = [1, 8], zero = [0, 0]")
    assert differing(base, head) == ("vector", "cache", "tile", "zero")
    assert put(head, base) == head
    vector = put(head, base, "vector")
    assert vector == text(
        fill="vector = [1, 1]", generic="tile = [8, 8], vector = [1, 1], zero = [0, 0]"
    )
    assert put(head, base, "cache") == text(
        generic="cache = [2, 2], tile = [8, 8], vector = [1, 8], zero = [0, 0]"
    )
    assert put(head, base, "zero") == text(generic="tile = [8, 8], vector = [1, 8]")
    assert put(head, base, *differing(base, head)) == base


@pytest.mark.parametrize("family", OLD)
def test_a_pipeline_is_the_same_in_both_spellings(family: str) -> None:
    old = OLD[family]
    new = NEW[family]
    remainder = " workgroup_size = [64, 1, 1], {peel}"
    assert differing(text(old + remainder), text(new + remainder)) == ()
    variant = {
        "old": old.replace("Base", "").replace("Double", "") + "2",
        "new": new.replace(">", "2>"),
    }
    variant = {
        key: value.replace("Base", "").replace("Double", "")
        for key, value in variant.items()
    }
    assert differing(text(old + remainder), text(variant["new"] + remainder)) == (
        "pipeline",
    )
    assert put(
        text(variant["new"] + remainder), text(old + remainder), "pipeline"
    ) == text(new + remainder)
    assert put(
        text(variant["old"] + remainder), text(new + remainder), "pipeline"
    ) == text(old + remainder)


def test_the_pipeline_of_vmvx_is_the_same_in_both_spellings() -> None:
    assert differing(text("VMVXDefault"), text("#iree_codegen.vmvx_pipeline")) == ()
    assert put(text("CPUX"), text("#iree_codegen.vmvx_pipeline"), "pipeline") == text(
        "VMVXDefault"
    )


def test_an_option_of_the_pipeline_comes_and_goes() -> None:
    peeled = text("CPUX, {enable_loop_peeling}")
    plain = text("CPUX")
    assert (
        differing(peeled, plain) == differing(plain, peeled) == ("enable_loop_peeling",)
    )
    assert put(plain, peeled, "enable_loop_peeling") == peeled
    assert put(peeled, plain, "enable_loop_peeling") == plain
    sized = text("CPUX workgroup_size = [64, 1, 1], {enable_loop_peeling}")
    assert put(peeled, sized, "workgroup_size") == sized


def test_what_does_not_fit_says_why() -> None:
    assert (
        refused(text(fill="vector = [1, 1, 8]"), text())
        == "`linalg.fill` has other loops: `vector` has 3 values on base and 2 on head"
    )
    assert (
        refused(text(generic="cache = [1, 2, 3]"), text())
        == "`linalg.generic` has other loops: `cache` has 3 values on base and 2 on"
        " head"
    )
    assert (
        refused(text().replace("linalg.fill", "linalg.copy"), text())
        == "base configures `linalg.copy` where head configures `linalg.fill`"
    )
    assert (
        refused(
            text().replace(
                "{lowering_config = #iree_cpu.lowering_config<vector = [1, 8]>}", ""
            ),
            text(),
        )
        == "other operations are configured: `linalg.fill` 0 times on base and 1 times"
        " on head"
    )
    assert (
        refused(text().replace("#iree_cpu.lowering", "#iree_gpu.lowering"), text())
        == "`linalg.fill` has another kind of configuration: "
        "`#iree_gpu.lowering_config` on base and `#iree_cpu.lowering_config` on head"
    )


@pytest.mark.parametrize(
    ("base", "head"),
    [
        # operands, and not loops
        (
            "promote_operands = [0, 1, 2]",
            "promote_operands = [0, 1]",
        ),
        ("v = []", "v = [1, 2]"),
    ],
)
def test_a_list_without_an_element_for_each_loop_fits(base: str, head: str) -> None:
    assert differing(text(fill=base), text(fill=head)) == (base.partition(" ")[0],)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("tile_sizes = [[1, 32], [1, 1]]", "tile_sizes = [[1, 1, 32], [1, 1, 1]]"),
        (
            "lane_basis = [[1, 1, 32, 1], [0, 1, 2, 3]]",
            "lane_basis = [[1, 1, 32], [0, 1, 2]]",
        ),
    ],
)
def test_a_list_of_lists_has_the_loops_of_these(base: str, head: str) -> None:
    assert "has other loops" in refused(text(fill=base), text(fill=head))
    assert differing(text(fill=base), text(fill=base.replace("32", "64"))) == (
        base.partition(" ")[0],
    )


NUMBERS = some.lists(some.integers(0, 64), min_size=3, max_size=3).map(str)
VALUES = some.one_of(
    NUMBERS,
    some.sampled_from(
        [
            "",
            '"a \\" {<, = b"',
            "#iree_gpu.mma_layout<X>",
            "{a = [1, 2], b}",
            "affine_map<(d0) -> (d0)>",
        ]
    ),
    some.integers().map("{} : i64".format),
)
KNOBS = some.dictionaries(
    some.sampled_from(["cache", "tile", "vector", "mma", "zero"]), VALUES
)
INFOS = some.tuples(
    some.sampled_from(
        [
            *OLD.values(),
            *NEW.values(),
            "VMVXDefault",
            "#iree_codegen.vmvx_pipeline",
            "None",
        ]
    ),
    some.sampled_from(
        [
            "",
            " workgroup_size = [64, 1, 1]",
            " workgroup_size = [32, 1, 1] subgroup_size = 32",
        ]
    ),
    some.sampled_from(["", ", {peel}", ", {o = #iree_gpu.o<a = true>, peel}"]),
).map("".join)


def written(knobs: dict[str, str]) -> str:
    return ", ".join(
        f"{name} = {value}" if value else name for name, value in knobs.items()
    )


SOUND = some.builds(text, INFOS, KNOBS.map(written), KNOBS.map(written))


@given(SOUND, SOUND)
def test_any_values_go_into_head_and_back(base: str, head: str) -> None:
    knobs = differing_knobs(base, head)
    if isinstance(knobs, NotTransplantable):
        assert isinstance(differing_knobs(head, base), NotTransplantable)
        return
    assert set(differing(head, base)) == set(knobs)
    for count in range(len(knobs) + 1):
        assert set(differing(base, put(head, base, *knobs[:count]))) == set(
            knobs[count:]
        )
    moved = put(head, base, *knobs)
    assert differing(put(moved, head, *knobs), head) == ()
    assert put(head, head, *knobs) == head


@given(SOUND)
def test_what_is_read_is_written_as_it_was(whole: str) -> None:
    for configuration in configurations(whole):
        assert (
            configuration.written(configuration.values)
            == whole[configuration.start : configuration.end]
        )


@given(some.data())
def test_any_text_is_read_or_refused_in_one_line(data: some.DataObject) -> None:
    whole = data.draw(SOUND)
    start, end = sorted(
        (
            data.draw(some.integers(0, len(whole))),
            data.draw(some.integers(0, len(whole))),
        )
    )
    noise = data.draw(
        some.text(some.sampled_from('{}<>[]()"\\,=# \nalowering_config')) | some.text()
    )
    broken = whole[:start] + noise + whole[end:]
    for texts in ((broken, whole), (whole, broken), (broken, broken)):
        try:
            knobs = differing_knobs(*texts)
            if not isinstance(knobs, NotTransplantable):
                assert isinstance(transplanted(texts[1], texts[0], knobs), str)
        except MalformedBinary as error:
            assert "\n" not in error.line


@pytest.mark.parametrize(
    "broken", ["{", "}", "(]", "x.y {lowering_config = #a.b<[>}", "{" * 1000]
)
def test_brackets_that_do_not_match_are_refused(broken: str) -> None:
    with pytest.raises(MalformedBinary):
        configurations(broken)
