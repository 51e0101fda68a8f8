"""A GitHub for tests: a real HTTP server with state, limits, permissions and faults on demand."""

from .server import FakeGitHub

__all__ = ["FakeGitHub"]
