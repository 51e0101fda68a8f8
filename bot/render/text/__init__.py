"""Escapes, numbers and phrases for every place that shows them."""
