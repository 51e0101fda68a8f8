"""The first report of a repository, as values to lay out."""
