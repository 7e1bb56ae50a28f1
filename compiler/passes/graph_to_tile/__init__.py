"""From a graph of tensors to an entry function that launches grid kernels.

Read in this order: ``entry`` (the entry function and its buffers), ``schedule`` (what is launched after what),
``access`` (where an element lies, through views), ``group``, ``evaluation`` and ``group_kernel`` (the kernel of a
group of fused ops), ``column_kernel`` (reductions along other axes than the last), ``copies``, ``calls`` (what brings
kernels of its own), ``epilogue`` (maps that are computed inside such a kernel), ``regions`` (branches and loops).
"""
