"""The report, one cell and progress on a terminal."""
