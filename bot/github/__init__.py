"""One file for each event on GitHub, and what they share."""
