"""Small values: metrics and readings of bot.core, fold.json of bot.fold.audit, and bot.errors."""

from __future__ import annotations

import inspect
import json

import fold_factory as make
import pytest
from fold_strategies import audits
from hypothesis import given
from hypothesis import strategies as st
from json_rows import fold_of
from replacing import replace

from bot import errors
from bot.config.configuration import load_config
from bot.core.metrics import (
    ARTIFACT_PARTS,
    METRIC_BY_ID,
    METRIC_IDS,
    METRICS,
    metric_words,
)
from bot.core.reading import ArtifactReading, Reading
from bot.core.rules import any_match
from bot.errors import BotError
from bot.fold.audit import FoldAudit, fold_lines

CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, BotError)
]
EXIT_CODES = {
    **dict.fromkeys(
        ("BotError", "UsageError", "ConfigError", "InputError", "OutputError"), 2
    ),
    **dict.fromkeys(("MalformedBinary", "ImpossibleBinary", "TemplateError"), 2),
    "NetworkError": 3,
    "CompilerUnavailable": 4,
    "Interrupted": 130,
    **dict.fromkeys(("NoVerdict", "InternalError", "StrayProcess"), 5),
}


def test_every_error_has_the_exit_code_of_the_contract_and_says_where_what_and_how_to_mend() -> (
    None
):
    assert {kind.__name__: kind.exit_code for kind in CLASSES} == EXIT_CODES
    for error, line in (
        (BotError("is empty"), "is empty"),
        (BotError("is empty", where="a.mlir"), "a.mlir: is empty"),
        (BotError("is empty", hint="fill it"), "is empty (fill it)"),
        (
            BotError("is empty", where="a.mlir", hint="fill it"),
            "a.mlir: is empty (fill it)",
        ),
        (BotError("two\nlines\tand  gaps", where="a\r\nb"), "a b: two lines and gaps"),
    ):
        assert error.line == str(error) == line


@given(st.sampled_from(CLASSES), st.text(), st.text(), st.text())
def test_whatever_was_read_the_message_is_one_line(
    kind: type[BotError], message: str, where: str, hint: str
) -> None:
    error = kind(message, where=where, hint=hint)
    assert len(error.line.splitlines()) <= 1
    assert (error.what, error.where, error.hint) == (message, where, hint)


def test_what_the_table_of_metrics_says() -> None:
    rules = load_config(models=False).thresholds
    for metric in METRICS:
        judging = next(
            rule
            for rule in rules
            if any_match(rule.metrics, metric.id) and rule.targets == ("*",)
        )
        assert judging.name == metric.rule, metric.id
    assert len({metric.label for metric in METRICS}) == len(METRICS)
    assert {metric.id for metric in METRICS if not metric.exact} == {
        "compile_cpu_ms",
        "compile_peak_rss_kib",
    }
    assert (
        set(ARTIFACT_PARTS) <= set(METRIC_IDS) - {"artifact_bytes"}
        and len(set(ARTIFACT_PARTS)) == 4
    )


def test_text_is_called_text() -> None:
    size = METRIC_BY_ID["executable_bytes"]
    expected = [
        "PTX text",
        "shader source",
        "device code",
        "device code",
    ]
    assert [
        metric_words(size, backend) for backend in ("cuda", "metal-spirv", "rocm", "")
    ] == expected


sizes = st.integers(0, 1 << 40)


@given(st.dictionaries(st.text(max_size=4), sizes, max_size=4), sizes, sizes, sizes)
def test_parts_and_rest_sum_to_the_whole(
    parts: dict[str, int], unattributed_bytes: int, code: int, vm: int
) -> None:
    assert (
        Reading(
            "elf", sum(parts.values()) + unattributed_bytes, parts
        ).unattributed_bytes
        == unattributed_bytes
    )
    assert (
        ArtifactReading(
            artifact_bytes=code + vm + 7 + unattributed_bytes,
            executable_bytes=code,
            vm_bytes=vm,
            rodata_bytes=7,
            unattributed_bytes=unattributed_bytes,
            executables=(),
        ).artifact_bytes
        == code + vm + 7 + unattributed_bytes
    )


def test_parts_that_do_not_sum_to_the_whole_are_no_reading() -> None:
    inconsistent: tuple[tuple[int, dict[str, int]], ...] = (
        (10, {"text": 11}),
        (10, {"text": 6, "data": 5}),
        (0, {"text": 1}),
    )
    for whole, parts in (*inconsistent, (10, {"text": 11, "data": -1}), (-1, {})):
        with pytest.raises(ValueError, match="are larger than the whole"):
            Reading("elf", whole, parts)
    wrong = (
        (1, 2, 3, 3),
        (1, 2, 3, 5),
        (4, 4, 4, -2),
        (12, -2, 0, 0),
        (-2, 12, 0, 0),
        (12, 0, -2, 0),
    )
    for figures in wrong:
        with pytest.raises(ValueError, match="the artifact has 10 bytes"):
            ArtifactReading(10, *figures, executables=())


def saved(audit: FoldAudit) -> str:
    return b"".join(fold_lines(audit)).decode()


@given(audits)
def test_of_a_fold_audit_what_is_read_is_what_was_written(audit: FoldAudit) -> None:
    assert fold_of(saved(audit)) == audit


def test_a_cell_of_a_fold_audit_is_one_line_and_has_the_fields_of_the_contract() -> (
    None
):
    audit = make.audit()
    text = saved(audit)
    plain = json.loads(saved(make.many()))
    assert (
        saved(replace(audit, cells=audit.cells[::-1], models=audit.models[::-1]))
        == text
    )
    cells = [line for line in text.splitlines() if '"target":' in line]
    assert len(cells) == len(audit.cells) == 104
    assert text.endswith("}\n") and text.splitlines()[0].startswith('{"cells":[')
    assert plain["schema"] == "code-size-fold/1"
    for cell in plain["cells"]:
        assert {
            "model",
            "target",
            "executables",
            "artifact_bytes",
            "equal",
            "folded",
            "left",
        } <= cell.keys()
        assert (
            cell["executables"].keys()
            == cell["artifact_bytes"].keys()
            == {"before", "after"}
        )
        assert cell["equal"] in (True, False, None)
    assert any(cell["equal"] is None for cell in plain["cells"])
