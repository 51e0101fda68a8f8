"""Variants measured over the same cells, and the questions that are put to them."""
