"""Nested arguments and results: tuples, lists and dicts of leaves, taken apart and put together again.

Dicts count in the order of their sorted keys, so two that are equal have their leaves in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

Tree: TypeAlias = Any
IsLeaf: TypeAlias = Callable[[object], bool]


def _never(_: object) -> bool:
    return False


def _children(tree: Tree, is_leaf: IsLeaf) -> list[tuple[str, Tree]] | None:
    """The parts of a node with the subscript that leads to each; None for a leaf."""
    if is_leaf(tree):
        return None
    if isinstance(tree, dict):
        return [(f"[{key!r}]", tree[key]) for key in sorted(tree)]
    if isinstance(tree, list | tuple):
        return [(f"[{index}]", item) for index, item in enumerate(tree)]
    return [] if tree is None else None


def leaves_with_paths(tree: Tree, is_leaf: IsLeaf = _never, path: str = "") -> Iterator[tuple[str, Any]]:
    """All leaves, each with the subscripts that lead to it: ``("[0]['w']", leaf)``. None is a tree without leaves."""
    children = _children(tree, is_leaf)
    if children is None:
        yield path, tree
        return
    for step, child in children:
        yield from leaves_with_paths(child, is_leaf, path + step)


def leaves(tree: Tree, is_leaf: IsLeaf = _never) -> list[Any]:
    """All leaves in order."""
    return [leaf for _, leaf in leaves_with_paths(tree, is_leaf)]


def rebuild(tree: Tree, replaced: Sequence[Any], is_leaf: IsLeaf = _never) -> Tree:
    """A tree of the same form with other leaves."""
    rest = iter(replaced)

    def build(node: Tree) -> Tree:
        children = _children(node, is_leaf)
        if children is None:
            return next(rest)
        built = [build(child) for _, child in children]
        if isinstance(node, dict):
            return dict(zip(sorted(node), built, strict=True))
        if hasattr(node, "_fields"):  # a named tuple
            return type(node)(*built)
        return None if node is None else type(node)(built)

    result = build(tree)
    assert next(rest, None) is None, "more leaves than the tree has"
    return result


def first_difference(tree: Tree, other: Tree, is_leaf: IsLeaf, path: str = "") -> tuple[str, str, str] | None:
    """Where two trees differ in form: the path, and what stands there in each; None if they do not.

    A list and a tuple of as many parts count as the same form.
    """
    here, there = _children(tree, is_leaf), _children(other, is_leaf)
    if here is None and there is None:
        return None
    if here is None or there is None or [step for step, _ in here] != [step for step, _ in there]:
        return path, _describe(tree, here), _describe(other, there)
    for (step, child), (_, second) in zip(here, there, strict=True):
        found = first_difference(child, second, is_leaf, path + step)
        if found is not None:
            return found
    return None


def _describe(tree: Tree, children: list[tuple[str, Tree]] | None) -> str:
    if children is None:
        return f"one {type(tree).__name__}"
    if isinstance(tree, dict):
        return f"a dict with the keys {sorted(tree)}"
    return "None" if tree is None else f"a {type(tree).__name__} of {len(children)}"


def copied(tree: Tree, is_leaf: IsLeaf = _never) -> Tree:
    """The same leaves in containers of its own, so that changes of a list come too late to matter."""
    return rebuild(tree, leaves(tree, is_leaf), is_leaf)
