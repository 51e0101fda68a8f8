"""The measured tables of the lab: what stands in them is what the results say, and each experiment has its place."""

from __future__ import annotations

import lab_factory as make
from evidence_page import begin, end
from lab_page import page_lines, part_of, readme_lines, short_answer
from places import ROOT

from bot.config.experiments import load_experiments


def test_every_packaged_experiment_has_its_part_of_the_page_and_is_in_the_makefile() -> None:
    page, makefile = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/lab.md", "Makefile"))
    (listed,) = [line for line in makefile.splitlines() if line.startswith("LABS ?= ")]
    assert set(listed.removeprefix("LABS ?= ").split()) == load_experiments().keys()
    for name in load_experiments():
        assert page.count(begin(part_of(name))) == page.count(end(part_of(name))) == 1 and f"\n### {name}\n" in page


def test_a_part_has_the_answer_and_the_tables_that_lead() -> None:
    page = "\n".join(page_lines(make.timed()))
    assert "IREE 3.13.0rc20261016, 2 models. Run on a processor." in page
    assert "| `b` | `██████████████▍` | 1,800 (−10.0 %) | 18 (−10.0 %) |" in page
    assert "Lines fitted by least squares" in "\n".join(page_lines(make.along()))


def test_the_readme_has_a_line_for_each_experiment() -> None:
    said = (
        "2 models, against `a`: `b` artifact −10.0 %, executables −10.0 %, CPU time × 1.25; nothing changes with 1 more"
    )
    assert short_answer(make.timed()) == said
    _, _, row = readme_lines([make.timed()])
    assert row == f"| [sizes](docs/lab.md#sizes) | Which of them is smaller? | {said} |"
    assert short_answer(make.along()).startswith("net, for each layer: 100 B artifact (exact)")
    assert short_answer(make.lab()) == "nothing was measured"
    cells = [make.cell("m", "vmvx", "a"), make.cell("m", "vmvx", "b"), make.failed("m", "vmvx", "c")]
    some = make.lab(*cells, names=("a", "b", "c"))
    assert short_answer(some) == "1 model, against `a`: nothing changes; 1 not measured"
