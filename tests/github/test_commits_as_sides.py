"""A command that builds the repository: on a pull request each side is built from its own commit."""

from __future__ import annotations

import pytest
from action_stage import Stage

pytestmark = pytest.mark.slow

MAKEFILE = "all:\n\tcc {flags} -c src/a.c -o $(OUT)/a.o\n"
SOURCE = """float dot(const float *a, const float *b, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += a[i] * b[i];
  return s;
}
"""
COMPILER = {
    "kind": "command",
    "head": "ref:HEAD",
    "run": ["make", "OUT={out}"],
    "artifacts": ["*.o"],
    "sources": ["src/*.c"],
}


@pytest.mark.parametrize(
    "edit",
    [
        {"Makefile": MAKEFILE.format(flags="-O3 -funroll-loops")},
        {"src/a.c": SOURCE.replace("s += a[i]", "s += a[i] / (1.0f + b[i])")},
    ],
)
def test_a_pull_request_that_edits_the_build(
    stage: Stage, edit: dict[str, str | None]
) -> None:
    files = {"Makefile": MAKEFILE.format(flags="-Os"), "src/a.c": SOURCE}
    main = stage.main(
        files, compiler=COMPILER, models=["Makefile"], targets={"here": {}}
    )
    assert stage.push(main).code == 0
    ran = stage.pull(*stage.open_pull(edit))
    assert ran.states == {"Makefile on here": "changed"}, ran.error
    assert (
        ran.report.baseline.rule == "first parent of the merge commit; stored snapshot"
    )
    [delta] = ran.report.deltas
    assert (delta.metrics["executable_bytes"].change or 0) > 0
    [comment] = stage.comments()
    assert "bit-identical" not in comment and "deterministic" not in comment
