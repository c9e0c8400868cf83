# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""`python -m jupyter_pause.cli`."""

import sys

from .main import main

sys.exit(main())
