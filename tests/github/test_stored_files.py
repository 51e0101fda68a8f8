"""A stored baseline stands only for a base that reads the same files beside its models."""

from __future__ import annotations

import pytest
from action_stage import Stage
from test_reviewing import longer

pytestmark = pytest.mark.slow

KNOWN = "--iree-codegen-tuning-spec-path=spec.mlir"
UNKNOWN = "--a-plugin-s-option=spec.mlir"
STORED = "first parent of the merge commit; stored snapshot"
MEASURED = "first parent of the merge commit; measured in this run"


@pytest.mark.parametrize(
    ("flag", "edited", "rule"),
    [
        (KNOWN, "README.md", STORED),
        (KNOWN, "spec.mlir", MEASURED),
        (UNKNOWN, "README.md", MEASURED),
    ],
)
def test_a_baseline_of_another_file_is_not_used(
    stage: Stage, flag: str, edited: str, rule: str
) -> None:
    first = stage.main({"spec.mlir": "module {}\n"}, flags=[flag])
    assert stage.push(first).code == 0
    base = stage.origin.push_main("A change", {edited: "module { }\n"})
    ran = stage.pull(*stage.open_pull({"models/a.mlir": longer("a")}))
    assert ran.code == 0, ran.error
    assert ran.report.baseline.rule == rule
    assert ran.report.base.source.sha == (first if rule == STORED else base)
    assert ("no stored baseline is used" in ran.said) == (flag == UNKNOWN)


def test_a_base_whose_compiler_nobody_knows_is_not_one_of_other_files(
    stage: Stage,
) -> None:
    """The stored ancestor has another file, so that none of its builds is compared."""
    first = stage.main({"spec.mlir": "module {}\n"}, flags=[KNOWN], compiler=None)
    assert stage.push(first, head=stage.spec("one")).code == 0
    stage.origin.push_main("Another file", {"spec.mlir": "module { }\n"})
    pull = stage.open_pull({"models/a.mlir": longer("a")})
    ran = stage.pull(*pull, head=stage.spec("one"))
    assert ran.report.broke.startswith("No baseline")
