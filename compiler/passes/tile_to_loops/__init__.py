"""From grid kernels on blocks to loops over vectors and flat memory, for the CPU.

Read in this order: ``functions`` and ``signatures`` (a kernel becomes a function over a range of programs), ``layout``,
``lifetimes`` and ``launches`` (the entry function: what lies where, from when to when, and what a launch must be),
``grid_limit`` and ``sharing`` (what stands before the programs of a launch: how many there may be, which thread runs
them), ``body`` (ops in order), ``prints`` and ``watch`` (calls back to the runtime: to print, and to end a loop),
``strips`` (blocks computed a vector at a time where they are used), ``columns`` (the loop over a row, with and without
masks), ``tails`` (where it may stop), ``walls``, ``reductions``, ``dot``, ``packing``, ``top_merge`` (blocks that must
exist in memory), ``placement`` (which strips become walls all the same), ``thread_arena`` (where large walls lie),
``prefetch`` (which loops fetch the next block), ``views`` (where a window lies in memory), ``loop_builder`` and
``scalars`` (what all of them emit with).
"""
