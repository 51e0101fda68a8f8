"""bot.cli.doctor: a line for every check, and a hint where one is needed."""

from __future__ import annotations

import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from fake_wheels import wheel_name

from bot.cli.doctor import examine
from bot.cli.main import main
from bot.system.cancel import Cancel

pytestmark = pytest.mark.slow


def rows(text: str) -> dict[str, tuple[str, str]]:
    """What was looked at → mark and finding."""
    return {
        line[8:24].strip(): (line[:8].strip(), line[24:]) for line in text.splitlines()
    }


@pytest.fixture(autouse=True)
def index(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """A directory without configuration, and a package index with one release.

    Gives what was asked of it.
    """
    requested: list[str] = []
    link = f'<a href="{wheel_name()}">{wheel_name()}</a>'.encode()

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><html><body>" + link + b"</body></html>")

        def log_message(self, *_: object) -> None:
            pass

    for name in (
        "HTTP_PROXY",
        "http_proxy",
        "PIP_FIND_LINKS",
        "PIP_EXTRA_INDEX_URL",
        "PIP_NO_INDEX",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.chdir(tmp_path)
    server = HTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    request.addfinalizer(server.shutdown)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    return requested


def test_a_sound_machine_needs_no_mending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], index: list[str]
) -> None:
    code = main(["doctor", "--cache", str(tmp_path / "cache")])
    checks = rows(capsys.readouterr().out)
    assert list(checks) == [
        *("Python", "git", "pip", "package index", "onnx (optional)", "ptxas (cuda)"),
        *("runtime (run)", "commands"),
        *("default suite", "configuration", "cache"),
    ]
    assert code == (0 if all(mark == "ok" for mark, _ in checks.values()) else 2)
    assert checks["Python"][0] == checks["default suite"][0] == "ok"
    assert checks["cache"][1].startswith(str(tmp_path / "cache"))
    assert list((tmp_path / "cache").iterdir()) == []
    assert checks["package index"] == ("ok", "has iree-base-compiler 3.13.0")
    assert index == ["/simple/iree-base-compiler/"], "one request"
    nowhere = (
        "not found (.github/code-size.yml, code-size.yml): code-size-bot init"
        " writes one"
    )
    assert checks["configuration"] == ("ok", nowhere)


def test_without_an_index_compilers_of_this_machine_still_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv(
            "PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        )
        assert not examine(tmp_path / "cache", Cancel())
    mark, text = rows(capsys.readouterr().out)["package index"]
    assert mark == "missing" and text.startswith("no answer: ")
    assert text.endswith(
        " -> check the network and PIP_INDEX_URL, or use a compiler on this machine"
    )


@pytest.mark.parametrize("name", [".github/code-size.yml", "code-size.yml"])
def test_the_configuration_here_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"schema: code-size-config/1\nmodels: ['{tmp_path}/m.mlir']\ntargets: [vmvx,"
        " cuda]\n"
    )
    (tmp_path / "m.mlir").write_text("module {}")
    examine(tmp_path / "cache", Cancel())
    assert rows(capsys.readouterr().out)["configuration"] == (
        "ok",
        f"{name}: 1 model, 2 targets",
    )


def test_the_pin_that_a_configuration_names_is_looked_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code-size.yml").write_text(
        "schema: code-size-config/1\ncompiler: {requirements: pins.txt}\n"
    )
    assert not examine(tmp_path / "cache", Cancel())
    assert (
        "pins.txt: cannot be read: No such file"
        in rows(capsys.readouterr().out)["configuration"][1]
    )
    (tmp_path / "pins.txt").write_text("iree-base-compiler==3.13.0\n")
    examine(tmp_path / "cache", Cancel())
    mark, text = rows(capsys.readouterr().out)["configuration"]
    assert mark == "ok" and text.endswith(
        "targets, iree-base-compiler==3.13.0 of pins.txt"
    )


def test_a_configuration_that_cannot_be_loaded_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code-size.yml").write_text("schema: code-size-config/1\nmodelz: []\n")
    assert not examine(tmp_path / "cache", Cancel())
    error_line = "code-size.yml:2: modelz: unknown key (did you mean 'models'?)"
    mend = "correct the file: most commands read it"
    assert rows(capsys.readouterr().out)["configuration"] == (
        "missing",
        f"{error_line} -> {mend}",
    )


def test_what_is_missing_is_said_with_its_mend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bot.system.confined.has_namespaces", lambda: False)
    assert not examine(tmp_path / "file", Cancel())
    checks = rows(capsys.readouterr().out)
    assert checks["commands"][1].endswith("the network is OPEN: unshare is not on PATH")
    assert checks["git"] == (
        "missing",
        "not found -> install git: the report names commits with it",
    )
    mark, text = checks["cache"]
    assert mark == "missing" and text.endswith(
        "-> choose another one with --cache or CODE_SIZE_CACHE"
    )


def test_a_machine_without_ptxas_or_runtime_is_sound_and_reads_how_to_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.compiler.ptxas.installed", lambda: None)
    monkeypatch.setattr("bot.running.runner.installed", lambda: None)
    examine(tmp_path / "cache", Cancel())
    checks = rows(capsys.readouterr().out)
    for check, extra in (("ptxas (cuda)", "cuda"), ("runtime (run)", "run")):
        assert checks[check][0] == "ok" and checks[check][1].endswith(
            f"pip install 'code-size-bot[{extra}]'"
        )
