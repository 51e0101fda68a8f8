"""Many releases to their snapshots: which are asked for, what is measured of them, and what was stored."""
