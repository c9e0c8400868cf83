# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (cells of notebooks are text here)
"""NumPy."""

from functools import partial

from tests.fidelity.case import Case

case = partial(Case, needs="numpy")
NP = "import numpy as np\n"

# fmt: off
CASES = [
    case("numpy array", NP + "x = np.arange(6.0).reshape(2, 3)", "x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.flags.writeable"),
    case("numpy array of 4 MB", NP + "x = np.arange(500_000.0)", "x.sum() == 500_000 * 499_999 / 2\nx[0] = 5\nx[0] == 5"),
    case("numpy array in Fortran order", NP + "x = np.asfortranarray(np.arange(6).reshape(2, 3))", "x.flags.f_contiguous and x[1, 2] == 5"),
    case("numpy view of a base", NP + "base = np.arange(10)\nx = base[2:5]", "x[0] = 99\nbase[2] == 99"),
    case("numpy view, reversed and strided", NP + "base = np.arange(10)\nx = base[::-2]", "x[0] = 99\nbase[9] == 99 and x.strides[0] < 0"),
    case("numpy views that overlap", NP + "base = np.arange(10)\na, x = base[1:6], base[4:9]", "x[0] = 99\na[3] == 99 and base[4] == 99"),
    case("numpy view whose base has no name", NP + "x = [np.arange(10)[2:5]]\nx.append(x[0].base)", "x[0][0] = 99\nx[1][2] == 99"),
    case("numpy transposed view", NP + "base = np.zeros((2, 3))\nx = base.T", "x[2, 1] = 7\nbase[1, 2] == 7"),
    case("numpy column of a record array", NP + "base = np.zeros(3, [('a', 'i4'), ('b', 'f8')])\nx = base['b']", "x[1] = 2.5\nbase[1]['b'] == 2.5"),
    case("numpy read-only array, broadcast view", NP + "x = (np.arange(3), np.broadcast_to(np.arange(3), (2, 3)))\nx[0].flags.writeable = False", "not x[0].flags.writeable and x[1].shape == (2, 3) and x[1].strides[0] == 0"),
    case("numpy.frombuffer over a bytearray", NP + "under = bytearray(8)\nx = np.frombuffer(under, 'u1')", "x[0] = 7\nunder[0] == 7"),
    case("numpy.frombuffer over a large bytearray", NP + "under = bytearray(100_000)\nx = np.frombuffer(under, 'u1')", "x[50_000] = 7\nunder[50_000] == 7"),
    case("numpy.frombuffer over an array.array", NP + "import array\nunder = array.array('d', [1, 2])\nx = np.frombuffer(under)", "x[0] = 7\nunder[0] == 7"),
    case("numpy.frombuffer over bytes", NP + "under = b'abcd'\nx = np.frombuffer(under, 'u1')", "not x.flags.writeable and x.tobytes() == under"),
    case("numpy array over a memory mapping", NP + "import mmap\nunder = mmap.mmap(-1, 64)\nx = np.frombuffer(under, 'u1')", "x[0] = 7\nunder[0] == 7"),
    case("numpy array over a memoryview", NP + "under = bytearray(8)\nx = np.asarray(memoryview(under))", "x[0] = 7\nunder[0] == 7"),
    case("numpy memmap", NP + "x = np.memmap('mm.bin', dtype='f8', mode='w+', shape=(10,))\nx[3] = 5", "type(x) is np.memmap and x[3] == 5\nx[4] = 6\nx.flush()\nnp.fromfile('mm.bin')[4] == 6"),
    case("numpy structured and record arrays", NP + "x = (np.array([(1, 2.5)], dtype=[('a', 'i4'), ('b', 'f8')]), np.rec.array([(1, 2.5)], names='a,b'))", "x[0]['b'][0] == 2.5 and x[1].a[0] == 1 and type(x[1]) is np.recarray"),
    case("numpy masked array", NP + "x = np.ma.array([1, 2, 3], mask=[0, 1, 0], fill_value=9)", "x.sum() == 4 and x.fill_value == 9 and x.filled().tolist() == [1, 9, 3]"),
    case("numpy masked array over an array", NP + "base = np.arange(4.0)\nx = np.ma.MaskedArray(base, mask=[0, 1, 0, 0])", "x[0] = 50\nbase[0] == 50 and x.mask.tolist() == [False, True, False, False]"),
    case("numpy masked constant", NP + "x = np.ma.masked", "x is np.ma.masked"),
    case("numpy nan, as a variable and in an array of objects", NP + "x = np.nan\ncolumn = np.array([np.nan, 'a', np.inf], object)", "x is np.nan and column[0] is np.nan and column[2] == np.inf"),
    case("numpy array of objects", NP + "shared = [1]\nx = np.array([lambda: 1, shared, None], dtype=object)", "x[0]() == 1 and x[1] is shared"),
    case("numpy array that holds itself", NP + "x = np.empty(1, object)\nx[0] = x", "x[0] is x"),
    case("numpy dates, texts, big-endian", NP + "x = (np.array(['2026-01-01'], 'M8[D]'), np.array(['a', 'bc']), np.arange(3, dtype='>i4'))", "str(x[0][0]) == '2026-01-01' and x[1][1] == 'bc' and x[2].dtype.str == '>i4'"),
    case("numpy array of variable-length text", NP + "x = np.array(['a', 'longer than a few bytes'], dtype=np.dtypes.StringDType())", "x[1] == 'longer than a few bytes' and x.dtype == np.dtypes.StringDType()"),
    case("numpy zero-dimensional and empty arrays", NP + "x = (np.array(5), np.empty((0, 3)))", "x[0].shape == () and x[0] == 5 and x[1].shape == (0, 3)"),
    case("numpy scalars", NP + "x = (np.float32(1.5), np.int8(3), np.datetime64('2026-01-01'), np.bool_(True))", "type(x[0]) is np.float32 and x[1] == 3 and str(x[2]) == '2026-01-01' and x[3]"),
    case("numpy matrix", NP + "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    x = np.matrix([[1, 2]])", "type(x) is np.matrix and (x * x.T)[0, 0] == 5"),
    case("numpy array subclass with attributes", NP + "class Tagged(np.ndarray):\n    def __new__(cls, data, tag):\n        made = np.asarray(data).view(cls)\n        made.tag = tag\n        return made\n    def __array_finalize__(self, other):\n        self.tag = getattr(other, 'tag', None)\nx = Tagged([1, 2], 'hello')", "x.tag == 'hello' and type(x) is Tagged and x.tolist() == [1, 2] and x[:1].tag == 'hello'"),
    case("numpy array subclass over a base", NP + "class Sub(np.ndarray):\n    pass\nbase = np.arange(5)\nx = base.view(Sub)", "x[0] = 9\nbase[0] == 9 and type(x) is Sub"),
    case("numpy data type", NP + "x = np.dtype([('a', 'i4'), ('b', 'f8', (2,))])", "x['b'].shape == (2,) and x.itemsize == 20"),
    case("numpy Generator", NP + "x = np.random.default_rng(1)\nx.random()\ntwin = np.random.default_rng(1)\ntwin.random()", "x.random() == twin.random()"),
    case("numpy Generator and its bit generator", NP + "x = np.random.default_rng(1)\nbits = x.bit_generator", "x.bit_generator is bits"),
    case("numpy RandomState, SeedSequence", NP + "x = (np.random.RandomState(1), np.random.SeedSequence(5))\nwant = np.random.RandomState(1).rand()", "x[0].rand() == want and x[1].entropy == 5"),
    case("numpy ufunc", NP + "x = np.add", "x is np.add"),
    case("numpy ufunc of a Python function", NP + "x = np.frompyfunc(lambda a: a + 1, 1, 1)", "x([1, 2]).tolist() == [2, 3] and x.nin == 1"),
    case("numpy.vectorize", NP + "x = np.vectorize(lambda a: a + 1)", "x([1, 2]).tolist() == [2, 3]"),
    case("numpy polynomial", NP + "x = (np.poly1d([1, 2]), np.polynomial.Polynomial([1, 2]))", "x[0](1) == 3 and x[1](1) == 3"),
    case("numpy NpzFile", NP + "np.savez('npz.npz', a=[1, 2])\nx = np.load('npz.npz')", "x['a'].tolist() == [1, 2]", "rebuilt"),
    case("numpy iterators", NP + "x = np.nditer(np.arange(3))", fate="lost"),
    case("numpy flat iterator", NP + "x = np.arange(3).flat", fate="lost"),
    case("numpy ndindex, ndenumerate", NP + "x = (np.ndindex(2, 2), np.ndenumerate(np.arange(2)))\n[next(i) for i in x]", "list(x[0]) == [(0, 1), (1, 0), (1, 1)]", "lost", ("x[1].iter",)),
    case("numpy finfo, iinfo", NP + "x = (np.finfo('f4'), np.iinfo('i2'))", "x[0].bits == 32 and x[1].max == 32767"),
    case("dict of arrays that share a base", NP + "base = np.zeros(1_000_000)\nx = {i: base[i * 10:(i + 1) * 10] for i in range(100)}", "x[7][0] = 1\nbase[70] == 1"),
    case("memory of an array as memoryview", NP + "under = np.zeros(4)\nx = memoryview(under)", "x[1] = 3.0\nunder[1] == 3"),
]
