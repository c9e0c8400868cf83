# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""What a cluster has besides its API server, played on one machine: see README.md in this folder."""
