"""From the ``llvm`` dialect to machine code: LLVM text, targets, objects, and the table of what selects."""
