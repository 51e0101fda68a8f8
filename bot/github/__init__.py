"""Handle events on GitHub: one file for each event, and what they share."""
