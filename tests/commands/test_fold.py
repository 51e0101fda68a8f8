"""`fold`: what it asks for, what it writes and says, and that an audit is no verdict."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import fold_factory as make
import pytest
from json_rows import fold_of
from report_factory import HOSTILE
from test_folds import render_folds

from bot.cli.main import main
from bot.config.configuration import Config
from bot.core.spec import Places
from bot.fold.audit import FoldAudit
from bot.study.prepare import Work
from bot.study.request import Request

CONFIG = (
    "schema: code-size-config/1\ncompiler: {head: 3.13.0}\nmodels:"
    " ['suite/*.mlir']\ntargets: [vmvx, cuda]\n"
)


@dataclass
class Asked:
    """What the story asked of the work that it is told about, and what comes of that."""

    audit: FoldAudit
    asked: list[tuple[Request, Config, float | None, bool]] = field(
        default_factory=list
    )

    def __call__(
        self, work: Work, max_slowdown: float | None, *, runs: bool
    ) -> FoldAudit:
        self.asked.append((work.request, work.config, max_slowdown, runs))
        return self.audit


@pytest.fixture
def audits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """In a directory with a model and a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/small.mlir").write_text("module {}\n")
    (tmp_path / "c.yml").write_text(CONFIG)
    before = signal.getsignal(signal.SIGTERM)
    recorder = Asked(make.small())
    monkeypatch.setattr("bot.fold.auditing.audited", recorder)
    yield recorder
    signal.signal(signal.SIGTERM, before)


Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fold(capsys: pytest.CaptureFixture[str]) -> Ran:
    """Exit code, standard output, and the last line on standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(("fold", *arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, (err.splitlines() or [""])[-1]

    return run


def test_it_writes_both_files_and_prints_the_tables(audits: Asked, fold: Ran) -> None:
    code, out, _ = fold("--config", "c.yml", "--out", "deep/out")
    assert code == 0
    assert fold_of(Path("deep/out/fold.json").read_bytes()) == audits.audit
    assert Path("deep/out/fold.md").read_text(encoding="utf-8") == render_folds(
        audits.audit
    )
    assert "Fold audit: 3 of 6 builds folded" in " ".join(out.split())
    assert out.splitlines()[-1] == "written to deep/out: fold.json, fold.md, fold.html"
    assert fold("-q", "--config", "c.yml") == (
        0,
        "written to out: fold.json, fold.md, fold.html\n",
        "",
    )
    assert len(audits.asked) == 2


def test_what_is_asked_for_arrives(audits: Asked, fold: Ran) -> None:
    arguments = (
        "--model",
        "s*",
        "--target",
        "vmvx",
        "--flags",
        "--a --b",
        "--max-slowdown",
        "1.5%",
        "--jobs",
        "3",
    )
    assert fold("--config", "c.yml", "--compiler", "3.12.0", *arguments)[0] == 0
    request, config, *options = audits.asked[0]
    assert (request.specs, request.models, request.targets) == (
        {"head": "3.12.0"},
        ("s*",),
        ("vmvx",),
    )
    assert (request.flags, request.jobs, request.out) == (
        ("--a", "--b"),
        3,
        Path("out"),
    )
    assert options == [0.015, True]
    assert [model.name for model in config.models] == ["small.mlir"]


def test_without_options_every_fold_counts_and_the_head_of_the_configuration(
    audits: Asked, fold: Ran
) -> None:
    fold("--config", "c.yml")
    fold("--config", "c.yml", "--no-run")
    assert audits.asked[0][0].specs == {"head": "3.13.0"}
    assert [options for _, _, *options in audits.asked] == [[None, True], [None, False]]


def test_a_requirements_file_names_the_compiler_and_where_its_wheels_are(
    audits: Asked, fold: Ran
) -> None:
    Path("c.yml").write_text(CONFIG.replace("{head: 3.13.0}", "{requirements: r.txt}"))
    Path("r.txt").write_text(
        "-f https://example.com/wheels\n--no-index\niree-base-compiler==3.12.0\n"
    )
    fold("--config", "c.yml")
    request, config, *_ = audits.asked[0]
    assert request.specs == {"head": "iree-base-compiler==3.12.0"}
    assert config.places == Places(("https://example.com/wheels",), no_index=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--max-slowdown", "2"],
            (
                "--max-slowdown: '2' is not a percentage, such as 1.5% (allowed: 0% or"
                " more)"
            ),
        ),
        (
            ["--config", "c.yml", "--max-slowdown", "1%", "--no-run"],
            (
                "--max-slowdown: needs run times, and --no-run measures none (remove"
                " one of the two options)"
            ),
        ),
        (
            ["--config", "default"],
            (
                "no compiler is named (give --compiler SPEC, such as --compiler 3.13.0,"
                " or a --config that names compiler"
            ),
        ),
        (["--compiler", ""], "the SPEC is empty"),
        (["--config", "c.yml", "--out", "c.yml"], "c.yml: cannot be written to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_line_before_anything_is_folded(
    audits: Asked, fold: Ran, arguments: list[str], message: str
) -> None:
    code, out, last = fold(*arguments)
    assert (code, out) == (2, "") and message in last
    assert audits.asked == []


def test_where_nothing_was_measured_the_files_are_written_and_it_ends_with_5(
    audits: Asked, fold: Ran
) -> None:
    audits.audit = make.unmeasured()
    code, out, last = fold("--config", "c.yml")
    assert code == 5 and "written to out: fold.json, fold.md, fold.html" in out
    assert (
        last
        == "code-size-bot: out/fold.json: none of 2 builds was measured (error: unknown"
        " option)"
    )
    assert len(json.loads(Path("out/fold.json").read_text())["cells"]) == 2
    audits.audit = make.nothing()  # which is an answer
    code, out, _ = fold("--config", "c.yml")
    assert code == 0 and "Fold audit: nothing was folded in 16 builds" in out


def test_a_runner_of_actions_takes_no_name_for_a_command(
    audits: Asked, fold: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    audits.audit = make.hostile(("::error::taken", "##[error]taken", *HOSTILE))
    out = fold("--config", "c.yml")[1]
    assert not [
        line
        for line in out.splitlines()
        if line.lstrip().startswith("::") or "##[" in line
    ]
