# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Loads a checkpoint into a live namespace.

Nothing is unpickled before the manifest's signature, all sizes and the hash of every frame were found right. One
variable that cannot be made here never sinks the others. What takes objects apart, and the revivers, are only imported
where something is missing or differs: a resume waits for every import.
"""

from __future__ import annotations

import gc
import os
import pickle
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import context, evidence, fingerprint, layout, losses, memory, randomness
from .definitions import CodeLoader
from .tolerant import RAISED, TolerantUnpickler, clause, find_global
from .tombstone import loss_of

#: Bytes of frames that are read once more, slowly, to say where in a variable something came back differently.
_MOST_GRAPH = 32 * 1024 * 1024


class FrameFile:
    """What the unpickler reads: the current frame, as a file."""

    def __init__(self) -> None:
        self._view = memoryview(b"")
        self._at = 0

    def open(self, data: Any) -> None:
        """Begin a frame."""
        self._view = memoryview(data)
        self._at = 0

    def read(self, count: int = -1) -> bytes:
        """The next bytes."""
        end = len(self._view) if count < 0 else self._at + count
        data = bytes(self._view[self._at : end])
        self._at += len(data)
        return data

    def readinto(self, target: Any) -> int:
        """The next bytes, into a buffer."""
        part = self._view[self._at : self._at + len(target)]
        target[: len(part)] = part
        self._at += len(part)
        return len(part)

    def readline(self) -> bytes:
        """Up to the next line break (only old protocols need it)."""
        rest = bytes(self._view[self._at :])
        line = rest[: rest.find(b"\n") + 1] or rest
        self._at += len(line)
        return line


class Buffers:
    """Hands buffers to the unpickler in order, and can be set back to where a frame began."""

    def __init__(self, places: List[List[int]], source: memory.Memory) -> None:
        self._places = places
        self._source = source
        self.at = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.at >= len(self._places):
            raise StopIteration
        region, offset, length = self._places[self.at]
        self.at += 1
        return self._source.view(region, offset, length)


class FastUnpickler(pickle.Unpickler):
    """The C unpickler. `memo` gives it the memo of frames that another unpickler loaded."""

    def __init__(self, file: FrameFile, buffers: Buffers, memo: Optional[Dict[int, Any]] = None) -> None:
        super().__init__(file, buffers=buffers)
        self._given = memo or {}
        if memo:
            self._fill(file)

    def find_class(self, module: str, name: str) -> Any:
        """An importable object."""
        return find_global(module, name)

    def persistent_load(self, number: Any) -> Any:
        """Only used by `_fill`."""
        return self._given[number]

    def _fill(self, file: FrameFile) -> None:
        """The memo cannot be set from a dict, but a pickle that names each object fills it."""
        parts = [b"\x80\x05"]
        parts += [b"J" + number.to_bytes(4, "little") + b"Q\x940" for number in range(len(self._given))]
        file.open(b"".join([*parts, b"N."]))
        self.load()
        self._given = {}


class Loader:
    """One load of one verified checkpoint."""

    def __init__(
        self, folder: str, manifest: Dict[str, Any], reader: layout.FrameReader, namespace: Dict[str, Any]
    ) -> None:
        self.manifest = manifest
        self._reader = reader
        self._file = FrameFile()
        self._memory = memory.Memory(folder, manifest)
        self._buffers = Buffers(manifest["buffers"], self._memory)
        self._fast = FastUnpickler(self._file, self._buffers)
        self.context = context.LoadContext(namespace, manifest["losses"], CodeLoader(manifest, reader.read))
        self.compared = 0
        self.mismatched: List[str] = []
        #: What objects with rules of their own brought back differently, as losses.
        self.different: List[Dict[str, Any]] = []
        self._patched: List[str] = []

    def load(self) -> None:
        """All variables, then the random state. Raises only for damage that the hashes did not show."""
        before = context.enter(self.context)
        try:
            self.context.code.remember_sources()
            self._file.open(self._reader.read(0))
            self._fast.load()
            entries = sorted(self.manifest["variables"] + self.manifest["internal"], key=lambda entry: entry["frame"])
            for entry in entries:
                self._variable(entry)
            self._find_paths()
            self._random()
            for entry in entries:
                self._compare(entry)
            self._compare_notes(entries)
        finally:
            context.enter(before)
            self._memory.ready()

    def _variable(self, entry: Dict[str, Any]) -> None:
        self.context.variable = entry["name"]
        first = self._buffers.at
        data = self._reader.read(entry["frame"])
        self._file.open(data)
        try:
            value = self._fast.load()[1]
        except RAISED:
            value = self._tolerant(data, entry["name"], first)
            self._patched.append(entry["name"])
        self.context.namespace[entry["name"]] = value

    def _tolerant(self, data: Any, name: str, first: int) -> Any:
        """Load the frame again with what can be made; the memo goes back to where the frame began."""
        memo: Dict[int, Any] = dict(self._fast.memo.copy())
        mark = "\0frame:" + name
        start = next(
            (key for key in sorted(memo, reverse=True) if type(memo[key]) is str and memo[key] == mark), len(memo)
        )
        memo = {key: value for key, value in memo.items() if key < start}
        self._buffers.at = first
        self._file.open(data)
        slow = TolerantUnpickler(self._file, self._buffers, memo, self.context)
        try:
            value = slow.load()[1]
        except RAISED as error:
            value = self.context.tombstone(name, clause(error))
        # Later frames may refer to any entry of this one, also to those that could not be made.
        memo = dict(slow.memo)
        size = self._memo_size_after(data, start)
        for number in range(size):
            if number not in memo:
                memo[number] = value
        self._fast = FastUnpickler(self._file, self._buffers, memo)
        return value

    @staticmethod
    def _memo_size_after(data: Any, start: int) -> int:
        """How many entries the whole frame makes."""
        import pickletools

        made = sum(1 for opcode, _, _ in pickletools.genops(bytes(data)) if opcode.name == "MEMOIZE")
        return start + made

    def _find_paths(self) -> None:
        """Say where inside its variable each new loss lies; only variables in which something failed are searched."""
        if not self._patched and not self.context.losses:
            return
        from ._cloudpickle import cloudpickle  # type: ignore[import-not-found,unused-ignore]
        from .reducing import Reducer
        from .revivers import Help

        namespace = self.context.namespace
        reducer = Reducer(namespace, cloudpickle, (), Help("", lambda function: function()))
        for name in dict.fromkeys(self._patched + [str(loss["name"]) for loss in self.context.losses]):
            if name not in namespace:
                continue
            for stone, path in losses.tombstones_in(name, namespace[name], reducer):
                info = loss_of(stone) or {}
                if any(info is loss for loss in self.context.losses) and info["name"] == name:
                    info["path"] = path

    def _random(self) -> None:
        self.context.variable = "random state"
        try:
            states = pickle.loads(self._reader.read(self.manifest["random"]))
        except Exception as error:
            self.context.lost("random state", clause(error))
            return
        for name, reason in randomness.restore(states):
            self.context.lost("random state of " + name, reason, "random state of " + name)

    def _compare(self, entry: Dict[str, Any]) -> None:
        value = self.context.namespace.get(entry["name"])
        if entry.get("fingerprint") is None or entry["fate"] == "lost" or loss_of(value) is not None:
            return
        self.compared += 1
        if fingerprint.of(value) != entry["fingerprint"]:
            self.mismatched.append(entry["name"])

    def _compare_notes(self, entries: List[Dict[str, Any]]) -> None:
        """Objects with rules of their own against what was noted of them when they were saved."""
        frame = (self.manifest.get("notes") or {}).get("frame", -1)
        if frame < 0:
            return
        self.context.variable = ""
        self._file.open(self._reader.read(frame))
        try:
            found = list(evidence.differences(self._fast.load()[1]))
        except Exception:  # an object that cannot be read: nothing is known, nothing is said
            return
        if not found:
            return
        graph, notes = self._graph(entries, frame)
        for item in found:
            node = notes[item.number][0] if notes else None
            path = (graph.path(item.variable, node) or item.variable) + (item.path or "")
            loss = {"name": item.variable, "path": path, "type": item.type, "reason": item.reason, "cell": None}
            self.different.append(loss)

    def _graph(self, entries: List[Dict[str, Any]], frame: int) -> Any:
        """The frames as a graph, and the notes in it; without them where they are too large to be read so slowly."""
        from .framegraph import FrameGraph

        graph = FrameGraph(FrameFile())
        frames = [0, *(entry["frame"] for entry in entries), frame]
        if sum(self.manifest["frames"][number]["bytes"] for number in frames) > _MOST_GRAPH:
            return graph, None
        try:
            for number in frames[:-1]:
                graph.add(self._reader.read(number))
            return graph, graph.add(self._reader.read(frame))
        except Exception:
            return graph, None

    def _new_losses(self) -> List[Dict[str, Any]]:
        """What could not be made here, once each, with variables that are only another name of it."""
        known = {(loss["name"], loss["path"]) for loss in self.manifest["losses"]}
        all_of_them = {(loss["name"], loss["path"]): loss for loss in self.different + self.context.losses}
        found = {key: loss for key, loss in all_of_them.items() if key not in known}
        said = {path for _, path in known} | {path for _, path in found}
        for entry in self.manifest["variables"]:
            info = loss_of(self.context.namespace.get(entry["name"]))
            if info is not None and entry["name"] not in said:
                found[(entry["name"], entry["name"])] = dict(info, name=entry["name"], path=entry["name"])
        return list(found.values())

    # --- what it came to ---------------------------------------------------------------------------------------

    def result(self) -> Dict[str, Any]:
        """The load result of docs/developers/architecture.md, without ``seconds`` and ``pid``."""
        losses_here = self._new_losses()
        new = {loss["path"]: loss for loss in losses_here}
        notes = {note["name"]: note["reason"] for note in self.context.notes}
        variables, rebuilt = [], []
        for entry in self.manifest["variables"]:
            name, fate, reason = entry["name"], entry["fate"], entry["reason"]
            if name in new:
                fate, reason = "lost", new[name]["reason"]
            variables.append({"name": name, "fate": fate, "reason": notes.get(name, reason)})
            if fate == "rebuilt" and entry.get("kind") != "module":  # importing again is nothing to tell
                rebuilt.append(name)
            rebuilt += [
                item["path"] for item in entry.get("rebuilt") or () if item["path"] != name and item["path"] not in new
            ]
        all_losses = self.manifest["losses"] + losses_here
        interpreter = self.manifest["interpreter"]
        return {
            "status": "ok",
            "outcome": "partial" if all_losses or self.mismatched else "restored",
            "code": None,
            "message": "",
            "variables": variables,
            "losses": all_losses,
            "rebuilt": rebuilt,
            "compared": self.compared,
            "mismatched": self.mismatched,
            "execution_count": interpreter.get("execution_count"),
            "interpreter": interpreter,
        }


def load(
    checkpoint_dir: str,
    namespace: Dict[str, Any],
    *,
    secret: bytes,
    prepare: Optional[Callable[[Dict[str, Any]], Any]] = None,
) -> Dict[str, Any]:
    """Load a checkpoint into `namespace`, in place; returns the load result (with the saved ``interpreter`` in it).

    `prepare` is called with the saved interpreter state after everything was verified and before anything is unpickled:
    search path and working directory must be right by then, because modules are imported. Never raises an Exception for
    a bad checkpoint: ``status`` is then ``failed``, ``code`` one of signature_mismatch, damaged, incomplete,
    unsupported_format, and the namespace is untouched.
    """
    began = time.monotonic()
    try:
        manifest = layout.read_signed_manifest(checkpoint_dir, secret)
        reader = checked_frames(checkpoint_dir, manifest)
        if prepare is not None:
            prepare(manifest["interpreter"])
        loader = Loader(checkpoint_dir, manifest, reader, namespace)
    except layout.LayoutError as error:
        return _failed(error.code, began)
    except (OSError, KeyError, TypeError, ValueError, IndexError):
        return _failed("damaged", began)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader.load()
        result = loader.result()
    finally:
        if collecting:
            gc.enable()
    layout.remember(checkpoint_dir)
    result["seconds"] = round(time.monotonic() - began, 3)
    result["pid"] = os.getpid()
    return result


def checked_frames(folder: str, manifest: Dict[str, Any]) -> layout.FrameReader:
    """The frames, after sizes and every hash were found as the manifest says. Raises LayoutError."""
    layout.check_sizes(folder, manifest)
    reader = layout.FrameReader(folder, manifest["frames"])
    if not all(reader.check(number) for number in range(len(manifest["frames"]))):
        raise layout.LayoutError("damaged", file=layout.FRAMES)
    return reader


_MESSAGES = {
    "signature_mismatch": "The checkpoint was changed after it was signed, so nothing was loaded; use an older one.",
    "damaged": "The checkpoint is damaged, so nothing was loaded; use an older one.",
    "incomplete": "The checkpoint is not complete, so nothing was loaded; use an older one.",
    "unsupported_format": "The checkpoint was written by a newer version of jupyter-pause; upgrade it to resume.",
}


def _failed(code: str, began: float) -> Dict[str, Any]:
    return {
        "status": "failed",
        "outcome": "fresh",
        "code": code,
        "message": _MESSAGES.get(code, "The checkpoint could not be loaded."),
        "seconds": round(time.monotonic() - began, 3),
        "variables": [],
        "losses": [],
        "rebuilt": [],
        "compared": 0,
        "mismatched": [],
        "execution_count": None,
        "pid": os.getpid(),
    }
