"""A history as a page, as Markdown and as tables of a terminal."""
