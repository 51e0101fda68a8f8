"""What machine code consists of: its functions and their digests."""
