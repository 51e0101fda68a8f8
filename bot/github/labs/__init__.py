"""Experiments of the lab on GitHub."""
