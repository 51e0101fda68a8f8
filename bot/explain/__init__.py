"""Explain why a cell changed, from the cell on both sides and its IR."""
