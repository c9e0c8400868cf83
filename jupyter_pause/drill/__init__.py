# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The drill: pause and resume a throw-away notebook for real, and prove that it is the same one.

`jupyter pause drill` starts its own server in its own folder, builds state that lives only in the kernel's process,
ends that process, brings it back, and compares. It knows a restored kernel from a fresh one: the same comparison is
made with a fresh kernel first, and must fail there.
"""
