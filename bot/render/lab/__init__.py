"""What an experiment gave, as values to lay out, and as Markdown."""
