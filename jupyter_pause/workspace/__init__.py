# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Pausing the whole pod through its owner: the promise, the release, the thaw, the proof. Used only in a cluster."""
