# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Process snapshots on one machine: the whole kernel process, exactly, by CRIU. See docs/developers/snapshots.md."""
