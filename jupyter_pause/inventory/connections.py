# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Open connections and child processes of a kernel: none of them outlives its process, so they are named before."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
from pathlib import Path
from typing import Any

import psutil

from jupyter_pause.states import InventoryItem

from .memory import ProcessFacts, rss_of, variable_items

#: Keys of a connection file that name the kernel's own ports.
_PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "loky.backend.resource_tracker")
#: IPython's own history database; the next process opens it by itself.
_IPYTHON_OWN = ("history.sqlite", "history.sqlite-journal", "history.sqlite-wal", "history.sqlite-shm")


def read_process(pid: int) -> ProcessFacts:
    """Everything about the kernel's processes that the system tells an ordinary user. Blocks, never raises."""
    facts = ProcessFacts(pid)
    try:
        process = psutil.Process(pid)
        facts.name = process.name()
    except (psutil.Error, OSError):
        return facts
    facts.rss = rss_of(process)
    facts.own_ports = _own_ports(process)
    facts.children = _children(process)
    facts.open_files = _open_files(process)
    facts.sockets = _sockets(process)
    return facts


def _own_ports(process: psutil.Process) -> frozenset[int]:
    """The ports of the kernel's connection file, which are the kernel's business and no loss."""
    try:
        names = [word.rpartition("=")[2] for word in process.cmdline() if word.endswith(".json")]
        for name in names:
            content = json.loads(Path(name).read_bytes())
            ports = [content.get(key) for key in _PORTS]
            if any(isinstance(port, int) for port in ports):
                return frozenset(port for port in ports if isinstance(port, int))
    except (psutil.Error, OSError, ValueError, AttributeError):
        pass
    return frozenset()


def _children(process: psutil.Process) -> list[dict[str, Any]]:
    found = []
    try:
        children = process.children(recursive=True)
    except (psutil.Error, OSError):
        return []
    for child in children:
        try:
            words = " ".join(child.cmdline())
            name = child.name()
        except (psutil.Error, OSError):
            words, name = "", "process"
        # The command line itself may hold secrets: only the program's name leaves this function.
        helper = any(word in words for word in _HELPERS)
        found.append({"pid": child.pid, "name": name, "rss": rss_of(child), "helper": helper})
    return found


def _open_files(process: psutil.Process) -> list[str] | None:
    try:
        paths = [entry.path for entry in process.open_files()]
    except (psutil.Error, OSError):
        return None
    return [path for path in paths if os.path.basename(path) not in _IPYTHON_OWN]


def _sockets(process: psutil.Process) -> list[dict[str, Any]] | None:
    # psutil 6 renamed `connections`.
    ask = getattr(process, "net_connections", None) or process.connections
    try:
        entries = ask(kind="all")
    except (psutil.Error, OSError):
        return None
    return [_socket(entry) for entry in entries]


def _socket(entry: Any) -> dict[str, Any]:
    inet = entry.family in (socket.AF_INET, socket.AF_INET6)
    return {
        "protocol": ("tcp" if entry.type == socket.SOCK_STREAM else "udp") if inet else "unix",
        "status": str(entry.status),
        "local": tuple(entry.laddr) if inet and entry.laddr else None,
        "remote": tuple(entry.raddr) if inet and entry.raddr else None,
    }


def connection_items(facts: ProcessFacts | None, from_kernel: list[Any] | None) -> list[InventoryItem]:
    """Connections to other programs and listening sockets, without the kernel's own.

    The kernel's list (`from_kernel`) counts where there is one; None: it has none, then what the system tells.
    """
    if from_kernel is not None:
        return variable_items(from_kernel)
    items: dict[tuple[str, str], InventoryItem] = {}
    for entry in (facts.sockets if facts is not None else None) or []:
        item = _system_item(entry, facts.own_ports if facts is not None else frozenset())
        if item is not None:
            items.setdefault((item.kind, item.name), item)
    return list(items.values())


def _system_item(entry: dict[str, Any], own_ports: frozenset[int]) -> InventoryItem | None:
    local, remote = entry["local"], entry["remote"]
    if (
        local is None
        or local[1] in own_ports
        or (remote is not None and remote[1] in own_ports and _loopback(remote[0]))
    ):
        return None
    details = {"protocol": entry["protocol"], "status": entry["status"]}
    if remote is not None:
        details["outside"] = not _loopback(remote[0])
        return _lost(f"{_address(remote)}", "connection", "outside_connection", details)
    if entry["status"] == psutil.CONN_LISTEN:
        return _lost(f"{_address(local)}", "listening socket", "listening_socket", details)
    return None


def _lost(name: str, kind: str, reason: str, details: dict[str, Any]) -> InventoryItem:
    return InventoryItem(name=name, kind=kind, fate="lost", reason=reason, details=details)


def _address(pair: Any) -> str:
    host = str(pair[0])
    return f"[{host}]:{pair[1]}" if ":" in host else f"{host}:{pair[1]}"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
