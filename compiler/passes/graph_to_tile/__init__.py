"""From a graph of tensors to an entry function that launches grid kernels.

``entry`` makes the entry function and its buffers, ``calls`` lowers what the registry defines, ``elementwise`` is the
kernel of an op that works element by element.
"""
