"""Elementary functions as expansions into correctly rounded operations: the same bits on every target.

``table`` says which exist and what each promises; ``emitter`` is what they are written against.
"""
