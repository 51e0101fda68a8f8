"""A report as values that templates only have to lay out."""
