"""One side of a comparison, from compiler and models to a snapshot."""
