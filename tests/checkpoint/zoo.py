# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
# ruff: noqa: E501  (the cells of notebooks are text here)
"""A cell with one of nearly everything that the standard library and a notebook can put into a variable."""

CELL = r"""
import collections, decimal, fractions, datetime, uuid, pathlib, types, operator, ipaddress, array, contextlib, asyncio, typing, dataclasses, abc, enum, textwrap, json, string, heapq, bisect, struct, csv, io, gzip, zipfile, tempfile, subprocess, multiprocessing, threading, inspect, copy, statistics, time, zoneinfo, html, argparse, configparser, sched, secrets, hashlib, ctypes, codecs, locale, gettext, shelve, http.cookiejar, urllib.request, email.message, xml.etree.ElementTree as ET, difflib, pprint, timeit, traceback, warnings, weakref, functools, itertools
od=collections.OrderedDict(a=1); dd=collections.defaultdict(lambda: [], x=[1]); ct=collections.Counter('aab'); cm=collections.ChainMap({1:2}); dq=collections.deque([1,2],maxlen=3); ud=collections.UserDict(a=1)
dec=decimal.Decimal('1.5'); fr=fractions.Fraction(1,3); dt=datetime.datetime.now(datetime.timezone.utc); tz=zoneinfo.ZoneInfo('Europe/Berlin'); dtz=datetime.datetime(2026,1,1,tzinfo=tz)
u=uuid.uuid4(); p=pathlib.Path('/tmp/x'); sn=types.SimpleNamespace(a=1); ig=operator.itemgetter(1); ag=operator.attrgetter('a'); mc=operator.methodcaller('upper')
ip=ipaddress.ip_address('1.2.3.4'); arr=array.array('d',[1,2]); mp=types.MappingProxyType({'a':1}); gen_alias=list[int]; un=typing.Union[int,str]; opt=typing.Optional[int]; cal=typing.Callable[[int],str]
ell=...; ni=NotImplemented; nt=type(None); rng=range(5); sl=slice(1,2); cx=1+2j; by=bytearray(b'abc'); fs=frozenset([1])
dk={'a':1}.keys(); dv={'a':1}.values(); di={'a':1}.items(); rev=reversed([1,2,3]); en=enumerate('ab'); zp=zip([1],[2]); mpx=map(str,[1,2]); flt=filter(None,[1])
ex=ValueError('x');
try: 1/0
except Exception as e: exc=e; tb=e.__traceback__; info=__import__('sys').exc_info()
lk=asyncio.Lock(); aq=asyncio.Queue(); ae=asyncio.Event()
tmpl=string.Template('$a'); sm=difflib.SequenceMatcher(None,'a','b'); et=ET.fromstring('<a><b/></a>'); msg=email.message.Message(); ap=argparse.ArgumentParser(); ap.add_argument('--x'); cp=configparser.ConfigParser();
h=hashlib.sha256(b'x'); cs=ctypes.c_int(3); ctxm=contextlib.ExitStack(); nul=contextlib.nullcontext(3)
@contextlib.contextmanager
def cmgr(): yield 1
loc=threading.local(); loc.x=1
tm=threading.Timer(100,print)
td=tempfile.TemporaryDirectory(); gz=gzip.open('x.gz','wb'); csvw=csv.writer(io.StringIO()); csvr=csv.reader(['a,b'])
proc=subprocess.Popen([__import__('sys').executable,'-c','']); mq=multiprocessing.Queue(); ml=multiprocessing.Lock(); mpool=None
sig=inspect.signature(lambda a,b=1:0); prm=list(sig.parameters.values())[0]
class Desc:
    def __get__(s,o,t): return 5
    def __set_name__(s,o,n): s.n=n
class WithDesc: d=Desc(); x: int=3
wd=WithDesc()
class Ctx:
    def __enter__(s): return s
    def __exit__(s,*a): pass
class Callable_:
    def __call__(s,x): return x+1
ca=Callable_()
class Sing:
    _i=None
    def __new__(c):
        if c._i is None: c._i=super().__new__(c)
        return c._i
s1=Sing()
class GS:
    def __init__(s): s.l=threading.Lock(); s.v=3
    def __getstate__(s): d=s.__dict__.copy(); del d['l']; return d
    def __setstate__(s,d): s.__dict__.update(d); s.l=threading.Lock()
gs=GS()
def agen():
    async def g():
        yield 1
    return g()
ag_=agen(); co=(lambda: (yield))()
rec=[]; rec.append({'r':rec}); cyc1={}; cyc2={'o':cyc1}; cyc1['o']=cyc2
class Node:
    def __init__(s): s.children=[]; s.parent=None
root=Node(); k=Node(); k.parent=root; root.children.append(k)
class Tup(tuple):
    def __new__(c,*a): return super().__new__(c,a)
tup=Tup(1,2);
class Rd(dict):
    def __missing__(s,k): return k
rd=Rd(a=1); rd.attr=rd
sset={Node()}; hashed={root:1}
fn_attr=lambda:0; fn_attr.gen=(i for i in [])
class HasGenAttr: g=(i for i in [1]);
meth=root.__init__; cmeth=datetime.datetime.now; smeth=str.join; slot=int.__add__; mw=(1).__add__
pm=functools.partialmethod(print); cmpk=functools.cmp_to_key(lambda a,b:0)
tee1,tee2=itertools.tee([1,2,3]); cyc=itertools.cycle([1,2]); next(cyc); isl=itertools.islice(iter(range(10)),3); chain=itertools.chain([1],[2]); grp=itertools.groupby([1,1,2])
warn=warnings.catch_warnings(); cv=__import__('contextvars').ContextVar('cv')
code=(lambda x:x).__code__; cellv=(lambda: code).__closure__
class Fl(enum.Flag):
    A=enum.auto(); B=enum.auto()
fl=Fl.A|Fl.B
class IF(enum.IntFlag):
    X=1; Y=2
iff=IF.X|IF.Y
Pt=dataclasses.make_dataclass('Pt',['x',('y',int,5)]); pt=Pt(1)
@dataclasses.dataclass
class Gen(typing.Generic[typing.TypeVar('T')]):
    v: int = 1
gd=Gen(3)
"""

#: Paths that cannot come back, on every Python.
LOST = {
    "fn_attr.gen", "HasGenAttr.g", "tb", "h", "td", "gz", "proc", "mq", "ml", "ag_", "co",
}  # fmt: skip

#: True afterwards.
CHECKS = (
    "dd['new'] == [] and mp['a'] == 1 and wd.d == 5 and ca(1) == 2 and gs.v == 3 and gs.l.acquire(False)",
    "root.children[0].parent is root and rd['zz'] == 'zz' and rd.attr is rd and hashed[root] == 1",
    "pt.y == 5 and gd.v == 3 and fl == Fl.A | Fl.B and iff == IF.X | IF.Y and tup == (1, 2) and s1 is Sing()",
    "rec[0]['r'] is rec and cyc1['o']['o'] is cyc1 and cmgr().__enter__() == 1 and next(cyc) == 2 and next(tee1) == 1",
    "list(dk) == ['a'] and list(rev) == [3, 2, 1] and list(en) == [(0, 'a'), (1, 'b')] and list(isl) == [0, 1, 2]",
    "ell is ... and ni is NotImplemented and nt is type(None) and rng == range(5) and by == b'abc'",
    "repr(tz) == \"zoneinfo.ZoneInfo(key='Europe/Berlin')\" and dec + 1 == 2.5 and p.name == 'x' and ct['a'] == 2",
    "loc.x == 1 and tm.interval == 100 and csvw.writerow([1]) == 3 and list(csvr) == [['a', 'b']] and cv.name == 'cv'",
    "type(exc) is ZeroDivisionError and str(sig) == '(a, b=1)' and slot(1, 2) == 3 and mw(2) == 3 and code.co_varnames == ('x',)",
)
