"""What the conformance suite needs to know of this backend; nothing else imports this module.

REPLACE: with a server, describe it here, and name it in the targets of plugin.py::

    SERVER = ServerSpec(
        # also of ENTREPOT_SHELF_URL, ENTREPOT_SHELF_IMAGE and --require
        name="shelf",
        image="shelf/shelf:1",
        port=7000,  # within the container
        url="shelf://:password@{host}:{port}",
        environment=(("SHELF_PASSWORD", "password"),),
        ready="entrepot_shelf.conformance:ready",
    )

    def ready(url: str) -> None:  # raises until the server answers
        ...
"""

from __future__ import annotations

from importlib.metadata import version


def versions(url: str) -> dict[str, str]:
    """Return the versions of engine and driver, for the report; `url` is the server's."""
    return {"Shelf": version("entrepot-shelf")}
