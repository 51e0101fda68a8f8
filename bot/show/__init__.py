"""Draw the results for people: in comments, pages and on the terminal.

Each answer is one function from values to blocks. Each kind of block is drawn in one
way.
"""
