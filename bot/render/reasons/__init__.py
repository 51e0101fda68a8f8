"""Why cells changed, as values to lay out."""
