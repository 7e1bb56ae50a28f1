"""Errors of halfulp and of the file system, shown as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors that halfulp raises end the command with code 1, mistakes in options with code 2; no traceback."""
    from halfulp.compiler.errors import HalfulpError
    from halfulp.compiler.opt import CommandLineError

    try:
        yield
    except CommandLineError as error:
        raise click.UsageError(str(error)) from None
    except HalfulpError as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def writing(output: str) -> Iterator[None]:
    """A file that cannot be written ends the command with code 1."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write {output}: {error.strerror or error}") from None
