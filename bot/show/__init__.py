"""What a person reads: each answer is one function from values to blocks, and every block is drawn in one way."""
