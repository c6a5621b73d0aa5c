"""Runs a real JupyterHub on free ports of this machine; its main entry point is `HubServer`."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.jupyter import JUPYTERLAB, TOKEN, Server, free_port

__all__ = ["HUB_PACKAGES", "USER", "HubServer"]

HUB_PACKAGES = ("jupyterhub", "jupyterlab", "jupyter-server-proxy", "ipykernel")
"""The packages that an environment needs. The hub's own proxy is for Node, and is installed by npm."""

USER = "ada"
_PROXY = "configurable-http-proxy@5"
_PATIENCE = 120


class HubServer(Server):
    """The Jupyter server of the user `USER` in a JupyterHub. The hub starts it when the user logs in."""

    def __init__(self, home: Path, python: Path) -> None:
        application = JUPYTERLAB._replace(python=str(python), needs_config=True)
        super().__init__(home, {"ServerApp.base_url": f"/user/{USER}/"}, application)
        self._origin = f"http://127.0.0.1:{self._port}"

    def set_up(self) -> None:
        """Installs the hub's proxy and writes the hub's configuration."""
        super().set_up()
        npm = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        subprocess.run([*npm, "--prefix", str(self._home), _PROXY], check=True)
        config = {
            "JupyterHub": {
                "bind_url": self._origin,
                "hub_port": free_port(),
                "db_url": f"sqlite:///{self._home / 'hub.sqlite'}",
                "cookie_secret_file": str(self._home / "cookie_secret"),
                "authenticator_class": "dummy",
                "spawner_class": "simple",
                "services": [{"name": "tests", "api_token": TOKEN}],
                "load_roles": [{"name": "tests", "scopes": ["access:servers"], "services": ["tests"]}],
            },
            "ConfigurableHTTPProxy": {
                "api_url": f"http://127.0.0.1:{free_port()}",
                "command": [str(self._home / "node_modules" / ".bin" / "configurable-http-proxy")],
            },
            "Authenticator": {"allowed_users": [USER]},
            "SimpleLocalProcessSpawner": {
                "home_dir_template": str(self._home / "{username}"),
                "notebook_dir": str(self.folder),
                "cmd": [str(self.programs / "jupyterhub-singleuser")],
                "args": ["--allow-root", *(f"--{name}={value}" for name, value in JUPYTERLAB.settings.items())],
                "environment": {name: self.environment[name] for name in self.environment if "JUPYTER" in name},
                "start_timeout": _PATIENCE,
                "http_timeout": _PATIENCE,
            },
        }
        (self._home / "hub.json").write_text(json.dumps(config))

    def _command(self) -> list[str]:
        return [str(self.programs / "jupyterhub"), f"--config={self._home / 'hub.json'}"]

    def _ask_whether_it_runs(self) -> None:
        urllib.request.urlopen(f"{self._origin}/hub/api/", timeout=5).close()

    def log_in(self, page: Page, origin: str = "") -> None:
        """Logs in as `USER` at the hub's page, and waits until JupyterLab is there."""
        page.goto(f"{origin or self._origin}/hub/login")
        page.get_by_label("Username:").fill(USER)
        page.get_by_label("Password:").fill("any")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"**/user/{USER}/lab*", timeout=_PATIENCE * 1000)

    def page(self, name: str) -> str:
        """Returns the address that opens only this notebook, in a browser in which `USER` has logged in."""
        return super().page(name).partition("?")[0]
