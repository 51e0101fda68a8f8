"""Two snapshots to a report, and a report to its files."""
