"""`print`: a value shown whenever the graph runs."""

from __future__ import annotations

from halfulp.compiler import Graph, TensorValue, Weight


def print(value: TensorValue | Weight, label: str = "debug_tensor") -> None:
    """Show a value on standard output after each execution. No bit of anything else changes.

    What a graph prints appears in the order of the program, in one piece, when an execution is over. One that fails,
    for instance in a check of a kernel, prints nothing. How it looks is for
    `InferenceSession.set_debug_print_options` to say.

    Args:
        value: a tensor of any type and shape.
        label: any text; it stands before the value.

    Raises:
        GraphError: the value belongs to another graph, or the label is no Unicode text.
        GraphTypeError: ``value`` is no value of a graph, or ``label`` no str.
        NotFoundError: no graph is being built.
    """
    Graph.current("ops.print").print(value, label)
