"""One file for each local command."""
