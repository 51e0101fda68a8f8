"""What a test orders to go wrong: other answers, delays, and things that happen just before a request."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Order = TypeVar("Order")


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer in place of the real one; status 0 breaks the connection, `body` None is GitHub's error object.

    `served`: the request takes effect all the same, only its real answer is lost.
    """

    status: int
    headers: Mapping[str, str]
    body: object
    served: bool = False


@dataclass(slots=True)
class _Waiting(Generic[Order]):
    method: str
    path: re.Pattern[str]
    times: int
    order: Order


class Orders(Generic[Order]):
    """Orders that wait for requests of a method ("*" is any) and a path (searched, without the query); thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiting[Order]] = []

    def add(self, method: str, path_regex: str, order: Order, times: int) -> None:
        with self._lock:
            self._waiting.append(_Waiting(method.upper(), re.compile(path_regex), times, order))

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()

    def take(self, method: str, path: str) -> Order | None:
        """The oldest order for this request, used up by one; None where there is none."""
        with self._lock:
            for one in self._waiting:
                if one.times > 0 and one.method in ("*", method) and one.path.search(path):
                    one.times -= 1
                    return one.order
        return None


class Faults:
    """All orders of one server."""

    def __init__(self) -> None:
        self.answers: Orders[Fault] = Orders()
        self.delays: Orders[float] = Orders()
        self.callbacks: Orders[Callable[[], object]] = Orders()
