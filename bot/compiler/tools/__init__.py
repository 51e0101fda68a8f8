"""A SPEC to a compiler at hand: fetched, identified, asked for its options."""
