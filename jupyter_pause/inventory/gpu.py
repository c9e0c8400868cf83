# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""GPU memory, as the driver tells it over NVML.

No GPU is an empty list. A GPU that cannot be read is an item that says unknown: never nothing, never zero. Numbers of
processes are only matched where the driver's process ids are provably ours: in the machine's first pid namespace. In a
container they are the host's, and a number that fits by chance would name a stranger.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_pause.bounded import bounded
from jupyter_pause.states import InventoryItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Seconds that the driver gets; waking a sleeping GPU takes about two.
LIMIT = 5.0
#: The inode of the pid namespace that a Linux machine boots with (PROC_PID_INIT_INO, fixed in the kernel's interface).
FIRST_PID_NAMESPACE = 0xEFFFFFFC

_NVIDIA_TRACES = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
_OTHER_VENDORS = {"/dev/kfd": "AMD"}


async def gpu_items(pids: Iterable[int], *, nvml: Any = None, limit: float = LIMIT) -> list[InventoryItem]:
    """What is on the GPUs. `pids` are the kernel's processes; `nvml` replaces the pynvml module (tests)."""
    wanted = frozenset(pids)

    def read() -> list[InventoryItem]:
        return read_nvml(nvml if nvml is not None else _import_nvml(), wanted)

    try:
        items = await bounded(read, limit, "nvml")
    except TimeoutError:
        items = [unknown("GPU", "gpu_timeout")]
    except Exception as error:  # a binding that is too old or too new: whatever it raises, the panel must not break
        items = [unknown("GPU", "gpu_unreadable", error=type(error).__name__)]
    return items + _other_vendors()


async def used_memory(*, nvml: Any = None, limit: float = LIMIT) -> dict[str, int]:
    """Bytes in use on each device that can be read, by a name that tells devices apart; all processes together."""
    items = await gpu_items((), nvml=nvml, limit=limit)
    return {_device_name(item): item.bytes for item in items if item.kind == "device" and item.bytes is not None}


def _device_name(item: InventoryItem) -> str:
    index, instance = item.details.get("index"), item.details.get("instance")
    return f"GPU {index}{'' if instance is None else f' MIG {instance}'} ({item.name})"


def _import_nvml() -> Any:
    """The pynvml module, or None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def unknown(name: str, reason: str, **details: Any) -> InventoryItem:
    """A GPU of which nothing can be said."""
    return InventoryItem(name=name, kind="device", complete=False, fate="unknown", reason=reason, details=details)


def read_nvml(nvml: Any, pids: frozenset[int] = frozenset()) -> list[InventoryItem]:
    """Devices, MIG instances and, where they can be matched, the kernel's processes. Blocks."""
    if nvml is None:
        return [unknown("GPU", "gpu_unreadable", error="no NVML binding")] if _nvidia_here() else []
    try:
        nvml.nvmlInit()
    except Exception as error:
        return _no_driver(nvml, error)
    try:
        count = int(nvml.nvmlDeviceGetCount())
        items: list[InventoryItem] = []
        for index in range(count):
            items += _device_items(nvml, index, pids)
        return items
    except Exception as error:
        return [unknown("GPU", _reason(nvml, error))]
    finally:
        _quietly(nvml.nvmlShutdown)


def _no_driver(nvml: Any, error: Exception) -> list[InventoryItem]:
    """Init failed. Without a driver there is no usable NVIDIA GPU, unless the system shows traces of one."""
    absent = {getattr(nvml, name, None) for name in ("NVML_ERROR_LIBRARY_NOT_FOUND", "NVML_ERROR_DRIVER_NOT_LOADED")}
    if _code(error) in absent - {None} and not _nvidia_here():
        return []
    return [unknown("GPU", _reason(nvml, error))]


def _nvidia_here() -> bool:
    return any(os.path.exists(path) for path in _NVIDIA_TRACES)


def _other_vendors() -> list[InventoryItem]:
    return [
        unknown(f"{vendor} GPU", "gpu_other_vendor") for path, vendor in _OTHER_VENDORS.items() if os.path.exists(path)
    ]


def _device_items(nvml: Any, index: int, pids: frozenset[int]) -> list[InventoryItem]:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except Exception as error:
        return [unknown(f"GPU {index}", _reason(nvml, error), index=index)]
    instances = _mig_instances(nvml, handle, index)
    devices = instances if instances is not None else [(handle, f"GPU {index}", {"index": index})]
    items = []
    for device, fallback, details in devices:
        items.append(_memory_item(nvml, device, fallback, details))
        items += _process_items(nvml, device, details, pids)
    if not devices:
        items.append(unknown(f"GPU {index}", "gpu_unreadable", index=index, mig=True))
    return items


def _mig_instances(nvml: Any, handle: Any, index: int) -> list[tuple[Any, str, dict[str, Any]]] | None:
    """The instances of a card in MIG mode that we can see; None when it is not in that mode."""
    mode = _ask(nvml.nvmlDeviceGetMigMode, handle)
    if mode is None or not mode[0]:
        return None
    found = []
    for number in range(int(_ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0)):
        instance = _ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if instance is not None:
            found.append((instance, f"GPU {index} MIG {number}", {"index": index, "mig": True, "instance": number}))
    return found


def _memory_item(nvml: Any, handle: Any, fallback: str, details: dict[str, Any]) -> InventoryItem:
    name = _text(_ask(nvml.nvmlDeviceGetName, handle)) or fallback
    identity = _text(_ask(nvml.nvmlDeviceGetUUID, handle))
    details = details | ({"uuid": identity} if identity else {})
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        used, total = _number(memory.used), _number(memory.total)
    except Exception as error:
        return unknown(name, _reason(nvml, error), **details)
    if used is None:
        return unknown(name, "gpu_not_supported", **details)
    return InventoryItem(
        name=name, kind="device", bytes=used, fate="unknown", reason="device_total", details=details | {"total": total}
    )


def _process_items(nvml: Any, handle: Any, details: dict[str, Any], pids: frozenset[int]) -> list[InventoryItem]:
    if not pids or not driver_pids_are_ours():
        return []
    used: dict[int, int | None] = {}
    for ask in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        for process in _ask(ask, handle) or []:
            if process.pid in pids:
                used[process.pid] = _number(getattr(process, "usedGpuMemory", None))
    return [
        InventoryItem(
            name=f"process {pid}",
            kind="device process",
            bytes=size,
            complete=size is not None,
            fate="unknown",
            reason="device_process" if size is not None else "gpu_not_supported",
            details={**details, "pid": pid},
        )
        for pid, size in sorted(used.items())
    ]


def driver_pids_are_ours(namespace: Path = Path("/proc/self/ns/pid")) -> bool:
    """Are the driver's process ids those that we see? True only where that is certain."""
    if sys.platform == "win32":
        return True
    try:
        return namespace.stat().st_ino == FIRST_PID_NAMESPACE
    except OSError:
        return False


def _ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None when the driver has none."""
    try:
        return question(*arguments)
    except Exception:
        return None


def _quietly(call: Callable[[], Any]) -> None:
    _ask(call)


def _number(value: Any) -> int | None:
    """A size in bytes; None for words ("N/A") and for NVML's "not available" value (all bits set)."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value == 0xFFFFFFFFFFFFFFFF:
        return None
    return value


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, str) and value else None


def _code(error: Exception) -> Any:
    return getattr(error, "value", None)


def _reason(nvml: Any, error: Exception) -> str:
    code = _code(error)
    if code is not None and code == getattr(nvml, "NVML_ERROR_NO_PERMISSION", None):
        return "gpu_no_permission"
    if code is not None and code == getattr(nvml, "NVML_ERROR_NOT_SUPPORTED", None):
        return "gpu_not_supported"
    return "gpu_unreadable"
