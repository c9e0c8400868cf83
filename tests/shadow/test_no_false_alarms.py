# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What comes back right is never reported, whatever it looks like from outside."""

from __future__ import annotations

from pathlib import Path

from tests.server.conftest import Driver

from .conftest import lost

PLAIN = """
import abc, array, collections, copy, dataclasses, datetime, decimal, enum, fractions, functools, ipaddress, itertools
import json
import operator, pathlib, random, re, string, threading, types, typing, uuid, weakref, zoneinfo, io, sys, logging, queue
nan, minus_zero, inf, big, odd = float("nan"), -0.0, float("-inf"), 10**400, complex(float("nan"), -0.0)
text, surrogate, raw, changing = "x" * 100000, "\\ud800", b"\\x00\\xff" * 1000, bytearray(b"abc")
numbers, pairs, nothing, dots = list(range(5000)), {(1, 2): [3], None: ..., "k": {"k": {}}}, None, Ellipsis
some, frozen = {1, "a", (2, 3), frozenset({4})}, frozenset(range(300))
strange_keys = {nan: 1, -0.0: 2, True: 3, b"b": 4}
loop = []; loop.append(loop); knot = {}; knot["me"] = knot; ring = ([],); ring[0].append(ring)
when = [datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(3, 4), datetime.date.today(),
    zoneinfo.ZoneInfo("UTC")]
exact = [decimal.Decimal("1.10"), decimal.Decimal("sNaN"), fractions.Fraction(1, 3),
    uuid.uuid4(), ipaddress.ip_network("10.0.0.0/8")]
places = [pathlib.Path("a/b"), pathlib.PurePosixPath("/x")]; hash(places[0]); str(places[0])
ordered = collections.OrderedDict(a=1, b=2, c=3); ordered.move_to_end("a")
counted, ended = collections.Counter("abca"), collections.deque([1, 2], 5)
defaulted, chained = collections.defaultdict(list, a=[1]), collections.ChainMap({1: 2}, {3: 4})
spaces, proxied = types.SimpleNamespace(a=1), types.MappingProxyType({"a": 1})
iterators = [iter([1, 2]), iter({}), iter(()), itertools.count(3),
    zip([1], [2]), enumerate("ab"), reversed([1, 2]), map(str, [1])]
next(iterators[0])
partial, getter = functools.partial(int, base=2), operator.itemgetter(1)
pattern, matcher = re.compile("a+", re.I), string.Template("$a")
generic, union = typing.List[int], typing.Optional[typing.Dict[str, int]]
numbers_in_array = array.array("d", [1.5, float("nan")])
rng = random.Random(3); rng.random()
errors = [ValueError("a", 1), KeyError("k"), OSError(2, "gone", "f"),
    UnicodeDecodeError("utf-8", b"a", 0, 1, "why"), StopIteration(4)]
try: json.loads("{")
except ValueError as error: caught = error
out, shell, log = sys.stdout, get_ipython(), logging.getLogger("mine")
buffer, letters = io.BytesIO(b"abc"), io.StringIO("abc"); letters.read(1)
lock, event, line = threading.Lock(), threading.Event(), queue.Queue(); line.put(1)
"""
OWN = """
class Colour(enum.Enum):
    RED = 1; BLUE = "b"
    def name_of(self): return self.name
class Flag(enum.IntFlag):
    A = 1; B = 2
colours = {Colour.RED: [Colour.BLUE], "f": Flag.A | Flag.B}
@dataclasses.dataclass
class Point:
    x: int
    tags: list = dataclasses.field(default_factory=list)
@dataclasses.dataclass(frozen=True)
class Fixed:
    x: float = float("nan")
Pair = collections.namedtuple("Pair", "a b", defaults=[3])
class Typed(typing.NamedTuple):
    a: int
    b: str = "s"
rows = [Point(1, ["a"]), Fixed(), Pair(1), Typed(2), Pair(float("nan"), {})]
class Hostile:
    "Everything that must not be called raises."
    def __init__(self): self.value = 1
    def _no(self, *args): raise AssertionError("was called")
    __eq__ = __ne__ = __len__ = __bool__ = __iter__ = __repr__ = __str__ = __contains__ = __getitem__ = _no
    __hash__ = None
class Equal:
    def __eq__(self, other): return False
class Slots:
    __slots__ = ("a", "b", "__weakref__")
class Child(Slots):
    __slots__ = ("c",)
hostile, equal, slots, child = [Hostile()], Equal(), Slots(), Child()
slots.a = [1]; child.a, child.c = 1, float("nan")
class Cached:
    def __init__(self): self.n, self._cache, self._hash = 3, {1: 2}, hash("s")
    @functools.cached_property
    def squared(self): return self.n ** 2
    def __reduce__(self): return (Cached, ())
cached = Cached(); cached.squared; cached._cache[5] = 6
class Careful:
    def __init__(self): self.n, self.lock, self._open = 1, threading.Lock(), {}
    def __getstate__(self): return {"n": self.n}
    def __setstate__(self, state): self.n, self.lock, self._open = state["n"], threading.Lock(), {}
class Tuples:
    def __init__(self, a, b): self.a, self.b = a, b
    def __getstate__(self): return (self.a, self.b)
    def __setstate__(self, state): self.a, self.b = state
class Versioned:
    def __init__(self): self.data = {"a": [1]}
    def __getstate__(self): return {"version": 2, "payload": dict(self.__dict__)}
    def __setstate__(self, state): self.__dict__.update(state["payload"])
class Delegates:
    def __init__(self, inner): self._inner = inner
    def __getattr__(self, name):
        if name.startswith("_"): raise AttributeError(name)
        return getattr(self._inner, name)
class Error(Exception):
    def __init__(self, message, code=0): super().__init__(message, code); self.code = code
class Single:
    _one = None
    def __new__(cls):
        if cls._one is None: cls._one = super().__new__(cls)
        return cls._one
class Tree(dict):
    def __missing__(self, key): value = self[key] = type(self)(); return value
class Text(str): pass
class Number(float):
    def __new__(cls, value, unit="m"): made = super().__new__(cls, value); made.unit = unit; return made
    def __getnewargs__(self): return (float(self), self.unit)
class Items(list):
    def __init__(self, *args): super().__init__(*args); self.name = "items"
class Bag(collections.OrderedDict): pass
class Group(set): pass
note = Text("a"); note.author = "me"
bag = Bag(a=1, b=2); bag.move_to_end("a")
tree = Tree(); tree["a"]["b"] = 1
mixed = [Careful(), Tuples(1, [2]), Versioned(), Delegates([1]), Error("a", 3),
    Single(), tree, Text("b"), Number(2.5), Items([1, 2]), bag, Group("abc")]
class Meta(type):
    def __new__(mcls, name, bases, ns): ns["made"] = name; return super().__new__(mcls, name, bases, ns)
class Made(metaclass=Meta):
    instance = None
Made.instance = Made()
T = typing.TypeVar("T")
class Box(typing.Generic[T]):
    def __init__(self, item): self.item = item
box = Box[int](3)
class Base(abc.ABC):
    @abc.abstractmethod
    def run(self): ...
class Runs(Base):
    def run(self): return super()
runs = Runs()
def make():
    count = [0]
    def step(): count[0] += 1; return count
    return step
step = make(); step()
@functools.lru_cache(maxsize=None)
def slow(n): return n if n < 2 else slow(n - 1) + slow(n - 2)
slow(10); bound, doubled = [].append, lambda x: x * 2
class Node: pass
nodes = [Node() for _ in range(50)]
for left, right in zip(nodes, nodes[1:]): left.next, right.previous, right.parent = right, left, weakref.ref(left)
class Writes:
    def __init__(self): self.stream = sys.stdout
    def __setstate__(self, state): self.__dict__.update(state)
writes = Writes()
"""
LIBRARIES = """
import numpy as np, pandas as pd
frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None], "t": pd.to_datetime(["2020-01-01", None])},
    index=pd.Index([1, 2], name="i"))
frame.attrs["unit"] = "m"; column = frame["a"]; kinds = pd.Categorical(["a", "b", "a"]); grouped = frame.groupby("b")
times = pd.date_range("2020", periods=3, tz="UTC")
missing = [pd.NA, pd.NaT, pd.Timestamp.now(), pd.Interval(0, 1), pd.Period("2020")]
array = np.arange(12.0).reshape(3, 4); view, fortran, turned = array[::2, ::-1], np.asfortranarray(array), array.T
records = np.array([(1, "a")], dtype=[("n", "i4"), ("s", "U3")]); objects = np.array([{"a": 1}, None], dtype=object)
masked, matrix, recs = np.ma.masked_invalid([1, np.nan]), np.matrix([[1, 2]]), records.view(np.recarray)
scalars = [np.float64("nan"), np.int8(3), np.datetime64("2020"), np.bool_(True), np.dtype("f4")]
generator = np.random.default_rng(3); generator.random()
poly = np.polynomial.Polynomial([1, 2]); function = np.vectorize(abs)
empty, zero_d = np.empty((0, 3)), np.array(3)
class Frame(pd.DataFrame):
    _metadata = ["unit"]
    @property
    def _constructor(self): return Frame
own = Frame({"a": [1]}); own.unit = "s"
class Tagged(np.ndarray):
    def __array_finalize__(self, obj): self.unit = getattr(obj, "unit", None)
    def __reduce__(self):
        make, arguments, state = super().__reduce__(); return make, arguments, (state, self.unit)
    def __setstate__(self, state): super().__setstate__(state[0]); self.unit = state[1]
tagged = np.arange(3.0).view(Tagged); tagged.unit = "m"
"""


async def test_a_broad_namespace_is_paused_without_a_question(driver: Driver) -> None:
    kernel = await driver.notebook()
    for cell in (PLAIN, OWN, LIBRARIES):
        await driver.run(kernel, cell)
    assert await lost(driver, kernel) == {}
    report = (await driver.row(kernel))["last_pause"]["shadow"]
    assert report["state"] == "checked"
    assert report["unchecked"] == []
    assert report["objects"] >= 20
    resumed = await driver.resume(kernel=kernel)
    assert resumed["outcome"] == "restored", (await driver.row(kernel))["last_resume"]


LIBRARY = """
class Drawn:
    def __init__(self): self.drawn, self._stale, self.callback = True, False, len
    def __getstate__(self): return {**self.__dict__, "_stale": None, "callback": None}
    def __setstate__(self, state): self.__dict__ = state; self._stale = True
"""


async def test_what_a_library_leaves_out_is_its_own_business_wherever_it_is_installed(
    driver: Driver, tmp_path: Path
) -> None:
    """`pip install --target`: as matplotlib does with what it only keeps for drawing."""
    for name, installed in (("drawing", True), ("mine", False)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(LIBRARY)
        if installed:
            (folder / f"{name}-1.0.dist-info").mkdir()
    kernel = await driver.notebook()
    folders = [str(tmp_path / "drawing"), str(tmp_path / "mine")]
    await driver.run(kernel, f"import sys\nsys.path += {folders}\nimport drawing\nfigure = drawing.Drawn()")
    assert await lost(driver, kernel) == {}
    assert (await driver.resume(kernel=kernel))["outcome"] == "restored"
    await driver.run(kernel, "import mine\nfigure = mine.Drawn()")
    assert set(await lost(driver, kernel)) == {"figure._stale", "figure.callback"}  # nobody else looks after this one


async def test_what_the_scan_names_before_is_not_named_twice(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(
        kernel, "gen = (i for i in 'ab')\nclass Holder: pass\nholder = Holder(); holder.gen = (i for i in 'cd')"
    )
    paused = await driver.pause(kernel, on_loss="accept")
    manifest = await driver.get("checkpoints", paused["checkpoint"])
    assert sorted(loss["path"] for loss in manifest["losses"]) == ["gen", "holder.gen"]


OUTSIDE = """
import sqlite3, mmap, zipfile, gzip, numpy as np, logging, concurrent.futures, shelve, tempfile, csv
base = sqlite3.connect("things.db"); base.execute("create table t (a)"); base.commit()
memory = sqlite3.connect(":memory:"); memory.execute("create table t (a)"); memory.commit()
reading, appending, both = open("a.txt", "w+"), open("b.txt", "a"), open("c.bin", "wb+")
mapped = np.memmap("m.bin", dtype="f8", mode="w+", shape=(10,)); mapped[:] = 3
log = logging.getLogger("to file"); log.addHandler(logging.FileHandler("log.txt"))
threads = concurrent.futures.ThreadPoolExecutor(2)
class Store:
    def __init__(self, **held): self.__dict__.update(held)
    def __setstate__(self, state): self.__dict__.update(state)
store = Store(base=base, file=reading, pool=threads, mapped=mapped)
"""


async def test_files_and_databases_are_neither_opened_nor_called_lost(driver: Driver) -> None:
    kernel = await driver.notebook()
    await driver.run(kernel, OUTSIDE)
    assert await lost(driver, kernel) == {}
    report = (await driver.row(kernel))["last_pause"]["shadow"]
    assert report["state"] == "checked"
    assert report["unchecked"] == []
