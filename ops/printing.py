"""`print`: a value, or a line of text, shown whenever the graph runs."""

from __future__ import annotations

from halfulp.compiler import Graph, TensorValue, Weight

DEFAULT_LABEL = "debug_tensor"


def print(value: TensorValue | Weight | str, label: str | None = None) -> None:
    """Show a value or a text on standard output in each execution. No bit of anything else changes.

    What a graph prints appears in the order of the program, in one piece, when an execution is over. One that fails,
    for instance in a check of a kernel, prints nothing. How it looks, and whether it goes to files instead, is for
    `InferenceSession.set_debug_print_options` to say; a text always goes to standard output, unless the style is NONE.

    Args:
        value: a tensor of any type and shape, or a text.
        label: any text. It stands before the value; by default it is ``debug_tensor``. Before a text it stands in
            brackets, ``[label] text``; by default a text has none.

    Raises:
        GraphError: the value belongs to another graph, or the text or the label is no Unicode text.
        GraphTypeError: ``value`` is neither a value of a graph nor a str, or ``label`` no str.
        NotFoundError: no graph is being built.
    """
    graph = Graph.current("ops.print")
    if not isinstance(value, str):
        graph.print(value, DEFAULT_LABEL if label is None else label)
    else:
        graph.print_text(value, label)
