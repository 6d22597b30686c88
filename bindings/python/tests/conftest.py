"""What the tests share: servers of both kinds, and both faces."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from faces import FACES, Face
from servers import KINDS, FaultProxy, Server


@pytest.fixture(scope="session")
def _servers() -> Iterator[dict[str, Server]]:
    with ExitStack() as stack:
        yield {kind: stack.enter_context(Server(kind)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, _servers: dict[str, Server]) -> Server:
    """Return an empty server of each kind."""
    server = _servers[request.param]
    server.plain.flushall()
    return server


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultProxy]:
    """Return a fault proxy in front of an empty server of each kind."""
    with FaultProxy(server.port) as proxy:
        yield proxy


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """Return each face."""
    with Face(request.param) as face:
        yield face
