"""One reader for each format: bytes or text in, numbers out."""
