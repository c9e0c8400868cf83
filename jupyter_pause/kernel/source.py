# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Finding a function's source when it is saved, and its code again when that source is compiled.

Byte code of one Python minor crashes another, source does not. A code object is found again by its name, its first line
and, where several share both (two lambdas on one line), by the position of its syntax node.
"""

from __future__ import annotations
import __future__ as features

import ast
import linecache
import os
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional, Tuple

_FUTURE_FLAGS = 0
for _name in features.all_feature_names:
    _FUTURE_FLAGS |= getattr(features, _name).compiler_flag
_MARK = 10_000_000
_NODES: Dict[str, Tuple[type, ...]] = {
    "<lambda>": (ast.Lambda,),
    "<genexpr>": (ast.GeneratorExp,),
    "<listcomp>": (ast.ListComp,),
    "<setcomp>": (ast.SetComp,),
    "<dictcomp>": (ast.DictComp,),
}

Key = Tuple[Any, ...]


def of_code(code: CodeType) -> Optional[str]:
    """The text of the file or cell that a code object was compiled from, if it can still be had."""
    name = code.co_filename
    entry = linecache.cache.get(name)
    if entry is not None and len(entry) > 2:
        return "".join(entry[2])
    if name.startswith("<") or not os.path.isfile(name):
        return None
    try:
        return "".join(linecache.getlines(name)) or None
    except Exception:
        return None


def cell_bodies(inputs: List[Any]) -> Iterator[str]:
    """Bodies of cell magics (``%%time``) in the history, newest first: their code has no file of its own."""
    for text in reversed(inputs):
        if not isinstance(text, str) or "run_cell_magic" not in text:
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", "") == "run_cell_magic"
                and len(node.args) == 3
            ):
                body = node.args[2]
                if isinstance(body, ast.Constant) and isinstance(body.value, str):
                    yield body.value


def compiled(text: str, filename: str, flags: int) -> Tuple[ast.Module, CodeType]:
    """Parse and compile as IPython does (top-level await, future imports). Raises SyntaxError, ValueError."""
    flags = (flags & _FUTURE_FLAGS) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(text, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    return tree, compile(tree, filename, "exec", flags, dont_inherit=True)


def nested(code: CodeType) -> Iterator[CodeType]:
    """All code objects inside one, in order."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from nested(constant)


def key_of(code: CodeType) -> Key:
    """Equal for two code objects of one interpreter that do the same, wherever they stand."""
    constants = tuple(key_of(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    return (
        code.co_name,
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
    )


def arguments_of(code: CodeType) -> List[str]:
    """Names of the parameters, ``*args`` and ``**kwargs`` included."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return list(code.co_varnames[:count])


def _first_line(node: Any) -> int:
    decorators = getattr(node, "decorator_list", None)
    return int(decorators[0].lineno if decorators else node.lineno)


def _nodes(tree: ast.Module, name: str, line: int) -> List[Any]:
    kinds = _NODES.get(name, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    found = [n for n in ast.walk(tree) if isinstance(n, kinds) and _first_line(n) == line]
    return [n for n in found if name in _NODES or n.name == name]  # type: ignore[attr-defined]


def _marked(tree: ast.Module, node: Any, filename: str, flags: int) -> Optional[Key]:
    """The key of the code that `node` compiles to: it is told apart by an impossible line number."""
    decorators = getattr(node, "decorator_list", None)
    carrier = decorators[0] if decorators else node
    before = (carrier.lineno, carrier.end_lineno)
    carrier.lineno = carrier.end_lineno = _MARK
    try:
        flags = (flags & _FUTURE_FLAGS) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for code in nested(compile(tree, filename, "exec", flags, dont_inherit=True)):
            if code.co_firstlineno == _MARK:
                return key_of(code)
    finally:
        carrier.lineno, carrier.end_lineno = before
    return None


class Source:
    """One compiled text, asked for many code objects."""

    def __init__(self, text: str, filename: str, flags: int) -> None:
        self._filename = filename
        self._flags = flags
        self._tree, whole = compiled(text, filename, flags)
        self._by_place: Dict[Tuple[str, int], List[CodeType]] = {}
        for code in nested(whole):
            self._by_place.setdefault((code.co_name, code.co_firstlineno), []).append(code)

    def position(self, code: CodeType) -> Optional[List[int]]:
        """Where `code` (of this very interpreter) stands: [line, column]; None when the text is not its source."""
        candidates = self._by_place.get((code.co_name, code.co_firstlineno), [])
        wanted = key_of(code)
        if not any(key_of(candidate) == wanted for candidate in candidates):
            return None
        nodes = _nodes(self._tree, code.co_name, code.co_firstlineno)
        if len(nodes) == 1:
            return [nodes[0].lineno, nodes[0].col_offset]
        for node in nodes:
            if _marked(self._tree, node, self._filename, self._flags) == wanted:
                return [node.lineno, node.col_offset]
        return None

    def find(self, name: str, line: int, position: List[int]) -> Optional[CodeType]:
        """The code at a position that another interpreter recorded, or None."""
        candidates = self._by_place.get((name, line), [])
        nodes = _nodes(self._tree, name, line)
        if len(nodes) == 1 and candidates:
            return candidates[0]
        for node in nodes:
            if [node.lineno, node.col_offset] == position:
                wanted = _marked(self._tree, node, self._filename, self._flags)
                for candidate in candidates:
                    if key_of(candidate) == wanted:
                        return candidate
        return None
