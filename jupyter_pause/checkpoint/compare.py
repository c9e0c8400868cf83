# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What differs between the environment that a checkpoint was made in and the one it would be loaded in.

The kernel's own interpreter is asked, in a process of its own, without importing any package: only versions of packages
that the checkpoint refers to count, and the files of modules that are the person's own.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from jupyter_pause.kernel.local_modules import digest_of

if TYPE_CHECKING:
    from .store import CheckpointManifest

#: Seconds after which an interpreter that does not answer counts as unknown.
ANSWER_TIMEOUT = 30.0

#: Runs under the kernel's Python (3.9 or later): reads import names, writes ``{"python": ..., "packages": {...}}``.
_SCRIPT = """
import json, os, sys
import importlib.util
from importlib import metadata
names = json.load(sys.stdin)
sys.path[:] = [p for p in sys.path if p not in ("", os.getcwd())]
owners = None
found = {}
for name in names:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        spec = None
    if spec is None:
        found[name] = []
        continue
    versions = []
    try:
        versions.append(metadata.version(name))
    except Exception:
        pass
    if not versions:
        try:
            owners = owners or metadata.packages_distributions()
            versions += [metadata.version(owner) for owner in owners.get(name, ())]
        except Exception:
            pass
    if not versions:
        try:
            versions.append(str(__import__(name).__version__))
        except Exception:
            versions.append("")
    found[name] = versions
implementation = sys.implementation.name
json.dump({"python": "%d.%d" % sys.version_info[:2], "implementation": implementation, "packages": found}, sys.stdout)
"""


def differences(manifest: CheckpointManifest, current: dict[str, Any]) -> list[dict[str, str | None]]:
    """What differs, as ``{"name", "saved", "current"}``; `current` is None for a package that is not installed.

    `current` has ``python`` ("3.11"), ``implementation`` and ``packages`` (import name -> versions it may go by).
    """
    found: list[dict[str, str | None]] = []
    saved = ".".join(manifest.python.get("version", "").split(".")[:2])
    if saved and saved != current.get("python"):
        found.append({"name": "python", "saved": saved, "current": str(current.get("python") or "")})
    implementation = manifest.python.get("implementation")
    if implementation and implementation != current.get("implementation"):
        found.append({"name": "implementation", "saved": implementation, "current": current.get("implementation")})
    packages: dict[str, list[str]] = current.get("packages") or {}
    for name, version in sorted(manifest.packages.items()):
        have = packages.get(name) or []
        if version not in have and have != [""]:
            found.append({"name": name, "saved": version, "current": have[0] if have else None})
    return found


def changed_modules(manifest: CheckpointManifest) -> list[dict[str, str | None]]:
    """The person's own modules whose files are not what they were; `current` is None for one that is gone. Blocks.

    `saved` and `current` are the beginnings of SHA-256 digests: a module has no version.
    """
    found: list[dict[str, str | None]] = []
    for module in manifest.modules:
        current = digest_of(module.get("path", ""))
        if current != module.get("sha256"):
            row = {"name": module.get("name", ""), "saved": _short(module.get("sha256"))}
            found.append({**row, "current": _short(current) if current else None})
    return found


def _short(digest: str | None) -> str:
    return f"sha256:{(digest or '')[:12]}"


async def differences_with_interpreter(manifest: CheckpointManifest, argv: list[str]) -> list[dict[str, str | None]]:
    """The same against the interpreter that `argv` (``[python, options]``) starts.

    One that cannot be asked gives a single difference named ``python`` with ``current`` None.
    """
    unknown: list[dict[str, str | None]] = [
        {"name": "python", "saved": manifest.python.get("version", ""), "current": None}
    ]
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            "-c",
            _SCRIPT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return unknown
    question = json.dumps(sorted(manifest.packages)).encode()
    try:
        output, _ = await asyncio.wait_for(process.communicate(question), ANSWER_TIMEOUT)
        current = json.loads(output)
    except (TimeoutError, ValueError):
        return unknown
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not isinstance(current, dict):
        return unknown
    return differences(manifest, current) + await asyncio.to_thread(changed_modules, manifest)
