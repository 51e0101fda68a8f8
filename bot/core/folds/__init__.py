"""What folding executables gave, as values."""
