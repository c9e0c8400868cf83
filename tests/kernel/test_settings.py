# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Settings of the process that cells changed hold after a resume, and after a second one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from .livekernel import LiveKernel

SET = """
import sys, warnings, signal, logging, io, decimal
from IPython.core.magic import register_line_magic
sys.recursionlimit_before = sys.getrecursionlimit()
sys.setrecursionlimit(4321)
warnings.filterwarnings('error', message='mine')
def on_usr1(number, frame): caught.append(number)
caught = []
signal.signal(signal.SIGUSR1, on_usr1)
stream = io.StringIO()
logging.basicConfig(stream=stream, level=logging.INFO, format='%(name)s:%(message)s')
logging.getLogger('quiet').setLevel(logging.ERROR)
decimal.getcontext().prec = 7
cells = []
def count(info): cells.append(1)
get_ipython().events.register('pre_run_cell', count)
@register_line_magic
def shout(line): return line.upper()
removed = next(entry for entry in sys.path if entry.endswith('.zip'))
sys.path.remove(removed)
get_ipython().ast_node_interactivity = 'all'
"""
NUMBERS = """
import numpy as np, pandas as pd
np.set_printoptions(precision=2, formatter={'float_kind': lambda v: '<%.1f>' % v})
np.seterr(divide='raise')
pd.set_option('display.max_rows', 7)
pd.options.display.float_format = lambda v: 'f%.1f' % v
"""
CHECKS = {
    "sys.getrecursionlimit()": "4321",
    "[f[0] for f in warnings.filters if f[1] is not None and f[1].pattern == 'mine']": "['error']",
    "signal.getsignal(signal.SIGUSR1) is on_usr1": "True",
    "(logging.getLogger().level, logging.getLogger().handlers[0].stream is stream)": "(20, True)",
    "len([h for h in logging.getLogger().handlers if getattr(h, 'stream', None) is stream])": "1",
    "logging.getLogger('quiet').level": "40",
    "decimal.getcontext().prec": "7",
    "count in get_ipython().events.callbacks['pre_run_cell']": "True",
    "get_ipython().run_line_magic('shout', 'hi')": "'HI'",
    "removed in sys.path": "False",
    "get_ipython().ast_node_interactivity": "'all'",
    "str(np.array([1.0]))": "'[<1.0>]'",
    "np.geterr()['divide']": "'raise'",
    "(pd.get_option('display.max_rows'), pd.get_option('display.float_format')(1.0))": "(7, 'f1.0')",
}


def test_settings_hold_after_a_resume_and_after_a_second_one(kernel: LiveKernel) -> None:
    for cell in (SET, NUMBERS):
        answer = kernel.execute(cell)
        assert answer.status == "ok", answer.error
    for _ in range(2):
        result = kernel.resume(kernel.save())
        assert result["outcome"] == "restored", result
        assert {check: kernel.value(check) for check in CHECKS} == CHECKS
        assert "__jupyter_pause_settings__" not in kernel.value("sorted(globals())")
    kernel.execute("import os\nos.kill(os.getpid(), signal.SIGUSR1)")
    assert kernel.value("len(caught), len(cells) > 0") == "(1, True)"
    kernel.execute("logging.getLogger('nb').info('hello')")
    assert kernel.value("stream.getvalue()") == "'nb:hello\\n'"


def test_nothing_is_set_where_no_cell_set_anything(kernel: LiveKernel) -> None:
    kernel.execute("import logging, decimal, warnings\nx = 1")
    checkpoint = kernel.save()
    internal = {entry["name"]: entry["bytes"] for entry in kernel.manifest(checkpoint)["internal"]}
    assert internal["__jupyter_pause_settings__"] < 100


def test_a_setting_that_cannot_be_kept_is_named_before_the_process_ends(kernel: LiveKernel) -> None:
    kernel.execute(
        "import logging, socket\nclass Remote(logging.Handler):\n    def __init__(self):\n        super().__init__()\n"
        "        self.line = socket.socket()\nlogging.getLogger('far').addHandler(Remote())"
    )
    staging, captured = kernel.capture()
    assert [(loss["name"], loss["type"]) for loss in captured["losses"]] == [("settings", "socket.socket")]
    assert "far" in captured["losses"][0]["path"]
    kernel.commit(staging)


ODD = """
import signal, sys, warnings, importlib.util
from jupyter_pause_kernel import settings
start, asked = settings.Start(get_ipython()), []
class Odd:
    def __eq__(self, other): asked.append('eq'); return False
    def __bool__(self): asked.append('bool'); return True
    def __getattribute__(self, name): asked.append(name); return object.__getattribute__(self, name)
    def __call__(self, *_): pass
class Meta(type):
    def __eq__(self, other): asked.append('meta'); return False
    __hash__ = type.__hash__
class Mine(Warning, metaclass=Meta): pass
warnings.filters.insert(0, ('ignore', None, Mine, None, 0))
signal.signal(signal.SIGUSR1, Odd())
get_ipython().events.callbacks['shell_initialized'].append(Odd())
loader = importlib.util.LazyLoader(importlib.util.find_spec('decimal').loader)
spec = importlib.util.spec_from_loader('decimal', loader)
sys.modules.pop('decimal', None)
lazy = importlib.util.module_from_spec(spec)
loader.exec_module(lazy)
sys.modules['decimal'] = lazy
before = list(warnings.filters)
asked.clear()
found = settings.collect(get_ipython(), start)
print(asked, type(lazy).__name__, sorted(found))
"""


def test_looking_at_settings_runs_no_code_of_theirs_and_imports_nothing(kernel: LiveKernel) -> None:
    answer = kernel.execute(ODD)
    assert answer.status == "ok", answer.error
    assert answer.printed == "[] _LazyModule ['IPython callbacks', 'signal handlers', 'warnings']\n"


def test_warning_filters_that_were_all_removed_stay_removed(kernel: LiveKernel) -> None:
    kernel.execute("import warnings\nwarnings.resetwarnings()")
    assert kernel.resume(kernel.save())["outcome"] == "restored"
    assert kernel.value("len(warnings.filters)") == "0"


@pytest.mark.full
def test_settings_of_plots(new_kernel: Callable[..., LiveKernel]) -> None:
    from tests.fidelity import environment

    kernel = new_kernel(str(environment.python()))
    kernel.write_kernel_file()
    kernel.start()
    kernel.execute("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.rcParams['lines.linewidth'] = 7.5")
    kernel.execute(
        "%config InlineBackend.figure_format = 'svg'\nplt.rcParams['axes.prop_cycle'] = plt.cycler(color='rb')"
    )
    result = kernel.resume(kernel.save())
    assert result["outcome"] == "restored", result
    assert kernel.value("plt.rcParams['lines.linewidth'], len(plt.rcParams['axes.prop_cycle'])") == "(7.5, 2)"
    answer = kernel.execute("fig, ax = plt.subplots()\nline, = ax.plot([1, 2])\nline.get_linewidth()\nplt.show()")
    assert answer.status == "ok" and kernel.value("line.get_linewidth()") == "7.5"
    shown = json.loads(
        kernel.value("__import__('json').dumps(sorted(get_ipython().display_formatter.formatters))")[1:-1]
    )
    assert "image/svg+xml" in shown and sys.version_info >= (3, 11)
