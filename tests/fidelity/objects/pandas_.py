# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (cells of notebooks are text here)
"""pandas."""

from functools import partial

from tests.fidelity.case import Case

case = partial(Case, needs="pandas")
PD = "import pandas as pd, numpy as np\n"

# fmt: off
CASES = [
    case("pandas DataFrame", PD + "x = pd.DataFrame({'a': [1, 2], 'b': ['u', None], 'c': [1.5, np.nan]})\nsame = x.copy()", "x.equals(same) and (x.dtypes == same.dtypes).all()\nx.loc[0, 'a'] = 9\nx['a'][0] == 9"),
    case("pandas DataFrame bound to two names", PD + "x = pd.DataFrame({'a': [1]})\nalias = x", "alias['b'] = 2\nx is alias and x['b'][0] == 2"),
    case("pandas Series", PD + "x = pd.Series([1, 2], index=['a', 'b'], name='n')", "x['b'] == 2 and x.name == 'n'"),
    case("pandas wide DataFrame", PD + "x = pd.DataFrame(np.arange(1_000_000).reshape(1000, 1000))", "x.loc[999, 999] == 999_999\nx.loc[0, 0] = -1\nx.loc[0, 0] == -1"),
    case("pandas MultiIndex", PD + "x = pd.DataFrame({'v': [1, 2]}, index=pd.MultiIndex.from_tuples([('a', 1), ('b', 2)], names=['k', 'n']))", "x.loc[('b', 2), 'v'] == 2 and list(x.index.names) == ['k', 'n']"),
    case("pandas Categorical", PD + "x = pd.Series(['lo', 'hi'], dtype=pd.CategoricalDtype(['lo', 'hi'], ordered=True))", "x.max() == 'hi' and x.cat.ordered"),
    case("pandas dates with a zone", PD + "x = pd.date_range('2026-01-01', periods=3, freq='D', tz='Europe/Berlin')", "x.freqstr == 'D' and str(x.tz) == 'Europe/Berlin' and x[1].day == 2"),
    case("pandas Period, Interval, Timedelta", PD + "x = (pd.period_range('2026-01', periods=2, freq='M'), pd.interval_range(0, 2), pd.Timedelta('1D'))", "x[0][1].month == 2 and 0.5 in x[1][0] and x[2].days == 1"),
    case("pandas nullable, text and sparse columns", PD + "x = pd.DataFrame({'i': pd.array([1, None], 'Int64'), 's': pd.array(['a', None], 'string'), 'z': pd.arrays.SparseArray([0, 1])})", "x['i'].sum() == 1 and x['s'][0] == 'a' and x['z'].sparse.density == 0.5 and x['i'][1] is pd.NA"),
    case("pandas NA, NaT", PD + "x = (pd.NA, pd.NaT)", "x[0] is pd.NA and x[1] is pd.NaT"),
    case("pandas Timestamp, offset", PD + "x = (pd.Timestamp('2026-01-01', tz='UTC'), pd.offsets.BMonthEnd(2))", "x[0].year == 2026 and x[1].n == 2"),
    case("pandas DataFrame with attrs and flags", PD + "x = pd.DataFrame({'a': [1]})\nx.attrs['source'] = 'here'", "x.attrs == {'source': 'here'}"),
    case("pandas DataFrame subclass", PD + "class Frame(pd.DataFrame):\n    _metadata = ['unit']\n    @property\n    def _constructor(self):\n        return Frame\nx = Frame({'a': [1]})\nx.unit = 'm'", "type(x) is Frame and x.unit == 'm' and type(x[['a']]) is Frame"),
    case("pandas GroupBy", PD + "x = pd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]}).groupby('a')", "x['b'].sum().tolist() == [3, 3]"),
    case("pandas Rolling, Resampler", PD + "x = (pd.Series([1, 2, 3]).rolling(2), pd.Series([1, 2], index=pd.date_range('2026', periods=2)).resample('D'))", "x[0].sum().tolist()[1:] == [3, 5] and x[1].sum().tolist() == [1, 2]"),
    case("pandas index accessor, loc", PD + "frame = pd.DataFrame({'a': [1, 2]})\nx = frame.loc", "x[1, 'a'] == 2"),
    case("pandas reader of chunks", PD + "pd.DataFrame({'a': range(4)}).to_csv('chunks.csv', index=False)\nx = pd.read_csv('chunks.csv', chunksize=1)\nnext(x)", fate="lost"),
    case("pandas DataFrame of objects", PD + "shared = {'k': 1}\nx = pd.DataFrame({'o': [shared, shared, lambda: 3]})", "x['o'][0] is shared and x['o'][1] is shared and x['o'][2]() == 3"),
    case("pandas DataFrame with one bad cell", PD + "x = pd.DataFrame({'o': [1, (i for i in 'a')]})", "x['o'][0] == 1", "lost", ('x["o"][1]',)),
]
