# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The cells of the drill (Python 3.9 syntax: they run in the person's kernel), and how their answers are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: The open file that the drill reads from, in the notebook's folder.
FILE_NAME = "drill-lines.txt"
FILE_CONTENT = "first\nsecond\nthird\nfourth\n"

#: What cannot come back, and must be named before the pause: variable and what it is.
EXPECTED_LOSS = "squares"

BUILD = """
import os, random, secrets, threading
try:
    import numpy
except ImportError:
    numpy = None

token = secrets.token_hex(32)
random.seed(token)
if numpy is None:
    large = bytearray(os.urandom({size}))
    view = large
else:
    large = numpy.random.default_rng(secrets.randbits(64)).integers(0, 256, {size}, dtype="uint8")
    view = large[: {size} // 2]

class Ledger:
    def __init__(self):
        self.entries = []
    def add(self, amount):
        self.entries.append(amount)
        return self
    def total(self):
        return sum(self.entries)

ledger = Ledger().add(17).add(25)
FACTOR = 3
def scaled(number):
    return number * FACTOR
shared = [1, 2, 3]
holder = {{"same": shared}}
lines = open({file!r})
lines.readline()
lock = threading.Lock()
squares = (number * number for number in range(10))
next(squares)
counter = 1
"""

#: An object whose own rules for saving lie: only loading it shows that, and where.
LIE = """
class Meter:
    def __init__(self):
        self.reading = 0
    def __setstate__(self, state):
        self.reading = 0
house = {"meters": [Meter()]}
house["meters"][0].reading = 42
"""
EXPECTED_LIE = 'house["meters"][0].reading'

#: Between the two rounds: what the first checkpoint holds must not be enough for the second.
CHANGE = """
token = secrets.token_hex(32)
large[:8] = bytearray(secrets.token_bytes(8)) if numpy is None else numpy.frombuffer(secrets.token_bytes(8), "uint8")
ledger.add(len(ledger.entries))
shared.append(counter)
lines.readline()
counter += 1
squares = (number for number in range(3))
"""

#: Sent while the kernel is paused: it reads restored variables and changes one.
QUEUED = "counter += 1"
QUEUED_EXPRESSION = (
    "__import__('json').dumps([counter, ledger.total(), __import__('hashlib').sha256(token.encode()).hexdigest()])"
)

#: Leaves nothing behind: the function is taken out of the namespace by the expression that calls it.
PROBE = """
def _drill_probe():
    import hashlib, json, os, random, sys
    found = {}
    def look(name, ask):
        try:
            found[name] = {"value": ask()}
        except BaseException as error:
            found[name] = {"error": type(error).__name__ + ": " + str(error)}
    def aliases():
        before = large[0]
        large[0] = (int(before) + 1) % 256
        seen = int(view[0]) == int(large[0])
        large[0] = before
        return seen
    def function():
        global FACTOR
        first, kept = scaled(7), FACTOR
        FACTOR = kept + 2
        second = scaled(7)
        FACTOR = kept
        return [first, second]
    def sharing():
        shared.append("x")
        seen = holder["same"] is shared and holder["same"][-1] == "x"
        shared.pop()
        return [seen, list(shared)]
    def file():
        position = lines.tell()
        line = lines.readline()
        lines.seek(position)
        return [os.path.basename(lines.name), lines.mode, position, line]
    def locking():
        got = lock.acquire(timeout=5)
        held = lock.locked()
        lock.release()
        return [got, held, lock.locked()]
    def generator():
        return "alive" if type(squares).__name__ == "generator" else repr(next(squares))
    look("token", lambda: hashlib.sha256(token.encode()).hexdigest())
    look("array", lambda: [hashlib.sha256(memoryview(large)).hexdigest(), len(large), type(large).__name__])
    look("aliases", aliases)
    look("instance", lambda: [type(ledger) is Ledger, type(ledger).__name__, ledger.total()])
    look("function", function)
    look("sharing", sharing)
    look("file", file)
    look("lock", locking)
    look("random", lambda: hashlib.sha256(repr(random.getstate()).encode()).hexdigest())
    look("counter", lambda: [counter, get_ipython().execution_count])
    look("generator", generator)
    found["pid"] = {"value": os.getpid()}
    found["python"] = {"value": "%d.%d.%d" % sys.version_info[:3]}
    found["numpy"] = {"value": getattr(sys.modules.get("numpy"), "__version__", None)}
    return json.dumps(found)
"""
PROBE_EXPRESSION = "globals().pop('_drill_probe')()"

#: What must be the same before and after, in words.
PROMISES = {
    "token": "the random token is back (only its SHA-256 was noted outside)",
    "array": "the large array is back, byte for byte (SHA-256)",
    "aliases": "two views of the array still share its memory",
    "instance": "the instance is back, of the class defined in the notebook",
    "function": "the function is back and sees the notebook's variables",
    "sharing": "two variables still share one list",
    "file": "the open file goes on at its position",
    "lock": "the lock works",
    "random": "the state of the random generator is back",
    "counter": "variables and execution counter go on where they were",
}


@dataclass(frozen=True)
class Comparison:
    """One thing compared: `same`, and what was seen."""

    name: str
    same: bool
    seen: str


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[Comparison]:
    """Each promise, compared between two probes; what was wrong before proves nothing and counts as different."""
    found = []
    for name in PROMISES:
        old, new = before.get(name, {}), after.get(name, {})
        if "value" not in old:
            found.append(Comparison(name, False, f"could not be noted before the pause ({old.get('error')})"))
        elif "value" not in new:
            found.append(Comparison(name, False, f"not there ({new.get('error')})"))
        else:
            same = old["value"] == new["value"]
            found.append(Comparison(name, same, _short(new["value"]) if same else _both(old["value"], new["value"])))
    return found


def generator_says_what_it_was(after: dict[str, Any]) -> tuple[bool, str]:
    """Using what was lost must raise a message that names it, not work and not look like a missing name."""
    found = after.get("generator", {})
    if "value" in found:
        return False, f"it answers {found['value']}"
    message = str(found.get("error"))
    return not message.startswith("NameError") and "generator" in message, message


def _both(old: Any, new: Any) -> str:
    return f"was {_short(old)}, is {_short(new)}"


def _short(value: Any) -> str:
    """Digests in eight digits; they are only good for comparing."""
    if isinstance(value, list):
        return ", ".join(_short(part) for part in value)
    text = str(value)
    return text[:8] if len(text) == 64 else text.strip()
