# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""One row of the fidelity table: an object that notebooks hold, and what must have become of it after a resume.

Many cases share a kernel, so each one gets names of its own: `Case.own` renames what the case's code binds.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Literal

Fate = Literal["equal", "rebuilt", "lost"]


@dataclass(frozen=True)
class Case:
    """`setup` is a cell that binds ``x``; `check` is code whose last line is an expression, true after the resume.

    Args:
        fate: ``equal``, ``rebuilt`` (made again, and said to be), ``lost`` (named before the pause).
        loses: paths that are lost; the whole of ``x`` where it is not given. What is left of ``x`` must pass the check.
        needs: the import name of the library that the case is about; empty for the standard library.
    """

    name: str
    setup: str
    check: str = "True"
    fate: Fate = "equal"
    loses: tuple[str, ...] = ("x",)
    needs: str = ""

    def own(self, suffix: str) -> Case:
        """The same case with `suffix` behind every name that its setup binds, ``x`` among them."""
        bound = _bound(ast.parse(self.setup)) | {"x"}
        losses = tuple(path.replace("x", "x" + suffix, 1) for path in self.loses)
        return replace(
            self, setup=_renamed(self.setup, bound, suffix), check=_renamed(self.check, bound, suffix), loses=losses
        )


class _Bound(ast.NodeVisitor):
    """Collects the names that code binds at its top level; imported modules keep theirs."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.add(node.name)
        self.generic_visit(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.names.add(node.name)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _definition

    def _inner(self, node: ast.AST) -> None:
        return None

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _inner


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: set[str], suffix: str) -> None:
        self._names = names
        self._suffix = suffix

    def _new(self, name: str) -> str:
        return name + self._suffix if name in self._names else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._new(node.id), node.ctx)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self._new(node.name) if node.name else None
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self._new(name) for name in node.names]
        return node

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        # Only at the top level: methods and inner functions keep their names.
        if node.col_offset == 0:
            node.name = self._new(node.name)
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _definition


def _bound(tree: ast.AST) -> set[str]:
    finder = _Bound()
    finder.visit(tree)
    return finder.names


def _renamed(code: str, names: set[str], suffix: str) -> str:
    tree = _Renamer(names, suffix).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree))
