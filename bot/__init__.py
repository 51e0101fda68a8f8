"""A code-size review bot for IREE: compile, measure, compare, judge, report."""

__version__ = "0.1.0"
