# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""The notebooks that are saved and loaded: their cells at a chosen size, and what must be true of them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Checks = dict[str, str]


@dataclass(frozen=True)
class Workload:
    """`cells` makes the texts for a size (1.0 is the full one). `checks` are expressions that are true before and after."""

    name: str
    title: str
    cells: Callable[[float], list[str]]
    values: Checks
    references: Checks = field(default_factory=dict)
    #: Cells that change about one per cent of the bytes: the second pause.
    change: tuple[str, ...] = ()
    #: Names that cannot be saved, which the tool must say.
    lost: tuple[str, ...] = ()


def _count(full: int, size: float) -> int:
    return max(int(full * size), 1000)


def _arrays(size: float) -> list[str]:
    count = _count(250_000_000, size)
    return [
        "import numpy as np",
        f"big = np.random.default_rng(0).standard_normal({count})",
        "alias = big",
        "view = big[100:200]",
        "mark = [float(big[0]), float(big[-1]), float(big[::4099].sum())]",
    ]


def _frame(size: float) -> list[str]:
    count = _count(5_000_000, size)
    return [
        "import numpy as np, pandas as pd",
        f"N = {count}; _r = np.random.default_rng(1)",
        "df = pd.DataFrame({'i': _r.integers(0, 1<<40, N), 'f': _r.standard_normal(N), 'k': _r.integers(0, 9, N).astype('int8')})",
        "df['t'] = pd.Timestamp('2024-01-01') + pd.to_timedelta(_r.integers(0, 10**7, N), unit='s')",
        "df['c'] = pd.Categorical.from_codes(_r.integers(0, 50, N), [f'cat{i}' for i in range(50)])",
        "df['b'] = _r.random(N) < .5",
        "df['s'] = pd.Series(np.array([f'city-{i}' for i in range(1000)], dtype=object)[_r.integers(0, 1000, N)], dtype=object)",
        "df['u'] = pd.Series([f'user-{i:07d}' for i in range(N)], dtype='str')",
        "same = df",
        "by_name = {'df': df}",
        "mark = [int(df['i'].sum()), str(df.dtypes.to_dict()), int(pd.util.hash_pandas_object(df.iloc[::97]).sum())]",
    ]


def _records(size: float) -> list[str]:
    return [
        "tags = [{'tag': i, 'w': [i, i + 1]} for i in range(1000)]",
        "records = [{'id': i, 'tags': [tags[i % 1000], tags[(i * 7) % 1000]], 'meta': {'a': i, 'b': str(i), 'c': (i, i / 2)}}"
        f" for i in range({_count(200_000, size)})]",
        "by_id = {r['id']: r for r in records}",
        "class Node:\n    def __init__(self, k): self.k = k; self.next = None; self.up = None",
        "nodes = [Node(i) for i in range(60)]\nfor i, n in enumerate(nodes): n.next = nodes[(i + 1) % 60]; n.up = nodes",
        "head = nodes[0]",
    ]


def _mixed(size: float) -> list[str]:
    return [
        "import numpy as np, pandas as pd, sqlite3, socket, collections",
        "\n".join(f"a{i:02d} = np.arange({i}, {_count(500_000, size)} + {i}, dtype='f8')" for i in range(20)),
        "shared = {'cfg': [1, 2, 3]}",
        "v1 = {'s': shared}; v2 = [shared, shared]; v3 = (shared, 'x')",
        "def helper(z): return z + len(shared['cfg'])",
        "class Box:\n    def __init__(self, item): self.item = item",
        "box = Box(shared); box2 = Box(box)",
        "dd = collections.defaultdict(list, {'k': [1]}); words = ['w%d' % i for i in range(1000)]",
        "frame = pd.DataFrame({'a': range(1000), 'b': list('xyzw') * 250}); col = frame['a']",
        "text = 'hello' * 100; num = 42; flt = 3.5; flag = True; nothing = None",
        "gen = (k * k for k in range(10)); next(gen); next(gen)",
        "frame_now = __import__('sys')._getframe()",
        "holder = {'sock': socket.socket(), 'shared': shared}",
    ]


def _linked(size: float) -> list[str]:
    count = _count(100_000, size)
    return [
        f"deep = []\nfor _ in range({count}): deep = [deep]",
        f"chain = {{}}\nfor _ in range({count}): chain = {{'next': chain}}",
        "class Link:\n    def __init__(self, value, next=None): self.value = value; self.next = next",
        f"head = None\nfor number in range({count}): head = Link(number, head)",
        "def depth(item, step):\n    n = 0\n    while item:\n        item = step(item); n += 1\n    return n",
        f"mark = {count}",
    ]


WORKLOADS: dict[str, Workload] = {
    "W1": Workload(
        "W1",
        "2 GB of numbers that do not compress, a second name, a view",
        _arrays,
        values={
            "big": "[float(big[0]), float(big[-1]), float(big[::4099].sum())] == mark",
            "view": "view.tobytes() == big[100:200].tobytes()",
            "writable": "bool(big.flags.writeable)",
            "np": "np.__name__ == 'numpy'",
        },
        references={
            "alias": "alias is big",
            "view writes base": "(view.__setitem__(5, 123.25), float(big[105]))[1] == 123.25",
        },
        change=("big[: len(big) // 100] += 1.0; mark = [float(big[0]), float(big[-1]), float(big[::4099].sum())]",),
    ),
    "W2": Workload(
        "W2",
        "data frame of 5 million rows, mixed columns, strings",
        _frame,
        values={
            "df": "[int(df['i'].sum()), str(df.dtypes.to_dict()), int(pd.util.hash_pandas_object(df.iloc[::97]).sum())] == mark",
            "N": "N == len(df)",
            "pd": "pd.__name__ == 'pandas'",
        },
        references={"same": "same is df", "dict": "by_name['df'] is df"},
    ),
    "W3": Workload(
        "W3",
        "200 000 records of nested dicts with shared parts",
        _records,
        values={
            "tags": "len(tags) == 1000 and tags[7] == {'tag': 7, 'w': [7, 8]}",
            "records": "all(r['id'] == i and r['meta']['c'] == (i, i / 2) for i, r in enumerate(records))",
            "by_id": "len(by_id) == len(records)",
            "nodes": "sum(n.k for n in nodes) == 1770",
            "isinstance": "isinstance(head, Node)",
        },
        references={
            "tag": "records[5]['tags'][0] is tags[5]",
            "by_id": "by_id[77] is records[77]",
            "cycle": "nodes[59].next is nodes[0] and nodes[3].up is nodes",
            "head": "head is nodes[0]",
        },
    ),
    "W5": Workload(
        "W5",
        "40 variables, 3 of which cannot be saved",
        _mixed,
        values={
            **{
                f"a{i:02d}": f"float(a{i:02d}[0]) == {i} and float(a{i:02d}[-1]) == len(a{i:02d}) + {i} - 1"
                for i in range(20)
            },
            "shared": "shared == {'cfg': [1, 2, 3]}",
            "v1": "v1 == {'s': shared}",
            "v2": "v2 == [shared, shared]",
            "v3": "v3 == (shared, 'x')",
            "helper": "helper(1) == 4",
            "Box": "isinstance(box, Box)",
            "box2": "box2.item.item == shared",
            "dd": "dd['k'] + dd['zz'] == [1]",
            "words": "words[999] == 'w999'",
            "frame": "int(frame['a'].sum()) == 499500",
            "col": "int(col.sum()) == 499500",
            "text": "text == 'hello' * 100",
            "num": "num == 42",
            "flt": "flt == 3.5",
            "flag": "flag is True",
            "nothing": "nothing is None",
            "np": "np.__name__ == 'numpy'",
        },
        references={
            "v1": "v1['s'] is shared",
            "v2": "v2[1] is shared and v3[0] is shared",
            "box": "box2.item is box and box.item is shared",
        },
        lost=("gen", "frame_now", "holder"),
    ),
    "L": Workload(
        "L",
        "chains of 100 000 nodes: lists, dicts, objects",
        _linked,
        values={
            "lists": "depth(deep, lambda item: item[0]) == mark",
            "dicts": "depth(chain, lambda item: item['next']) == mark",
            "objects": "depth(head, lambda item: item.next) == mark",
        },
    ),
}


def check(workload: Workload, namespace: dict[str, Any]) -> dict[str, list[str]]:
    """Names of the checks that are not true; what raises is not true either."""
    wrong: dict[str, list[str]] = {}
    for kind, checks in (("values", workload.values), ("references", workload.references)):
        wrong[kind] = []
        for name, text in checks.items():
            try:
                fine = eval(text, namespace) is True
            except Exception:
                fine = False
            if not fine:
                wrong[kind].append(name)
    return wrong
