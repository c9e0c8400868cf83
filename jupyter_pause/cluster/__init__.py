# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The one Kubernetes client.

Nothing outside this package imports `kubernetes`. Here only `transport` and `kubeconfig` do, and they are imported when
a cluster is there: a server on a laptop never pays for it. Nothing is re-exported for the same reason.
"""
