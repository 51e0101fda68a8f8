"""Programs as digests, and what two of them have in common."""
