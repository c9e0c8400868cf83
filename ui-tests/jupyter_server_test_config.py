# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The server that a browser test drives: a normal one, with token, XSRF check and a base URL, in folders of its own.

Galata's in-page helpers are added; nothing else is switched off.
"""

import json
import os
from pathlib import Path

import jupyterlab.galata

c = get_config()  # noqa: F821  (Jupyter puts it here)

work = Path(os.environ["JUPYTER_PAUSE_UI_WORK"])

c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = int(os.environ["JUPYTER_PAUSE_UI_PORT"])
c.ServerApp.port_retries = 0
c.ServerApp.base_url = os.environ["JUPYTER_PAUSE_UI_BASE_URL"]
c.ServerApp.open_browser = False
c.ServerApp.root_dir = str(work / "notebooks")
# CI runs as root; without this the server refuses to start there.
c.ServerApp.allow_root = True
c.IdentityProvider.token = os.environ["JUPYTER_PAUSE_UI_TOKEN"]

c.LabApp.expose_app_in_browser = True
c.LabApp.workspaces_dir = str(work / "workspaces")
c.LabApp.user_settings_dir = str(work / "settings")
c.LabServerApp.extra_labextensions_path = str(Path(jupyterlab.galata.__file__).parent)
c.JupyterNotebookApp.expose_app_in_browser = True

for section, values in json.loads(os.environ.get("JUPYTER_PAUSE_UI_CONFIG", "{}")).items():
    c[section].update(values)
