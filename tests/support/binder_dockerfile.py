"""Prints how repo2docker, Binder's builder, reads the repository in the current folder: as JSON, without Docker.

Runs in an environment with repo2docker.
"""

from __future__ import annotations

import json

from repo2docker.app import Repo2Docker  # type: ignore[import-not-found]  # installed in the environment of its test


def main() -> None:
    """Chooses the build pack as repo2docker does, and renders its Dockerfile."""
    app = Repo2Docker(platform="linux/amd64")
    for kind in app.buildpacks:
        pack = kind(app.base_image)
        if pack.detect():
            break
    pack.platform = app.platform
    print(json.dumps({"pack": type(pack).__name__, "python": pack.python_version, "dockerfile": pack.render({})}))


if __name__ == "__main__":
    main()
