"""From grid kernels on blocks to loops over vectors and flat memory, for the CPU.

Read in this order: ``functions`` (a kernel becomes a function over a range of programs), ``grid_limit`` and
``sharing`` (what stands before the programs of a launch: how many there may be, which thread runs them), ``body``
(ops in order), ``strips`` (blocks computed a vector at a time where they are used), ``columns`` (the loop over a row,
with and without masks), ``tails`` (where it may stop), ``walls``, ``reductions``, ``dot``, ``packing``, ``top_merge``
(blocks that must exist in memory), ``placement`` (which strips become walls all the same), ``thread_arena`` (where
large walls lie), ``prefetch`` (which loops fetch the next block), ``views`` (where a window lies in memory),
``loop_builder`` and ``scalars`` (what all of them emit with).
"""
