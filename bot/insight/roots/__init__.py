"""The change of bytes by cause, in a cell and over all cells."""
