"""The tables behind ``convert-loops-to-llvm``: for each dialect of the loops stage, op class -> lowering function.

``lowering`` holds the state of one function being lowered; ``functions`` (with the entry points for C), ``arith``,
``math``, ``casts``, ``vectors``, ``lookups``, ``memory``, ``control``, ``parallel`` (work for several threads) and
``gpu`` fill the table.
"""
