"""What many releases did, as values and rules."""
