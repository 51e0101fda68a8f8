"""`history` over releases whose compilers are fakes: what is measured, what is a gap, and what is written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import history_factory as make
import pytest
from fake_compiler import TEMPLATES, install, write_model
from fake_wheels import entries, wheel_name, write_wheel
from github_runner import git
from growth import steps
from links_page import no_other_source
from replacing import replace
from report_factory import snapshot
from series import write

from bot.cli.main import main
from bot.core.baseline import Entry
from bot.core.snapshot_json import snapshot_lines
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.system.cancel import Cancel
from bot.system.git import Git

pytestmark = pytest.mark.slow

RELEASES = ("3.8.0", "3.9.0", "3.10.0", "3.11.0", "3.12.0rc20260402", "3.12.0")
GROWS = "3.10.0"
FAILS = "3.11.0"
CONFIG = (
    "schema: code-size-config/1\nmodels: [m/*.mlir]\ntargets: [vmvx,"
    " llvm-cpu-x86_64]\ncomponents: {}\n"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite, and wheels of all releases: from 3.10.0 on artifacts are larger, 3.11.0 does not compile beta."""
    no_other_source(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    for number, version in enumerate(RELEASES):
        rules = [{"do": "fail", "model": "model beta"}] if version == FAILS else []
        rules += [{"do": "grow"}] if number >= RELEASES.index(GROWS) else []
        fake = install(
            tmp_path / "fakes" / version, rules, version=version, templates=TEMPLATES
        )
        write_wheel(
            tmp_path / "dist" / wheel_name(version),
            entries(fake, version.encode(), version),
        )
    (tmp_path / "m").mkdir()
    for name in ("alpha", "beta"):
        write_model(tmp_path / "m", name)
    (tmp_path / "code-size.yml").write_text(CONFIG)
    return tmp_path


def run(*options: str) -> int:
    return main(("history", "--cache", "cache", *options))


def told() -> dict[str, Any]:
    history: dict[str, Any] = json.loads(Path("out/history.json").read_bytes())
    return history


def names() -> list[str]:
    return [release["name"] for release in told()["releases"]]


def points(model: str, target: str = "vmvx") -> list[dict[str, Any]]:
    return [
        point
        for point in told()["points"]
        if (point["model"], point["target"]) == (model, target)
    ]


def test_a_range_has_all_releases_between_its_ends(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--releases", "3.8.0..3.12.0") == 0
    assert names() == [
        "3.8.0",
        "3.9.0",
        "3.10.0",
        "3.11.0",
        "3.12.0",
    ], "no pre-release where both ends are none"
    alpha = points("alpha")
    beta = points("beta")
    assert [point.get("move", {}).get("since") for point in alpha] == [
        None,
        None,
        "3.9.0",
        None,
        None,
    ]
    change = (
        alpha[2]["metrics"]["artifact_bytes"] - alpha[1]["metrics"]["artifact_bytes"]
    )
    assert alpha[2]["move"]["changes"]["artifact_bytes"] == change > 0
    assert [point["status"] for point in beta] == ["ok", "ok", "ok", "failed", "ok"]
    assert beta[3]["metrics"] == {} and beta[3]["reason"] and "move" not in beta[4]
    assert [
        (step["broken"], step["fixed"], step["larger"]) for step in told()["steps"]
    ] == [
        (0, 0, 0),
        (0, 0, 4),
        (2, 0, 0),
        (0, 2, 0),
    ]
    total = next(row for row in told()["totals"] if row["target"] is None)
    assert total["cells"]["artifact_bytes"] == 2
    out = capsys.readouterr()
    assert (
        out.out.splitlines()[-1]
        == "written to out: history.json, history.md, history.html"
    )
    assert "releases: 3.8.0, 3.9.0, 3.10.0, 3.11.0, 3.12.0" in out.err
    assert "over 2 of 4 builds" in out.out
    page, text = (
        (home / "out" / f"history.{end}").read_text() for end in ("html", "md")
    )
    assert 'id="beta/vmvx"' in page and "over 2 of 4 builds" in text and "–¹" in text


@pytest.mark.usefixtures("home")
def test_what_is_cached_is_not_measured_again_and_the_files_are_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--releases", "3.9.0..3.11.0") == 0
    first = [
        Path("out", name).read_bytes()
        for name in ("history.json", "history.md", "history.html")
    ]
    capsys.readouterr()
    assert run("--releases", "3.11.0,3.9.0", "--releases", "3.10.0") == 0
    assert (
        "\n12 compiles (4 builds on 3 variants), 12 from the cache\n"
        in capsys.readouterr().err
    )
    again = [
        Path("out", name).read_bytes()
        for name in ("history.json", "history.md", "history.html")
    ]
    assert first == again, "the order in which releases are named does not matter"


def test_a_release_that_cannot_be_had_is_a_gap_and_the_others_go_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "dist" / wheel_name("3.9.0")).write_bytes(b"cut off")
    assert run("--releases", "3.8.0..3.10.0,3.10.5") == 0
    assert names() == ["3.8.0", "3.9.0", "3.10.0", "3.10.5"]
    reasons = {
        release["name"]: release.get("reason", "") for release in told()["releases"]
    }
    assert (
        "3.9.0" in reasons["3.9.0"]
        and "no such release" in reasons["3.10.5"]
        and not reasons["3.8.0"]
    )
    assert [point["status"] for point in points("alpha")] == [
        "ok",
        "unmeasured",
        "ok",
        "unmeasured",
    ]
    assert told()["steps"][0]["gaps"] == ["3.9.0"]
    assert "left out: " in capsys.readouterr().err


def test_a_step_is_the_comparison_of_its_two_releases(home: Path) -> None:
    """The older release of a step is compiled again, too, as `compare` does it."""
    flaky = [{"do": "flaky", "kind": "direct", "model": "model alpha"}]
    fake = install(home / "flaky", flaky, version="3.8.0", templates=TEMPLATES)
    wheel = home / "dist" / wheel_name("3.8.0")
    write_wheel(wheel, entries(fake, b"flaky", "3.8.0"))
    assert run("--releases", "3.8.0,3.9.0", "--target", "vmvx", "--model", "alpha") == 0
    [older, newer] = points("alpha")
    smallest, largest = older["seen"]["artifact_bytes"]
    assert smallest == newer["metrics"]["artifact_bytes"] < largest
    assert "move" not in newer


@pytest.mark.usefixtures("home")
def test_one_named_twice_is_one_point() -> None:
    assert run("--releases", "3.8.0,iree-base-compiler==3.8.0,3.9.0,3.9.0") == 0
    assert names() == ["3.8.0", "3.9.0"]


@pytest.mark.usefixtures("home")
def test_of_two_measurements_of_one_compiler_the_later_is_its_point_and_other_flags_make_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, flags in {"old.json": [], "flagged.json": ["--flags=--iree-x=1"]}.items():
        assert (
            main(
                (
                    "measure",
                    "--compiler",
                    "3.8.0",
                    "--cache",
                    "cache",
                    "--out",
                    name,
                    *flags,
                )
            )
            == 0
        )
    assert run("--releases", "3.8.0,old.json,flagged.json,3.10.0") == 0
    assert [release["spec"] for release in told()["releases"][:2]] == [
        "old.json",
        "flagged.json",
    ]
    assert names() == ["3.8.0", "3.8.0 (2)", "3.10.0"]
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("left out: ")
    ]
    assert lines == [
        "left out: iree-base-compiler==3.8.0: the same compiler, models, targets and"
        " flags as old.json"
    ]


@pytest.mark.usefixtures("home")
def test_an_option_that_a_release_does_not_know_is_its_gap(home: Path) -> None:
    fake = install(
        home / "fakes" / "odd",
        unknown=["--iree-x"],
        version="3.13.0",
        templates=TEMPLATES,
    )
    write_wheel(home / "dist" / wheel_name("3.13.0"), entries(fake, b"odd", "3.13.0"))
    assert run("--releases", "3.12.0,3.13.0", "--flags=--iree-x=1") == 0
    assert "does not know the option --iree-x" in told()["releases"][1]["reason"]


def test_flags_are_given_in_ranges_of_releases(home: Path) -> None:
    config = CONFIG.replace("[vmvx, llvm-cpu-x86_64]", TARGETS)
    (home / "code-size.yml").write_text(config)
    assert run("--releases", "3.9.0..3.12.0", "--model", "alpha") == 0
    used = [
        point["command"].partition("vmvx")[2].partition(" -o")[0].split()
        for point in points("alpha", "mine")
    ]
    assert used == [
        ["--iree-old"],
        ["--iree-odd", "--iree-more"],
        ["--iree-new"],
        ["--iree-new"],
    ]


TARGETS = """
  mine:
    backend: vmvx
    flags: [--iree-new]
    releases: {"<3.10": [--iree-old], "==3.10.*": [--iree-odd, --iree-more]}"""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            [],
            2,
            (
                "expects either --releases or --store (for example --releases"
                " 3.8.0..3.13.0"
            ),
        ),
        (["--releases", "3.8.0", "--store"], 2, "expects either --releases or --store"),
        (
            ["--releases", "3.9.0..3.8.0"],
            2,
            "goes from a newer release to an older one (write 3.8.0..3.9.0)",
        ),
        (["--releases", "3.9.0.."], 2, "is not a range of releases (write both ends"),
        (["--releases", ","], 2, "names no release"),
        (["--releases", "no.json"], 2, "no.json: cannot be read"),
        (["--releases", "3.8.0", "--model", "gamma"], 2, "gamma"),
        (["--releases", "4.0.0,5.0.0"], 4, "no release is available"),
        (
            ["--releases", "3.11.0", "--model", "beta"],
            5,
            "history.json: nothing was measured (",
        ),
        (
            ["--store", "--flags=--iree-x"],
            2,
            "--flags: stored baselines are not compiled (use it with --releases)",
        ),
        (
            ["--releases", "3.8.0", "--last", "2"],
            2,
            "--last: releases are named one by one (use it with --store",
        ),
        (["--store", "nowhere"], 2, "no baseline of report 'default' is stored"),
        (["--store", "data-branch"], 2, "git"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], options: list[str], code: int, message: str
) -> None:
    assert run(*options) == code
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("code-size-bot: ") and message in line


@pytest.mark.usefixtures("home")
def test_json_is_all_that_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--releases", "3.8.0", "--format", "json") == 0
    assert capsys.readouterr().out.encode() == Path("out/history.json").read_bytes()


# Snapshots and stored baselines.


def test_globs_and_lists_of_snapshots_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for release in make.RELEASES:
        Path(f"{release}.json").write_bytes(
            b"".join(snapshot_lines(make.stored(release)))
        )
    assert run("--releases", "*.json", "--config", "default") == 0
    assert names() == [*make.RELEASES], "by version, not as names are sorted"
    sizes = [point["metrics"]["artifact_bytes"] for point in points(*KEY)]
    assert sizes[2:] == [47_832, 74_296, 64_872, 64_920]
    assert (
        run(
            "--releases",
            "3.13.0.json,3.8.0.json",
            "--config",
            "default",
            "--target",
            "cuda",
        )
        == 0
    )
    assert names() == ["3.8.0", "3.13.0"] and {
        point["target"] for point in told()["points"]
    } == {"cuda"}


KEY = (make.BERT.model, make.BERT.target)


def test_snapshots_without_versions_are_in_the_order_of_their_numbers_for_history_and_bisect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (8, 9, 10, 11):
        snapshot = make.side(str(number), {make.BERT: 100_000 * number})
        info = replace(snapshot.compiler, version="nightly", spec="")
        write(Path(f"nightly-{number}.json"), replace(snapshot, compiler=info))
    assert run("--releases", "nightly-*.json", "--config", "default") == 0
    assert (
        "has a version that cannot be ordered: releases keep the order"
        in capsys.readouterr().err
    )
    assert [point["metrics"]["artifact_bytes"] for point in points(*KEY)] == [
        800_000,
        900_000,
        1_000_000,
        1_100_000,
    ]
    cell = [
        "--model",
        KEY[0],
        "--target",
        KEY[1],
        "--limit",
        "950000B",
        "--config",
        "default",
        "--format",
        "json",
    ]
    assert (
        main(
            [
                "bisect",
                "nightly-8.json",
                "nightly-11.json",
                "--among",
                "nightly-*.json",
                *cell,
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["first_bad"] == "nightly-10.json"


def test_the_work_grows_with_the_number_of_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def work(number: int) -> int:
        models = tuple(f"m{index:04}" for index in range(number))
        write(
            Path("one.json"),
            snapshot("3.13.0", models=models, targets={"vmvx": "vmvx"}, dispatches=0),
        )
        return steps(lambda: run("--releases", "one.json", "--config", "default"))

    work(1)  # what is imported and read once
    fixed = work(420)  # more cells than a terminal and Markdown show
    assert work(1_420) - fixed < 2.1 * (work(920) - fixed)


def entry(number: int) -> Entry:
    """Commits whose names are not in the order in which they were made."""
    return Entry("default", f"{99 - number}{number:038x}", "d" * 64)


def test_baselines_are_in_the_order_in_which_they_were_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    origin = tmp_path / "origin.git"
    work = tmp_path / "work"
    git(tmp_path, "init", "--quiet", "--bare", str(origin))
    git(tmp_path, "clone", "--quiet", f"file://{origin}", str(work))
    (work / "code-size.yml").write_text(
        "schema: code-size-config/1\nmodels: [no/*.mlir]\n"
    )
    with DataBranch(Git(work, Cancel())) as branch:
        for number, release in enumerate(make.RELEASES):
            assert branch.save(entry(number), make.stored(release))
        assert list(branch.in_order([*map(entry, reversed(range(6)))])) == [
            *map(entry, range(6))
        ]
    monkeypatch.chdir(work)
    assert run("--store", "--last", "4") == 0, "there is no directory of baselines"
    assert names() == [entry(number).sha[:10] for number in range(2, 6)]
    assert [point["metrics"]["artifact_bytes"] for point in points(*KEY)] == [
        47_832,
        74_296,
        64_872,
        64_920,
    ]
    assert [release["spec"] for release in told()["releases"]] == [*make.RELEASES[2:]]


def test_baselines_in_another_repository_are_found_beside_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = tmp_path / "octo" / "repo.git"
    sizes_repository = tmp_path / "octo" / "sizes.git"
    work = tmp_path / "work"
    for bare in (origin, sizes_repository):
        bare.mkdir(parents=True)
        git(bare, "init", "--quiet", "--bare")
    git(tmp_path, "clone", "--quiet", f"file://{origin}", str(work))
    text = (
        "schema: code-size-config/1\nmodels: [no/*.mlir]\nbaseline: {repository:"
        " octo/sizes}\n"
    )
    (work / "code-size.yml").write_text(text)
    with DataBranch(
        Git(work, Cancel()), address=f"file://{sizes_repository}"
    ) as branch:
        for number, release in enumerate(make.RELEASES[:3]):
            assert branch.save(entry(number), make.stored(release))
    monkeypatch.chdir(work)
    assert run("--store", "--last", "2") == 0
    assert names() == [entry(number).sha[:10] for number in range(1, 3)]


def test_baselines_are_along_first_parents_where_their_commits_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    commits = []
    for release in (*make.RELEASES[:3], "aside"):
        if release == "aside":
            git(tmp_path, "checkout", "--quiet", "-b", "aside")
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", release)
        commits.append(git(tmp_path, "rev-parse", "HEAD").strip())
    store = DirectoryStore(tmp_path / "kept")
    for number in (2, 0, 3, 1):
        store.save(
            Entry("default", commits[number], "d" * 64),
            make.stored(make.RELEASES[number]),
        )
    assert run("--store", "kept", "--config", "default") == 0
    assert names() == [sha[:10] for sha in commits[:3]], (
        "an old commit that was measured again is no news"
    )
    assert "left out: 1 of 4 stored baselines" in capsys.readouterr().err
    assert run("--store", "kept", "--config", "default", "--last", "2") == 0
    assert names() == [sha[:10] for sha in commits[1:3]]


def test_stored_baselines_show_growth_since_the_release_and_over_90_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    store = DirectoryStore(tmp_path / "kept")
    commits = []
    for number, release in enumerate(make.RELEASES[2:]):
        for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
            monkeypatch.setenv(name, f"{1_700_000_000 + 60 * number * 86_400} +0000")
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", release)
        commits.append(git(tmp_path, "rev-parse", "HEAD").strip())
        store.save(Entry("default", commits[-1], "d" * 64), make.stored(release))
    git(tmp_path, "tag", "v3.11.0", commits[1])
    git(tmp_path, "tag", "v3.11.0-rc3", commits[1])  # the candidate that was released
    chosen = (
        "--store",
        "kept",
        "--config",
        "default",
        "--model",
        "bert*",
        "--target",
        "x86_64",
    )
    assert run(*chosen, "--last", "2") == 0
    release, acceptance, window = told()["growths"]
    assert (release["base"], release["what"], window["base"]) == (
        commits[1],
        "v3.11.0",
        commits[1],
    )
    assert acceptance["base"] is None and acceptance["reason"]
    sizes = [make.stored(name).cells for name in ("3.11.0", "3.13.0")]
    base, head = (
        {cell.key: cell.value("artifact_bytes") for cell in cells}[make.BERT]
        for cells in sizes
    )
    assert release["metrics"]["artifact_bytes"] == {
        "base": base,
        "head": head,
        "builds": 1,
    }, "as the selectors say"
    text = Path("out/history.md").read_text()
    assert "**Slow growth**" in text and "code size, bytes, all together" in text
    assert "Slow growth" in capsys.readouterr().out


def test_a_directory_of_baselines_with_one_that_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(tmp_path / "kept")
    for number, release in enumerate(make.RELEASES[3:]):
        store.save(entry(number), make.stored(release))
    files = sorted(
        (tmp_path / "kept").rglob("*.xz"), key=lambda file: file.stat().st_mtime_ns
    )
    files[1].write_bytes(b"cut off")
    for number, file in enumerate(files):
        os.utime(file, ns=(number, number))
    assert run("--store", "kept", "--config", "default") == 0
    assert [bool(release.get("reason")) for release in told()["releases"]] == [
        False,
        True,
        False,
    ]
    assert "not a complete xz file" in told()["releases"][1]["reason"]
    assert run("--store", "kept", "--config", "default", "--model", "gpt2") == 2
