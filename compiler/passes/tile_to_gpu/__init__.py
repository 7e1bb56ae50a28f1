"""From grid kernels on blocks to the threads of a GPU: one program of the grid is run by one block of threads.

Scalars and control flow are the same in all threads; the elements of a block value are spread over them. Read in this
order: ``kernels`` (a kernel becomes a function; which block of threads runs which program; checks), ``threads`` (what
one thread of many can emit: its share of a loop, memory of the block), ``blocks`` (block values in memory, and ops that
only say where an element comes from), ``reductions``, ``dot`` and ``top_merge``, ``body`` (the ops in order, shared
with the CPU's ``tile_to_loops``), ``symbols`` (names of kernels as PTX has them).

Nothing here thinks about barriers: ``insert-barriers`` finds out where threads must wait for each other.
"""
