# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Objects of libraries whose own pickling fails, lies or gives something dead."""

from __future__ import annotations
