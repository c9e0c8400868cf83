# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
