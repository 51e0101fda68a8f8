"""bot.compiler.bindings: a real child answers line by line; what goes wrong costs one answer, not the run."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from fake_compiler import is_alive, wait_until

from bot.compiler.bindings import Bindings
from bot.errors import Interrupted
from bot.system.processes import Cancel

READY = "print(json.dumps({'ready': True}), flush=True)\n"
PRELUDE = """
import json, os, sys, time
home = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(home, "starts"), "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
ECHO = "for line in sys.stdin: print(json.dumps({'got': json.loads(line), 'root': sys.argv[1]}), flush=True)\n"
CRASH_ONCE = """
for line in sys.stdin:
    if "deadly" in line:
        print('{"half": ', end="", flush=True)
        os.abort()
    print(json.dumps({"got": json.loads(line)}), flush=True)
"""


def bindings(home: Path, body: str, timeout_seconds: float = 20, cancel: Cancel | None = None) -> Bindings:
    script = home / "worker.py"
    script.write_text(PRELUDE + body)
    return Bindings(home / "root", "", cancel or Cancel(), timeout_seconds, script=script)


def starts(home: Path) -> list[int]:
    file = home / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def error_of(answer: str | None) -> str:
    assert answer is not None
    error = json.loads(answer)["error"]
    assert isinstance(error, str)
    return error


def test_a_worker_is_started_on_first_use_and_only_once(tmp_path: Path) -> None:
    one = bindings(tmp_path, READY + ECHO)
    assert one.reason is None and starts(tmp_path) == []
    answers = [one.ask("program", stream=f"/a b/{i}.mlir") for i in range(3)]
    assert [json.loads(answer or "")["got"] for answer in answers] == [
        {"op": "program", "stream": f"/a b/{i}.mlir"} for i in range(3)
    ]
    assert json.loads(answers[0] or "")["root"] == str(tmp_path / "root")
    assert len(starts(tmp_path)) == 1
    one.close()
    one.close()
    assert wait_until(lambda: not any(map(is_alive, starts(tmp_path))))


@pytest.mark.parametrize(
    "body", ['print(\'{"error": "no module named iree"}\', flush=True)\nsys.exit(1)', "sys.exit(1)", "os.abort()"]
)
def test_bindings_that_do_not_load_are_given_up(tmp_path: Path, body: str) -> None:
    one = bindings(tmp_path, body)
    assert error_of(one.ask("program")) == "on this machine: this compiler's MLIR bindings cannot be loaded"
    assert one.reason == "on this machine: this compiler's MLIR bindings cannot be loaded"
    assert one.ask("program") is None
    assert len(starts(tmp_path)) == 1


def test_a_crash_costs_one_answer(tmp_path: Path) -> None:
    one = bindings(tmp_path, READY + CRASH_ONCE)
    assert json.loads(one.ask("program", stream="fine") or "")["got"]["stream"] == "fine"
    assert error_of(one.ask("program", stream="deadly")) == "on this machine: the IR reader ended without an answer"
    assert json.loads(one.ask("program", stream="fine again") or "")["got"]["stream"] == "fine again"
    assert len(starts(tmp_path)) == 2 and one.reason is None
    one.close()


def test_a_hang_costs_one_answer(tmp_path: Path) -> None:
    body = READY + "for line in sys.stdin: time.sleep(600 if 'slow' in line else 0); print('{}', flush=True)"
    one = bindings(tmp_path, body, timeout_seconds=0.5)
    assert "error" in json.loads(one.ask("program", stream="slow") or "")
    assert one.ask("program", stream="fast") == "{}"
    first, second = starts(tmp_path)
    assert not is_alive(first) and is_alive(second)
    one.close()


def test_threads_get_their_own_answers(tmp_path: Path) -> None:
    one, wrong = bindings(tmp_path, READY + ECHO), []

    def ask(name: str) -> None:
        for i in range(30):
            if json.loads(one.ask("program", stream=f"{name}{i}") or "")["got"]["stream"] != f"{name}{i}":
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(starts(tmp_path)) == 1
    one.close()


def test_cancel_ends_a_question(tmp_path: Path) -> None:
    cancel = Cancel()
    one = bindings(tmp_path, READY + "time.sleep(600)", cancel=cancel)
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(Interrupted):
        one.ask("program")
    one.close()
    assert not any(map(is_alive, starts(tmp_path)))
