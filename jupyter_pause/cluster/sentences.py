# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The cluster's errors as one English sentence each, for logs, curl and the command line."""

from __future__ import annotations

#: code -> (HTTP status of our own REST answer, sentence), as `jupyter_pause.errors.SENTENCES`, which includes these.
CLUSTER_SENTENCES: dict[str, tuple[int, str]] = {
    "cluster_forbidden": (
        409,
        "The cluster does not allow this account to {verb} {resource}. Ask its administrator for that right.",
    ),
    "cluster_unauthorized": (503, "The cluster does not accept this account's token. It is read again by itself."),
    "cluster_not_found": (404, "The cluster has no {resource} named {name}."),
    "cluster_conflict": (409, "{resource} {name} was changed by others at the same time. Try again."),
    "cluster_expired": (503, "The list of {resource} changed while it was read. Try again."),
    "cluster_invalid": (409, "The cluster refused to {verb} {resource} {name}: {message}."),
    "cluster_unreachable": (503, "The cluster's API server could not be reached ({why}). It is tried again by itself."),
    "cluster_disconnected": (503, "Every connection to the cluster is closed while the snapshot is made."),
    "cluster_not_here": (409, "No cluster was found: neither a service account in a pod nor a kubeconfig."),
    "cluster_config_invalid": (409, "The settings for the cluster cannot be used: {message}."),
    "snapshot_not_found": (404, "This workspace has no pod snapshot of that name. GET snapshots lists them."),
    "snapshot_in_use": (409, "The next resume would use this pod snapshot. Resume first, or force the deletion."),
}
