"""The tables behind ``convert-loops-to-llvm``: for each dialect of the loops stage, op class -> lowering function.

``lowering`` holds the state of one function being lowered; ``arith``, ``casts``, ``vectors``, ``memory`` and
``control`` fill the table.
"""
