# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Which cell made a thing: read from the source of the cells run so far, without running anything."""

from __future__ import annotations

import ast
from typing import Any, Iterable, Iterator


def cell_naming(word: str, history: list[Any]) -> int | None:
    """The number of the last cell in which `word` stands as a string or at the start of one, or None.

    ``os.environ["A"] = ...`` and ``%env A=...`` (which IPython turns into a call with the string ``A=...``) both do.
    """
    for number, tree in _newest_first(history, word):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if text == word or text.startswith((word + "=", word + " ")):
                    return number
    return None


def cells_binding(names: Iterable[str], history: list[Any]) -> dict[str, int]:
    """For each of `names` the number of the last cell that bound it as a variable; unknown ones are left out."""
    wanted = set(names)
    found = {}
    for number, tree in _newest_first(history, None, wanted):
        for name in bound_names(tree) & wanted:
            found[name] = number
            wanted.discard(name)
        if not wanted:
            break
    return found


def bound_names(tree: ast.AST) -> set[str]:
    """Names that a cell binds at its top level: assignments, loops, with, import, def, class, walrus."""
    collector = _Bound()
    collector.visit(tree)
    return collector.names


class _Bound(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: Any) -> None:
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_FunctionDef(self, node: Any) -> None:
        self.names.add(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815
    visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: Any) -> Any:
        return None

    def visit_ListComp(self, node: Any) -> None:
        """Its own variable is not ours; a walrus inside binds outside."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.names.add(inner.target.id)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815

    def visit_Import(self, node: Any) -> None:
        for alias in node.names:
            self.names.add(alias.asname or alias.name.split(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_ExceptHandler(self, node: Any) -> None:
        for statement in node.body:  # its name is unbound again at the end
            self.visit(statement)

    def visit_Global(self, node: Any) -> None:
        self.names.update(node.names)


def _newest_first(
    history: list[Any], word: str | None, any_of: set[str] | None = None
) -> Iterator[tuple[int, ast.AST]]:
    for number in range(len(history) - 1, 0, -1):
        source = history[number]
        if not isinstance(source, str) or (word is not None and word not in source):
            continue
        if any_of is not None and not any(name in source for name in any_of):
            continue
        try:
            yield number, ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
