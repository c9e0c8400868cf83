# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Kubeflow's idle rule: the probe of Jupyter Server's `/api/status` and the rules of the WorkspaceKind.

facts/cluster.md section 2, "Idle rule", and the public source workspace_activity.go: only a Running Workspace is
probed; one is paused only right after a probe that succeeded; activity from before it began to run counts as of then.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import httpx

from tests.cluster.rest import Object

from .api import milliseconds

PROBE_LIMIT = 10.0


@dataclass(frozen=True)
class Verdict:
    """What one look at the activity gave."""

    activity: Object
    pause: bool
    #: Seconds until the next probe.
    again: float


async def look(workspace: Object, kind: Object, pod: Object, address: str, labels: Object) -> Verdict | None:
    """Probe where a probe is due, and apply the rules.

    Args:
        address: URL of the server's base path.
        labels: `namespace` and `podConfig`: the labels that rules match.

    Returns:
        None when the kind has no probe.
    """
    probe = kind["spec"]["podTemplate"].get("activityProbe")
    if probe is None or "jupyter" not in probe:
        return None
    status = workspace.get("status", {})
    activity: Object = {"lastActivity": 0, "lastUpdate": 0, **status.get("activity", {})}
    remaining = _remaining(activity, probe)
    fresh = False
    if remaining <= 0:
        activity, fresh = _after_probe(activity, await _ask(address), status.get("lastRunningTime", 0))
        remaining = float(probe["probeIntervalSeconds" if fresh else "minProbeIntervalSeconds"])
    rule = _matching(kind["spec"].get("activityRules", []), labels)
    if rule is None or not rule["effect"]["pauseWorkspace"]:
        activity.pop("rules", None)
        return Verdict(activity, False, remaining)
    eligible_after = _eligible_after(activity, status.get("lastRunningTime", 0), rule["config"])
    activity["rules"] = {"pauseWorkspace": {"eligibleAfter": eligible_after}}
    return Verdict(activity, fresh and 0 < eligible_after <= milliseconds(), remaining)


def _remaining(activity: Object, probe: Object) -> float:
    last = activity.get("lastProbe")
    if last is None:
        return 0.0
    interval = probe["probeIntervalSeconds" if last["result"] == "Success" else "minProbeIntervalSeconds"]
    elapsed = milliseconds() - int(last["startTimeMs"])
    return float(interval) - elapsed / 1000


async def _ask(address: str) -> Object:
    """One probe, as `lastProbe` has it, with `lastActivity` where it succeeded."""
    begun = milliseconds()
    made: Object = {"startTimeMs": begun, "result": "Failure", "message": ""}
    try:
        async with httpx.AsyncClient(timeout=PROBE_LIMIT, trust_env=False) as http:
            answer = await http.get(f"{address}api/status", headers={"Connection": "close"})
        answer.raise_for_status()
        text = answer.json()["last_activity"].replace("Z", "+00:00")
        at = dt.datetime.fromisoformat(text)
        made |= {"result": "Success", "lastActivity": int(at.timestamp() * 1000)}
    except httpx.TimeoutException:
        made |= {"result": "Timeout", "message": "Jupyter probe timed out"}
    except (httpx.HTTPError, ValueError, KeyError) as error:
        made["message"] = f"Jupyter probe failed: {type(error).__name__}"
    return {**made, "endTimeMs": milliseconds()}


def _after_probe(activity: Object, result: Object, running_since: int) -> tuple[Object, bool]:
    last = result.pop("lastActivity", None)
    changed = {**activity, "lastProbe": result}
    if last is not None:
        changed |= {"lastActivity": max(last, running_since), "lastUpdate": result["endTimeMs"]}
    return changed, last is not None


def _eligible_after(activity: Object, running_since: int, config: Object) -> int:
    if not activity["lastActivity"]:
        return 0
    idle_until = activity["lastActivity"] + config["secondsSinceActive"] * 1000
    return int(max(idle_until, running_since + config.get("minRunningSeconds", 0) * 1000))


def _matching(rules: list[Object], labels: Object) -> Object | None:
    return next((rule for rule in rules if _matches(rule.get("match", {}), labels)), None)


def _matches(match: Object, labels: Object) -> bool:
    selectors = {"matchNamespace": "namespace", "matchPodConfig": "podConfig"}
    return all(_selects(match[name]["selector"], labels[of]) for name, of in selectors.items() if name in match)


def _selects(selector: Object, labels: dict[str, str]) -> bool:
    exact = all(labels.get(name) == value for name, value in selector.get("matchLabels", {}).items())
    return exact and all(_holds(expression, labels) for expression in selector.get("matchExpressions", []))


def _holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    there, value = expression["key"] in labels, labels.get(expression["key"])
    return {
        "In": value in expression.get("values", []),
        "NotIn": value not in expression.get("values", []),
        "Exists": there,
        "DoesNotExist": not there,
    }[expression["operator"]]
