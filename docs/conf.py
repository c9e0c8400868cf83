# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""Sphinx configuration."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "jupyter-pause"
author = "jupyter-pause contributors"
project_copyright = author
release = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["version"]
version = release

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# Python-to-be-read blocks hold `%pause`, which is no Python.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = project
html_theme_options = {"show_toc_level": 2}
html_show_sourcelink = False
exclude_patterns = ["_build"]
