# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Writes a kernel's state to disk: one frame per variable, one memo for all, buffers beside them.

A bad object never sinks the rest: it is replaced in place. Where the pickler itself fails, the object it was at is put
on a black list and the dump begins anew; a variable that goes on failing is replaced as a whole.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import pickle
import platform
import sys
import time
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import (
    arrays,
    deeppickler,
    evidence,
    fingerprint,
    layout,
    living,
    local_modules,
    losses,
    packages,
    randomness,
    regions,
    settings,
)
from .context import live_namespace, make_tombstone
from .deep import Deep
from .reducing import PROTOCOL, Lost, Reducer, reason_of
from .revivers import Help
from .sizes import ATOMS
from .tombstone import loss_of

#: Names in the namespace that are not a person's variables but are kept: the history.
INTERNAL = ("In", "Out")
INTERNAL_PREFIX = "__jupyter_pause_"
#: How often the dump may begin anew.
RESTARTS = 12
CHECK_SECONDS = 0.1


class Cancelled(Exception):
    """The server asked to stop."""


class NoRoom(Exception):
    """The disk has less room than the buffers need."""


class _LiveNamespace:
    """Stands for the notebook's global names in the first frame; see `Dump.begin`."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return live_namespace, ()


class Watch:
    """Progress and cancellation: both may be asked for from inside the pickler."""

    def __init__(self, on_progress: Callable[[Dict[str, Any]], None], cancelled: Callable[[], bool]) -> None:
        self._on_progress = on_progress
        self._cancelled = cancelled
        self._last = 0.0
        self.phase = "capturing"
        self.variable: Optional[str] = None
        self.done = 0
        self.total: Optional[int] = None

    def moved(self, count: int) -> None:
        """`count` more bytes were written. Raises Cancelled."""
        self.done += count
        if time.monotonic() - self._last >= CHECK_SECONDS:
            self.check()

    def check(self) -> None:
        """Tell where we are. Raises Cancelled where the server asked to stop."""
        self._last = time.monotonic()
        if self._cancelled():
            raise Cancelled
        self._on_progress(
            {"phase": self.phase, "bytes_done": self.done, "bytes_total": self.total, "variable": self.variable}
        )


class FramePickler(pickle.Pickler):
    """The C pickler, asked about every object that is not plain data."""

    def __init__(self, file: Any, buffers: regions.Buffers, reducer: Reducer, blacklist: Dict[int, str]) -> None:
        super().__init__(file, protocol=PROTOCOL, buffer_callback=self._take)
        self._buffers = buffers
        self._reducer = reducer
        self._handlers = reducer.handlers
        self._blacklist = blacklist
        self.last: Any = None
        #: The variable being pickled.
        self.variable: Optional[str] = None
        self.witness = evidence.Witness()
        #: (object, reason, number of the loss) of everything replaced so far.
        self.lost: List[Tuple[Any, str, int]] = []
        self._numbers: Dict[int, int] = {}
        self.revived: List[Any] = []

    def _take(self, buffer: pickle.PickleBuffer) -> bool:
        """False takes the buffer out of the pickle."""
        view = buffer.raw()
        if view.nbytes <= arrays.SMALL:
            return True
        self._buffers.add(view)
        return False

    def reducer_override(self, value: Any) -> Any:
        """How one object is pickled."""
        cls = type(value)
        handler = self._handlers.get(cls) or self._reducer.handler_of(cls)
        self.last = value
        if self._blacklist and id(value) in self._blacklist:
            return self.replace(value, self._blacklist[id(value)])
        try:
            recipe = handler.call(value)
        except Lost as error:
            return self.replace(value, str(error))
        if handler.way == "revive" and handler.reviver.is_rebuilt(value):
            self.revived.append(value)
        elif handler.way in ("plain", "recipe"):
            self.witness.see(value, recipe, self.variable)
        return recipe

    def replace(self, value: Any, reason: str) -> Tuple[Any, ...]:
        """The recipe of a tombstone in place of `value`."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.lost)
            self.lost.append((value, reason, number))
        return make_tombstone, (number, losses.type_name(value), reason)

    # A reference cycle through the buffer callback would keep every pickled object alive.
    def forget(self) -> None:
        """Let go of all objects."""
        self.clear_memo()
        self.lost, self.revived, self.last = [], [], None
        self.witness = evidence.Witness()


class Record:
    """What is known about one variable during a dump."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value
        self.frame = -1
        self.buffers = (0, 0)
        self.lost: List[Tuple[Any, str, int]] = []
        self.revived: List[Any] = []
        self.bytes = 0


class Failed(Exception):
    """The pickler gave up inside a variable."""

    def __init__(self, record: Record, error: BaseException, last: Any) -> None:
        super().__init__(reason_of(error))
        self.record = record
        self.error = error
        self.last = last


class Dump:
    """One attempt to write all frames."""

    def __init__(self, reducer: Reducer, path: str, watch: Watch, blacklist: Dict[int, str]) -> None:
        self.reducer = reducer
        self.buffers = regions.Buffers()
        self._watch = watch
        watch.done = 0
        self.writer = layout.FrameWriter(path, watch.moved)
        self.pickler = FramePickler(self.writer, self.buffers, reducer, blacklist)

    def begin(self) -> None:
        """The first frame makes the notebook's global names known, so that whatever holds them holds the live ones.

        The names are an exact dict, which a pickler never asks about. So a marker is pickled, and then the names take
        its place in the memo.
        """
        stands = [(_LiveNamespace(), self.reducer.namespace), *living.stands()]
        self.pickler.dump(("\0frame:names", *[stand for stand, _ in stands]))
        self.writer.end()
        memo = self.pickler.memo.copy()
        for stand, real in stands:
            memo[id(real)] = (memo.pop(id(stand))[0], real)
        self.pickler.memo = memo

    def variable(self, record: Record, as_lost: Optional[str], deep: bool) -> None:
        """Write one frame; `deep` takes the pickler for deep nesting. Raises Failed, Cancelled, OSError."""
        watch, pickler = self._watch, self.pickler
        watch.variable = pickler.variable = record.name
        watch.check()
        lost, revived, first = len(pickler.lost), len(pickler.revived), len(self.buffers)
        value = _Replaced(pickler, record.value, as_lost) if as_lost is not None else arrays.named(record.value)
        try:
            self._dump((frame_mark(record.name), value), deep)
        except (Cancelled, OSError):
            raise
        except Exception as error:
            raise Failed(record, error, pickler.last) from error
        record.frame = self.writer.end()
        record.buffers = (first, len(self.buffers))
        record.lost = pickler.lost[lost:]
        record.revived = pickler.revived[revived:]
        record.bytes = self.writer.frames[record.frame]["bytes"]

    def _dump(self, value: Any, deep: bool) -> None:
        if not deep:
            self.pickler.dump(value)
            return
        pickler = self.pickler
        slow = deeppickler.DeepPickler(self.writer, pickler.memo.copy(), pickler._take, pickler.reducer_override)
        slow.dump(value)
        pickler.memo = slow.memo

    def notes(self) -> Optional[Dict[str, int]]:
        """Write what was noted about objects with rules of their own; None where nothing was to note."""
        witness = self.pickler.witness
        if not witness.notes and not witness.unseen:
            return None
        try:
            self.pickler.dump((frame_mark("notes"), witness.notes))
        except (Cancelled, OSError):
            raise
        except Exception:  # the variables are complete without them
            self.writer.end()
            return {"frame": -1, "objects": 0, "unseen": len(witness.notes) + witness.unseen}
        return {"frame": self.writer.end(), "objects": len(witness.notes), "unseen": witness.unseen}

    def close(self, sync: bool) -> None:
        """Close the file."""
        self.writer.close(sync)


class _Replaced:
    """A variable that is lost as a whole."""

    def __init__(self, pickler: FramePickler, value: Any, reason: str) -> None:
        self._recipe = pickler.replace(value, reason)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._recipe


def frame_mark(name: str) -> str:
    """The first object of a frame: the loader finds by it where the frame's part of the memo begins."""
    return "\0frame:" + name


def is_internal(name: str) -> bool:
    """Kept, but not shown as a variable."""
    return name in INTERNAL or name.startswith(INTERNAL_PREFIX)


def items_to_keep(namespace: Dict[str, Any], hidden: Set[str]) -> List[Tuple[str, Any]]:
    """Names and values in the order in which they are saved, scanned and loaded."""
    items = [item for item in list(namespace.items()) if type(item[0]) is str]
    return sorted([item for item in items if item[0] not in hidden or is_internal(item[0])], key=_order)


class Capture:
    """All of one capture; `run` does it."""

    def __init__(
        self, namespace: Dict[str, Any], staging: str, request: Dict[str, Any], interpreter: Dict[str, Any]
    ) -> None:
        from ._cloudpickle import cloudpickle  # type: ignore[import-not-found,unused-ignore]

        self._namespace = namespace
        self._staging = staging
        self._request = request
        self._interpreter = interpreter
        self._helpers = cloudpickle
        inputs = namespace.get("In")
        self._inputs = list(inputs) if isinstance(inputs, list) else []
        self._deep = Deep()
        self._as_lost: Dict[str, str] = {}
        self._blacklist: Dict[int, str] = {}
        self._kept_alive: List[Any] = []
        self._tries: Dict[str, int] = {}
        self._nested: Set[str] = set()
        self._search_seconds = 8.0

    def run(self, hidden: Set[str], watch: Watch) -> Dict[str, Any]:
        """Write everything; returns what ``result.json`` says of a success. Raises Cancelled, NoRoom, OSError."""
        records = [Record(name, value) for name, value in items_to_keep(self._namespace, hidden)]
        watch.total = _rough_size(records)
        with _quiet():
            dump = self._deep.run(lambda: self._frames(records, watch))
            try:
                manifest = self._finish(dump, records, watch)
            finally:
                dump.pickler.forget()
        return {
            "status": "ok",
            "code": None,
            "message": "",
            "bytes": manifest["bytes"],
            "losses": [loss for loss in manifest["losses"] if not loss.get("earlier")],
        }

    # --- frames ------------------------------------------------------------------------------------------------

    def _frames(self, records: List[Record], watch: Watch) -> Dump:
        path = os.path.join(self._staging, layout.FRAMES)
        for attempt in range(RESTARTS + len(records)):
            reducer = Reducer(
                self._namespace, self._helpers, self._inputs, Help(self._staging, self._deep.on_main_thread)
            )
            dump = Dump(reducer, path, watch, self._blacklist)
            try:
                dump.begin()
                for record in records:
                    dump.variable(record, self._as_lost.get(record.name), record.name in self._nested)
                return dump
            except Failed as failure:
                self._learn(failure, attempt)
                dump.close(False)
                dump.pickler.forget()
                os.unlink(path)
            except BaseException:
                dump.close(False)
                raise
        raise RuntimeError("the dump did not come to an end")

    def _learn(self, failure: Failed, attempt: int) -> None:
        """Decide what to leave out in the next attempt: first the object at fault, then its whole variable."""
        name = failure.record.name
        self._tries[name] = self._tries.get(name, 0) + 1
        changed = isinstance(failure.error, RuntimeError) and "changed" in str(failure.error)
        if changed and self._tries[name] < 3:
            return  # a thread changed something while it was written: try again
        if isinstance(failure.error, RecursionError) and deeppickler.NEEDED and name not in self._nested:
            self._nested.add(name)
            return
        reason = str(failure)
        if isinstance(failure.error, (RecursionError, MemoryError)):
            reason = (
                "it is nested too deeply for this Python"
                if isinstance(failure.error, RecursionError)
                else "there was not enough memory to save it"
            )
        culprit = failure.last
        simple = culprit is None or issubclass(type(culprit), (type, types.ModuleType, types.FunctionType))
        whole = simple or isinstance(failure.error, RecursionError) or self._tries[name] > 2 or attempt >= RESTARTS
        if whole or culprit is failure.record.value or id(culprit) in self._blacklist:
            self._as_lost[name] = reason
        else:
            self._blacklist[id(culprit)] = reason
            self._kept_alive.append(culprit)

    # --- the rest ----------------------------------------------------------------------------------------------

    def _finish(self, dump: Dump, records: List[Record], watch: Watch) -> Dict[str, Any]:
        frames = dump.writer
        try:
            watch.variable = None
            notes = dump.notes()
            code, sources = dump.reducer.definitions.code.write(frames.add)
            extras = frames.add(pickle.dumps(randomness.collect(), PROTOCOL))
            pieces, places = dump.buffers.regions()
            watch.phase, watch.total = "writing", watch.done + sum(len(p) for r in pieces for p in r)
            watch.check()
            stored, pack = self._pack(pieces, watch)
            found = self._losses(dump, records)
            variables, internal = self._variables(dump, records, places, found)
            watch.phase = "syncing"
            watch.check()
            frames.close(True)
        finally:
            frames.close(False)
        manifest = self._manifest(dump)
        manifest.update(
            variables=variables,
            internal=internal,
            losses=found,
            frames=frames.frames,
            code=code,
            sources=sources,
            random=extras,
            notes=notes,
            regions=stored,
            buffers=places,
            packs=pack,
            bytes=frames.size
            + sum({(c["pack"], c["offset"]): c["bytes"] for r in stored for c in r["chunks"]}.values()),
            written=frames.size + pack[0]["bytes"],
        )
        layout.write_private(os.path.join(self._staging, layout.MANIFEST), layout.canonical_json(manifest))
        layout.fsync_folder(self._staging)
        layout.remember(layout.committed(self._staging))
        return manifest

    def _pack(self, pieces: List[List[memoryview]], watch: Watch) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
        shared = layout.Shared.of(self._staging)
        writer = layout.PackWriter(os.path.join(self._staging, layout.PACK), shared)
        try:
            wanted = sum(len(piece) for region in pieces for piece in region)
            _require_room(self._staging, wanted - min(wanted, shared.bytes))
            stored = [writer.region(region, watch.moved) for region in pieces]
            watch.phase = "syncing"
            watch.check()
            packs = writer.close(True)
        finally:
            writer.close(False)
        return stored, packs

    def _losses(self, dump: Dump, records: List[Record]) -> List[Dict[str, Any]]:
        """The losses in the order of their numbers, then further names of objects that are lost as a whole."""
        found: List[Dict[str, Any]] = [{} for _ in dump.pickler.lost]
        by_object: Dict[int, Dict[str, Any]] = {}
        for record in records:
            paths = self._paths(dump, record, [item[0] for item in record.lost])
            for value, reason, number in record.lost:
                found[number] = _loss(record.name, paths.get(id(value)) or record.name, value, reason)
                by_object[id(value)] = found[number]
        more = []
        for record in records:
            first = by_object.get(id(record.value))
            if first is not None and first["path"] != record.name:
                more.append(dict(first, name=record.name, path=record.name))
        losses.add_cells([loss for loss in found + more if not loss.get("earlier")], self._inputs)
        settings.say_title(found + more)
        return found + more

    def _variables(
        self, dump: Dump, records: List[Record], places: List[List[int]], found: List[Dict[str, Any]]
    ) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
        whole = {loss["path"]: loss for loss in found}
        variables: List[Dict[str, Any]] = []
        internal: List[Dict[str, Any]] = []
        for record in records:
            first, last = record.buffers
            fate, reason = dump.reducer.judge(record.value)
            kind = kind_of(record.value)
            if record.name in whole and fate != "lost":
                fate, reason = "lost", whole[record.name]["reason"]
            entry = {
                "name": record.name,
                "type": losses.type_name(record.value),
                "kind": "tombstone" if fate == "lost" else kind,
                "bytes": record.bytes + sum(places[number][2] for number in range(first, last)),
                "fate": fate,
                "reason": reason,
                "fingerprint": self._fingerprint(record.value) if fate == "in checkpoint" or kind == "module" else None,
                "frame": record.frame,
                "regions": regions.used_by(places, first, last),
                "rebuilt": self._rebuilt(dump, record),
            }
            (internal if is_internal(record.name) else variables).append(entry)
        return variables, internal

    def _paths(self, dump: Dump, record: Record, objects: List[Any]) -> Dict[int, str]:
        """Where these lie in a variable. All searches of a capture together take a few seconds at most."""
        if not objects or self._search_seconds <= 0:
            return {}
        began = time.monotonic()
        limit = min(self._search_seconds, losses.MOST_SECONDS)
        paths = losses.paths_to(record.name, record.value, [id(value) for value in objects], dump.reducer, limit)
        self._search_seconds -= time.monotonic() - began
        return paths

    def _fingerprint(self, value: Any) -> Optional[str]:
        return None if value is self._namespace else fingerprint.of(value)

    def _rebuilt(self, dump: Dump, record: Record) -> List[Dict[str, Any]]:
        """Things inside the variable that are made again, with what will be different about them."""
        some = record.revived[:50]
        paths = self._paths(dump, record, some)
        return [
            {
                "path": paths.get(id(value), record.name),
                "type": losses.type_name(value),
                "reason": dump.reducer.judge(value)[1],
            }
            for value in some
        ]

    def _manifest(self, dump: Dump) -> Dict[str, Any]:
        request = self._request
        texts = {key: str(request.get(key) or "") for key in ("kernel_id", "kernel_name", "path", "cause")}
        return {
            "format": layout.FORMAT,
            "id": str(request["checkpoint_id"]),
            "created": str(request.get("created") or _now()),
            **texts,
            "python": {
                "version": platform.python_version(),
                "implementation": sys.implementation.name,
                "magic": importlib.util.MAGIC_NUMBER.hex(),
                "byteorder": sys.byteorder,
                "platform": sys.platform,
            },
            "packages": packages.versions(dump.reducer.packages),
            "modules": local_modules.noted(dump.reducer.packages),
            "devices": sorted(dump.reducer.devices),
            "page_size": layout.PAGE,
            "chunk_size": layout.CHUNK,
            "interpreter": self._interpreter,
        }


def _loss(name: str, path: str, value: Any, reason: str) -> Dict[str, Any]:
    before = loss_of(value)
    if before is not None:  # lost in an earlier pause: nobody has to be asked again
        return dict(before, name=name, path=path, earlier=True)
    return {"name": name, "path": path, "type": losses.type_name(value), "reason": reason, "cell": None}


def kind_of(value: Any) -> str:
    """data, function, class, module or tombstone."""
    if loss_of(value) is not None:
        return "tombstone"
    if issubclass(type(value), type):
        return "class"
    if issubclass(type(value), types.ModuleType):
        return "module"
    if issubclass(type(value), (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return "function"
    return "data"


def _order(item: Tuple[Any, Any]) -> int:
    """Modules and plain values first, then definitions: what is loaded later may need them."""
    name, value = item
    if is_internal(name):
        return 4  # a loss in the history is named by its variable, if it has one
    if issubclass(type(value), types.ModuleType):
        return 0
    if type(value) in ATOMS:
        return 1
    return 2 if issubclass(type(value), (type, types.FunctionType)) else 3


def _rough_size(records: List[Record]) -> int:
    """What can be told at once: buffers of arrays, lengths of texts; only for the progress bar."""
    total = 0
    for record in records:
        size = getattr(record.value, "nbytes", 0) if type(record.value).__module__ == "numpy" else 0
        total += size if isinstance(size, int) else 0
        total += len(record.value) if type(record.value) in (bytes, bytearray, str) else 1000
    return total


def _require_room(folder: str, wanted: int) -> None:
    """Raises NoRoom early, before minutes of writing."""
    try:
        status = os.statvfs(folder)
    except (AttributeError, OSError):
        return
    if status.f_blocks and status.f_bavail * status.f_frsize < wanted:
        raise NoRoom


def _now() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + ".%03dZ" % (int(now * 1000) % 1000)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No cyclic collection (it would visit millions of new objects again and again) and no warnings in the notebook."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if collecting:
            gc.enable()


def capture(
    namespace: Dict[str, Any],
    staging: str,
    request: Dict[str, Any],
    *,
    interpreter: Dict[str, Any],
    hidden: Set[str],
    on_progress: Callable[[Dict[str, Any]], None],
    cancelled: Callable[[], bool],
) -> Dict[str, Any]:
    """Write the namespace to the staging folder: frames.bin, pack.bin and manifest.json, all synced, unsigned.

    Returns the content of ``result.json``. Never raises an Exception: a bad object is a loss; a full disk is
    ``failed`` with code ``no_space``; whatever ends it early leaves none of the three files behind.
    `on_progress` gets ``{"phase", "bytes_done", "bytes_total", "variable"}``.
    """
    began = time.monotonic()
    result: Dict[str, Any] = {"status": "failed", "code": "capture_failed", "message": "", "bytes": 0, "losses": []}
    try:
        result = Capture(namespace, staging, request, interpreter).run(hidden, Watch(on_progress, cancelled))
    except Cancelled:
        result.update(status="cancelled", code=None)
    except NoRoom:
        result.update(code="no_space", message="There is not enough room on the checkpoint disk.")
    except OSError as error:
        result.update(
            code=layout.code_of_os_error(error), message="Writing the checkpoint failed: %s." % error.strerror
        )
    except Exception as error:
        result.update(message="%s: %s" % (type(error).__name__, error))
    finally:
        if result["status"] != "ok":
            names = (layout.FRAMES, layout.PACK, layout.MANIFEST)
            layout.remove_quietly(*[os.path.join(staging, name) for name in names])
    result["seconds"] = round(time.monotonic() - began, 3)
    return result
