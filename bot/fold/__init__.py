"""The fold audit: merge executables that deduplication left apart, and measure the saving."""
