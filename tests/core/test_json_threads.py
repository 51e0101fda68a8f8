"""Types that several threads read for the first time at once: the library alone crashes there now and then."""

from __future__ import annotations

import subprocess
import sys

from places import ROOT

SCRIPT = """
import sys, threading, msgspec
from bot.core.json_text import converted, decoded

sys.setswitchinterval(1e-6)
wrong = []

def read(kind, ready, text):
    ready.wait()
    one = decoded(text, kind, "here")
    other = converted({"inner": {"deep": [{"x": 1}]}}, kind, "here")
    if one != other or one.inner.deep[0].x != 1:
        wrong.append(one)

for _ in range(400):
    leaf = msgspec.defstruct("Leaf", [("x", int)])
    inner = msgspec.defstruct("Inner", [("deep", list[leaf])])
    kind = msgspec.defstruct("Outer", [("inner", inner)])
    ready = threading.Barrier(8)
    threads = [threading.Thread(target=read, args=(kind, ready, b'{"inner":{"deep":[{"x":1}]}}')) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("wrong:", len(wrong))
"""


def test_a_type_that_threads_read_for_the_first_time_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrong: 0\n", "")
