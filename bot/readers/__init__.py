"""Read one format with each reader: bytes or text in, numbers out."""
