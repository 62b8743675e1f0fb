"""The Kubernetes API for tests, from the package itself: no download, no container, no port to choose.

import pintle_server

server = pintle_server.start()
with server.workspace() as workspace:
    workspace.apply("config/crd")
    client = workspace.kubernetes()
"""

from .errors import PintleError, ResponseError
from .server import Server, start
from .trials import Plan, Trial, plan, trial
from .workspace import Workspace

__all__ = ["Plan", "PintleError", "ResponseError", "Server", "Trial", "Workspace", "plan", "start", "trial"]
