"""A fold audit as values to lay out, and as the section of a report."""
