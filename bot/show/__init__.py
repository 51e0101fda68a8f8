"""What a person reads.

Each answer is one function from values to blocks. Each block is drawn in one way.
"""
