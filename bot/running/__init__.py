"""Run artifacts: feed them, time them, and compare their outputs."""
