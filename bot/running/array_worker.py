"""Fill files with random values, and compare files of values.

numpy does it in a process of its own.

A stand-alone script: it imports the standard library, numpy and ml_dtypes (both come
with the runtime), nothing of the bot. One JSON object on standard input, one on
standard output:

    {"fill": [{"path": PATH, "head": text, "tensors": [{"seed", "element",
                "sizes": [int],
                "role": "input", "wide", "parameter" or "bias",
                "below": int or null}]}]}
        → {"filled": count of files}; a file is the length of its head in 8 bytes and
           the head in UTF-8, or nothing for an empty head, then the tensors' bytes
           without gaps
    {"compare": [{"element": text, "draws": [[PATH before, PATH after]]}]}
        → {"outputs": [{"draws": [{"before_bytes", "after_bytes", "values",
                                   "different", "finite": int,
                                   "relative": float; null if sizes, infinities
                                   or NaNs differ, or if all values before are 0}],
                        "constant": bool, "still": bool}]}
    anything that goes wrong → {"error": "one line"}

Fields of the comparison mean what they mean in `bot.running.feeding`.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

_CHUNK = 1 << 20  # values made at a time
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_SMALL_FLOATS = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
}
"""Element → what ml_dtypes calls it."""
_INPUT_SCALE = 0.25
# wide floats are doubled or halved up to so often: from about 0.001 to 64
_DOUBLINGS = 8
_BIAS_SCALE = 1 << 17


def float_type(element: str) -> Any:
    """Return the numpy type of a float; None for any other element."""
    if element in _SMALL_FLOATS:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _SMALL_FLOATS[element]))
    if element in _FLOATS:
        return np.dtype(_FLOATS[element])
    return None


def integer_bits(element: str) -> int | None:
    """Return the bits of an integer as it is stored with others of its kind.

    None for any other element.
    """
    digits = element.lstrip("siu")
    if element == "index":
        return 64
    if digits.isdecimal() and element[: -len(digits)] in ("i", "si", "ui"):
        return int(digits)
    return None


def pieces(tensor: Any) -> Iterator[bytes]:
    """Yield the tensor's bytes, the same for the same seed, element and sizes."""
    digest = hashlib.sha256(tensor["seed"].encode()).digest()
    rng = np.random.default_rng(np.frombuffer(digest, np.uint32))
    total = math.prod(tensor["sizes"])
    for start in range(0, total, _CHUNK):
        yield values(rng, tensor, min(total - start, _CHUNK))


def values(rng: np.random.Generator, tensor: Any, count: int) -> bytes:
    """Return random values of a tensor, as bytes.

    Integers are below `below`. Without it they are of all lengths: as many have few
    bits as have many. A `bias` is about as large as a sum of hundreds of products
    of small values: without it, what a deep program computes may fall to zero layer
    by layer.
    """
    bits = integer_bits(tensor["element"])
    below = tensor["below"]
    if bits is None:
        if (kind := float_type(tensor["element"])) is None:
            raise TypeError(f"the bot makes no random {tensor['element']}")
        return bytes(floats(rng, tensor, count).astype(kind).tobytes())
    if bits == 1:
        return rng.integers(0, 2, count, dtype=np.uint8).tobytes()
    if tensor["role"] == "bias":
        return (
            np.rint(rng.normal(0, _BIAS_SCALE, count))
            .astype(f"<i{bits // 8}")
            .tobytes()
        )
    size = -(-count * bits // 8)
    if below is not None:
        return rng.integers(0, below, count).astype(f"<i{bits // 8}").tobytes()
    if bits < 32:
        return rng.bytes(size)
    drawn = np.frombuffer(rng.bytes(size), f"<i{bits // 8}")
    return bytes((drawn >> rng.integers(0, bits, count).astype(drawn.dtype)).tobytes())


def floats(rng: np.random.Generator, tensor: Any, count: int) -> Any:
    """Draw values that a deep model keeps in a useful range.

    Parameters of one dimension are biases, scales and variances. They are around 1,
    because variances are positive. Parameters of more dimensions are normal. They
    are scaled so that what a rectifier leaves of a sum of products is as large as
    what went in.
    """
    sizes = tensor["sizes"]
    normal = rng.standard_normal(count, dtype=np.float32)
    if tensor["role"] in ("input", "wide"):
        doubled: Any = 0.0
        if tensor["role"] == "wide":
            doubled = rng.uniform(-_DOUBLINGS, _DOUBLINGS, count)
        return normal * np.float32(_INPUT_SCALE) * np.exp2(doubled, dtype=np.float32)
    if len(sizes) < 2:
        return rng.random(count, dtype=np.float32) + np.float32(0.5)
    return normal * np.float32(math.sqrt(2 / max(1, math.prod(sizes[1:]))))


def fill(files: list[Any]) -> Any:
    """Write the files, each with its head and its tensors; return their number."""
    for file in files:
        with open(file["path"], "wb") as out:
            head = file["head"].encode()
            out.write(len(head).to_bytes(8, "little") + head if head else b"")
            for tensor in file["tensors"]:
                out.writelines(pieces(tensor))
    return {"filled": len(files)}


def compare(outputs: list[Any]) -> Any:
    """Return the comparison of each output, over all draws."""
    comparisons = []
    for output in outputs:
        comparison = OutputComparison(output["element"])
        comparisons.append(comparison.of_draws(output["draws"]))
    return {"outputs": comparisons}


class OutputComparison:
    """The comparison of one output over its draws."""

    def __init__(self, element: str) -> None:
        self.float = float_type(element)
        bits = integer_bits(element) or 8
        self.type = self.float or np.dtype(
            f"<u{max(bits, 8) // 8}" if bits in (1, 8, 16, 32, 64) else "u1"
        )
        self.seen: set[bytes] = set()
        self.seen_files: set[bytes] = set()

    def of_draws(self, draws: list[Any]) -> Any:
        """Return the result for this output."""
        results = [self.of_draw(before, after) for before, after in draws]
        return {
            "draws": results,
            "constant": len(self.seen) < 2,
            "still": len(draws) > 1 and len(self.seen_files) == 1,
        }

    def of_draw(self, before_path: str, after_path: str) -> Any:
        """Compare the two files of one draw."""
        before_bytes = np.fromfile(before_path, np.uint8)
        after_bytes = np.fromfile(after_path, np.uint8)
        self.seen_files.add(hashlib.sha256(before_bytes.tobytes()).digest())
        result = {
            "before_bytes": before_bytes.size,
            "after_bytes": after_bytes.size,
            "values": 0,
        }
        compared_bytes = before_bytes.size // self.type.itemsize * self.type.itemsize
        before = before_bytes[:compared_bytes].view(self.type)
        result["finite"] = self.count_finite(before)
        if before_bytes.size != after_bytes.size:
            return {**result, "different": 0, "relative": None}
        different, relative = self.differences(
            before, after_bytes[:compared_bytes].view(self.type)
        )
        return {
            **result,
            "values": before.size,
            "different": different,
            "relative": relative,
        }

    def count_finite(self, before: Any) -> int:
        """Return how many values are finite, and keep up to two different ones."""
        finite = before
        if self.float is not None:
            finite = before[np.isfinite(before)]
        if finite.size:
            self.seen.add(finite[:1].tobytes())
            differing = np.flatnonzero(finite != finite[0])
            for place in differing[:1]:
                self.seen.add(finite[place : place + 1].tobytes())
        return int(finite.size)

    def differences(self, before: Any, after: Any) -> tuple[int, float | None]:
        """Count the values that differ, and find the largest difference.

        It is a share of the largest magnitude.
        """
        bits = np.dtype(f"u{self.type.itemsize}")
        places = before.view(bits) != after.view(bits)
        if self.float is None or not places.any():
            different = int(places.sum())
            return different, 1.0 if different else 0.0
        nans = np.isnan(before) & np.isnan(after)
        places &= ~nans
        before_values = before[places].astype(np.float64)
        after_values = after[places].astype(np.float64)
        if not (np.isfinite(before_values).all() and np.isfinite(after_values).all()):
            return int(places.sum()), None
        return int(places.sum()), self.relative(
            before, np.abs(before_values - after_values)
        )

    def relative(self, before: Any, differences: Any) -> float | None:
        """Return the largest difference.

        None if there is no magnitude of which it could be a share.
        """
        largest_difference = float(differences.max(initial=0.0))
        largest = float(
            np.abs(before[np.isfinite(before)].astype(np.float64)).max(initial=0.0)
        )
        if largest:
            part = largest_difference / largest
        elif largest_difference:
            part = math.inf
        else:
            part = 0.0
        if math.isfinite(part):
            return part
        return None


def main() -> int:
    """Answer the one request on standard input with one line of JSON."""
    try:
        request = json.load(sys.stdin.buffer)
        if "fill" in request:
            answer = fill(request["fill"])
        else:
            answer = compare(request["compare"])
    except Exception as error:
        answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
