"""What an experiment gave: sums over what all variants measured, and ratios.

Drawn exact, with its reasons.
"""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path
from typing import Any

import lab_factory as make
import pytest
from golden_files import check_golden
from harmless import assert_harmless
from msgspec.structs import replace
from rich.console import Console

from bot.core.lab import Lab
from bot.core.lab_sums import sums
from bot.core.runs import Price
from bot.show.lab import LAB_LIMIT_BYTES, lab_blocks
from bot.show.renderers import markdown, print_blocks
from bot.show.views import TERMINAL


def render_lab(lab: Lab, templates: Path | None = None) -> str:
    """As the command writes it."""
    return markdown("lab", partial(lab_blocks, lab), LAB_LIMIT_BYTES, templates)


def printed(lab: Lab, width: int = 100) -> str:
    out = io.StringIO()
    print_blocks(
        lab_blocks(lab, TERMINAL), Console(file=out, width=width, legacy_windows=False)
    )
    return out.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def test_golden() -> None:
    check_golden("timed.lab.md", render_lab(make.timed()))


def test_what_needs_more_stack_is_named_with_the_variants_that_need_it() -> None:
    over: dict[str, Any] = {"status": "over-stack-limit", "failure": "Got 36864 bytes"}
    cells = [make.cell("m1", "vmvx", "a"), make.cell("m2", "vmvx", "a", **over)]
    cells += [make.cell(model, "vmvx", "b", **over) for model in ("m1", "m2")]
    text = render_lab(make.lab(*cells))
    assert "- With `a` 1 build needs the stack limit raised: `m2` on `vmvx`." in text
    assert (
        "- With `b` 2 builds need the stack limit raised: `m1`, `m2` on `vmvx`." in text
    )
    text = render_lab(make.lab(*cells[1:2], make.cell("m2", "vmvx", "b")))
    assert "- With `b` no build needs the stack limit raised." in text


def test_no_change_is_said_where_all_is_known() -> None:
    cells = [
        make.cell("m", "vmvx", "a"),
        make.cell("m", "vmvx", "b", {"executables": None}),
        make.cell("m", "vmvx", "c"),
    ]
    text = render_lab(make.lab(*cells, names=("a", "b", "c")))
    assert "against `a`: no change with `c`." in text


def test_of_numbers_that_do_not_repeat_no_change_is_said() -> None:
    cells = [make.cell("m", "vmvx", name, {"compile_cpu_ms": 5}) for name in "ab"]
    lab = make.lab(*cells)
    for columns, expected in (
        (("compile_cpu_ms",), "all shown numbers vary from run to run"),
        (("compile_cpu_ms", "artifact_bytes"), "no change with `b`"),
    ):
        text = render_lab(
            replace(lab, experiment=replace(lab.experiment, columns=columns))
        )
        assert f"against `a`: {expected}." in text


def test_a_mean_over_fewer_models_says_over_how_many() -> None:
    price = Price(before_us=10, after_us=20, pairs=5, ratio=2.0, low=2.0, high=2.0)
    cells = [
        make.cell(model, "vmvx", variant) for model in ("m1", "m2") for variant in "ab"
    ]
    text = render_lab(
        make.lab(*cells[:3], make.cell("m2", "vmvx", "b", price=price), run=True)
    )
    assert "2 models, against `a`: `b` CPU time × 2.00 (1 model)." in text
    assert "| 80 | × 2.00 (1 model) |" in text


def test_a_mean_of_ratios_is_geometric_as_half_and_double_are_no_change() -> None:
    cells = []
    for model, ratio in (("m1", 0.5), ("m2", 8.0)):
        cells.append(make.cell(model, "vmvx", "a"))
        price = Price(
            before_us=100,
            after_us=round(100 * ratio),
            pairs=12,
            ratio=ratio,
            low=ratio,
            high=ratio,
        )
        cells.append(make.cell(model, "vmvx", "b", price=price))
    for text in (
        render_lab(make.lab(*cells, run=True)),
        printed(make.lab(*cells, run=True), 200),
    ):
        assert "CPU time × 2.00" in text and "4.25" not in text
        assert len(re.findall(r"× 2\.00", text)) == 2, (
            "the answer, and the column of the table"
        )


def test_the_first_variant_that_has_an_artifact_is_what_all_is_reported_against() -> (
    None
):
    cells = [
        make.failed("m", "vmvx", "v0"),
        make.cell("m", "vmvx", "v1"),
        make.cell("m", "cuda", "v0"),
        make.cell(
            "m",
            "vmvx",
            "v2",
            {"artifact_bytes": 9000},
            equal=False,
            price=Price(
                before_us=9, after_us=18, pairs=12, ratio=2.0, low=2.0, high=2.0
            ),
        ),
        make.cell("m", "cuda", "v2", {"artifact_bytes": 500}),
    ]
    lab = make.lab(*cells, names=("v0", "v1", "v2"), run=True)
    for text in (render_lab(lab), words(printed(lab, 300))):
        text = text.replace("`", "").replace("\\", "")
        assert (
            "On vmvx, 1 model, against v1: v2 code size +800.0 %, CPU time × 2.00."
            in text
        )
        assert "On cuda, 1 model, against v0: v2 code size −50.0 %." in text
        assert (
            "On vmvx, against v1, 1 model" in text
            and "Outputs differ from those of v1: m on vmvx" in text.replace("*", "")
        )


def test_outputs_that_were_not_compared_say_why() -> None:
    note = "nothing to compare: all values are the same"
    cells = [
        make.cell("m", "vmvx", "a"),
        make.cell(
            "m",
            "vmvx",
            "b",
            equal_note=note,
            price=Price(before_us=9, after_us=9, pairs=5, ratio=1.0, low=1.0, high=1.0),
        ),
    ]
    text = render_lab(make.lab(*cells, run=True))
    assert (
        f"Outputs equal in 0 of 1 build that was run. Not known: {note} (1 build)."
        in text
    )


def test_what_was_not_measured_has_its_reason_once_for_all_that_share_it() -> None:
    reason = "IREE 3.13.0 does not know the option --nonsense"
    cells = [
        make.cell("m1", "vmvx", "a"),
        *(
            make.failed(
                "m1", target="vmvx", variant=name, reason=reason, status="unsupported"
            )
            for name in ("b", "c")
        ),
    ]
    for text in (
        render_lab(make.lab(*cells, names=("a", "b", "c"))),
        printed(make.lab(*cells, names=("a", "b", "c"))),
    ):
        plain = words(text.replace("`", "").replace("\\", ""))
        assert f"b, c: 2 builds unsupported: {reason}: m1 on vmvx" in plain


def test_chance_and_other_outputs_are_reported() -> None:
    cells = [
        make.cell("m", "vmvx", "a", varies=True),
        make.cell("m", "vmvx", "b", equal=False, equal_note="output 0 differs"),
    ]
    text = render_lab(make.lab(*cells, run=True))
    assert "are reported as the range of all results: `m` on `vmvx` with `a`" in text
    assert "**⚠️ Outputs differ** from those of `a`: `m` on `vmvx` with `b`" in text
    assert "Outputs equal in 0 of 1 build that was run" in text


def test_a_large_result_stays_within_its_limit_and_says_what_it_leaves_out() -> None:
    text = render_lab(make.many())
    assert len(text.encode()) <= LAB_LIMIT_BYTES and "…and " in text
    assert not printed(make.many(), 80).count("\x1b")


def test_nothing_that_came_from_elsewhere_does_any_harm() -> None:
    assert_harmless(render_lab(make.many()))
    hostile = make.lab(
        *(
            make.cell(text, "vmvx", name, varies=True, equal=False)
            for text in make.WRITABLE
            for name in "ab"
        ),
        run=True,
    )
    assert_harmless(render_lab(hostile))


def test_a_template_of_the_user_draws_one_block_in_the_place_of_the_default_one(
    tmp_path: Path,
) -> None:
    usual = render_lab(make.timed())
    (tmp_path / "lab.answers.md.j2").write_text(
        "{{ one.blocks[0].lines.total }} answers by {{ answer }}\n\n"
    )
    assert render_lab(make.timed(), tmp_path) == re.sub(
        r"\*\*Result\*\*.*?\n\n(?=On)", "2 answers by lab\n\n", usual, flags=re.DOTALL
    )
    (tmp_path / "lab.md.j2").write_text(
        "{% for one in blocks %}{{ one.kind }} {% endfor %}"
    )
    assert render_lab(make.timed(), tmp_path).startswith("sentence fold ")


def test_sums_are_over_the_models_that_every_variant_measured() -> None:
    cells = [
        make.cell(model, "vmvx", name, {"artifact_bytes": size})
        for model, name, size in (
            ("m1", "a", 100),
            ("m1", "b", 150),
            ("m2", "a", 300),
            ("m2", "b", 200),
            ("m3", "a", 7),
        )
    ]
    (total,) = sums(make.lab(*cells, make.failed("m3", "vmvx", "b")))
    assert total.models == ("m1", "m2") and total.more == 1
    assert (total.value("a", "artifact_bytes"), total.value("b", "artifact_bytes")) == (
        400,
        350,
    )


def test_a_variant_that_measured_nothing_takes_no_model_from_the_others() -> None:
    (total,) = sums(
        make.lab(
            make.cell("m", "vmvx", "a"),
            make.failed("m", "vmvx", "b", status="unsupported"),
        )
    )
    assert total.models == ("m",) and total.value("b", "artifact_bytes") is None


def test_of_a_largest_value_the_largest_is_reported_and_what_is_not_known_is_in_no_sum() -> (
    None
):
    cells = [
        make.cell("m1", "vmvx", "a", {"stack_max_bytes": 10, "copies": 1}),
        make.cell("m2", "vmvx", "a", {"stack_max_bytes": 70, "copies": None}),
    ]
    (total,) = sums(make.lab(*cells))
    assert (
        total.value("a", "stack_max_bytes") == 70 and total.value("a", "copies") is None
    )


def test_ratios_of_time_are_geometric_means_in_which_the_same_artifact_counts_as_one() -> (
    None
):
    cuda, host = sums(make.timed())
    assert cuda.time("b") is None and host.time("a") is None
    slower = host.time("b")
    same = host.time("c")
    assert (
        slower is not None
        and slower.models == 2
        and slower.ratio == pytest.approx(1.25)
    )
    assert same == (1.0, 2)
