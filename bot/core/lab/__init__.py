"""Experiments of the lab and what they gave, as values."""
