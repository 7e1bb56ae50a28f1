"""One page of HTML with everything inside it: readable offline, without scripts, in light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --card: #f6f7f9; --ink: #1c2024; --soft: #60646c; --line: #c3c7ce;
  --mark: #ffe0b2; --mark2: #fff4e0; --strong: #c25e00; --cause: #b3123f; --bar: #3b6fb5; --good: #1a7f4b;
  --bad: #b3123f; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171a; --card: #22262b; --ink: #e8eaed; --soft: #9aa0a8;
  --line: #4a5058; --mark: #6b3d00; --mark2: #3d2a10; --strong: #ffa94d; --cause: #ff6b8b; --bar: #7aa7e0;
  --good: #5fd19a; --bad: #ff6b8b; } }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: 0.3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
.soft { color: var(--soft); } .scroll { overflow-x: auto; }
pre { background: var(--card); padding: 0.7rem; white-space: pre-wrap; }
"""
"""Colours by what they mean, and what all pages share."""


def html_page(title: str, parts: Iterable[str], style: str = "") -> str:
    """A page with ``title`` as its heading, then the parts (HTML; empty ones are left out), and more style rules."""
    body = "\n".join(part for part in [f"<h1>{escape(title)}</h1>", *parts] if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{STYLE}{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts, which may scroll sideways."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in headings)
    lines = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
