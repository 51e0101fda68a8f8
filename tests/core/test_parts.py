"""bot.core.parts: what code is called where it is text."""

from __future__ import annotations

from bot.core.metrics import METRIC_BY_ID
from bot.core.parts import code_words, metric_words


def test_text_is_called_text() -> None:
    size = METRIC_BY_ID["executable_bytes"]
    assert [metric_words(size, one) for one in ("cuda", "metal-spirv", "rocm", "")] == [
        *("PTX text", "shader source"),
        *("device code", "device code"),
    ]
    assert metric_words(METRIC_BY_ID["sass_bytes"], "cuda") == "SASS"
    assert (code_words("code", "cuda"), code_words("code", "llvm-cpu")) == ("PTX text", "code")
