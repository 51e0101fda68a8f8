"""Baseline snapshots kept between runs: a local directory, a data branch or workflow artifacts, behind one Protocol."""
