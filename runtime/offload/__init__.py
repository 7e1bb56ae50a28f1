"""Models and buffers on accelerators.

Read ``memory``, ``buffer``, ``array``; then ``launches``, ``entry``, ``model``.
"""
