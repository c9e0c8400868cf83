# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Loads a checkpoint only to say what of it would not come back as it was, before the process that made it ends.

It is the loader of a resume with two differences: what a variable's own code asks for outside of the process is
refused, and then that variable counts as not checked, never as lost; and parts of the kernel itself are stood in for.
"""

from __future__ import annotations

import gc
import warnings
from typing import Any, Callable, Dict

from . import context, layout, losses, revive

#: A loss with such a text says that a device was wanted, which the trying process has not.
_DEVICES = ("cuda", "gpu", "nvidia", "rocm")
_NO_DEVICE = "it wants a GPU, which is not used to try a checkpoint out"
_MISMATCHED = "it comes back different from what it was"


class _Live:
    """Stands for IPython's shell and its parts, which only a kernel has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self


_Live.__module__ = "IPython"


class TrialLoader(revive.Loader):
    """The loader, which notes what each variable asked for while it was loaded."""

    def __init__(self, *args: Any, confinement: Any, tell: Callable[[str], None]) -> None:
        super().__init__(*args)
        self.context.describing = True
        live = _Live()
        self.context.namespace["get_ipython"] = lambda: live
        self._confinement = confinement
        self._tell = tell
        #: Variable -> what it asked for.
        self.asked: Dict[str, str] = {}

    def _variable(self, entry: Dict[str, Any]) -> None:
        self._tell(entry["name"])
        self._confinement.forget()
        before = len(self.context.losses)
        super()._variable(entry)
        if self._confinement.asked:
            self.asked[entry["name"]] = self._confinement.asked[0]
        if any("MemoryError" in str(loss["reason"]) for loss in self.context.losses[before:]):
            raise MemoryError

    def _compare(self, entry: Dict[str, Any]) -> None:
        live = entry["type"].startswith(("IPython.", "ipykernel."))
        if not live and type(self.context.namespace.get(entry["name"])) not in (_Live, context.Described):
            super()._compare(entry)

    def found(self) -> Dict[str, Any]:
        """What is lost and what could not be checked, as lists of losses."""
        mismatched = [
            {"name": name, "path": name, "type": self._type(name), "reason": _MISMATCHED, "cell": None}
            for name in self.mismatched
        ]
        told = {loss["name"] for loss in self._new_losses()}
        lost, unchecked = [], []
        for loss in self._new_losses() + [loss for loss in mismatched if loss["name"] not in told]:
            reason = str(loss["reason"])
            if loss["name"] in self.asked:
                asked = self.asked[loss["name"]]
                unchecked.append(dict(loss, reason="loading it %s, which is not done to try a checkpoint out" % asked))
            elif any(word in reason.lower() for word in _DEVICES):
                unchecked.append(dict(loss, reason=_NO_DEVICE))
            else:
                lost.append(dict(loss))
        inputs = self.context.namespace.get("In")
        losses.add_cells(lost + unchecked, inputs if isinstance(inputs, list) else [])
        return {"losses": lost, "unchecked": unchecked}

    def _type(self, name: str) -> str:
        return next((str(entry["type"]) for entry in self.manifest["variables"] if entry["name"] == name), "")


def try_out(
    folder: str, manifest: Dict[str, Any], namespace: Dict[str, Any], confinement: Any, tell: Callable[[str], None]
) -> Dict[str, Any]:
    """Load into `namespace` and compare; `tell` is called with the name of each variable before it is loaded.

    Returns ``{"status": "ok", "losses", "unchecked", "compared", "objects", "unseen"}`` (variables and objects that
    were compared, objects that were too many), or ``failed`` with a code. Raises MemoryError.
    """
    try:
        reader = revive.checked_frames(folder, manifest)
        loader = TrialLoader(folder, manifest, reader, namespace, confinement=confinement, tell=tell)
    except layout.LayoutError as error:
        return {"status": "failed", "code": error.code, "detail": ""}
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader.load()
    notes = manifest.get("notes") or {}
    numbers: Dict[str, Any] = {
        "compared": loader.compared,
        "objects": int(notes.get("objects") or 0),
        "unseen": int(notes.get("unseen") or 0),
    }
    return {"status": "ok", **loader.found(), **numbers}
