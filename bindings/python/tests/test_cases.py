"""The conformance cases, in both faces, on `memory://` and on both servers."""

from datetime import timedelta
from typing import Any

import pytest

import conformance
from conformance import BAD_CASES, CASES, CaseFailedError, CaseRefusedError, Json, Left
from faces import Face
from servers import Server

INDEX = conformance.read_index()
BY_FILE = {entry["file"]: conformance.read_cases((CASES / entry["file"]).read_text()) for entry in INDEX["files"]}
NAMED = {f"{file}: {case['name']}": case for file, cases in BY_FILE.items() for case in cases}
ON_SERVERS = {name: case for name, case in NAMED.items() if case.get("only") != "memory"}


class MemoryPlace:
    """The server in memory behind a client."""

    def __init__(self, client: Any) -> None:
        self._memory = client.memory

    def plant(self, plant: Json) -> None:
        key = conformance.text_of(plant["key"])
        ttl = None if plant["ttl_ms"] is None else conformance.millis(plant["ttl_ms"])
        if "type" in plant:
            self._memory.put_other_type(key, ttl)
        else:
            self._memory.put(key, conformance.text_of(plant["value"]), ttl)

    def remove(self, key: bytes) -> None:
        self._memory.remove(key)

    def advance(self, millis: int) -> None:
        self._memory.advance(conformance.millis(millis))

    def lose_next_reply(self) -> None:
        self._memory.lose_next_reply()

    def left(self) -> dict[bytes, Left]:
        millisecond = timedelta(milliseconds=1)
        return {
            each.key: Left(each.value, None if each.ttl is None else each.ttl // millisecond)
            for each in self._memory.keys()
        }


class ServerPlace:
    """A real server, looked at with an ordinary client."""

    def __init__(self, server: Server) -> None:
        self._plain = server.plain

    def plant(self, plant: Json) -> None:
        key = conformance.text_of(plant["key"])
        if "type" in plant:
            self._plain.delete(key)
            self._plain.rpush(key, "x")
        else:
            self._plain.set(key, conformance.text_of(plant["value"]))
        if plant["ttl_ms"] is not None:
            self._plain.pexpire(key, plant["ttl_ms"])

    def remove(self, key: bytes) -> None:
        self._plain.delete(key)

    def advance(self, millis: int) -> None:
        conformance.sleep_millis(millis)

    def lose_next_reply(self) -> None:
        pytest.fail("a case that loses replies is one of memory only: it has to say so")

    def left(self) -> dict[bytes, Left]:
        found = {}
        for key in self._plain.scan_iter():
            is_text = self._plain.type(key) == b"string"
            ttl_ms = self._plain.pttl(key)
            found[key] = Left(self._plain.get(key) if is_text else None, None if ttl_ms == -1 else ttl_ms)
        return found


@pytest.mark.parametrize("case", NAMED.values(), ids=NAMED.keys())
def test_case_on_memory(case: Json, face: Face) -> None:
    client = face.connect("memory://")
    conformance.run(case, client, MemoryPlace(client))


@pytest.mark.parametrize("case", ON_SERVERS.values(), ids=ON_SERVERS.keys())
def test_case_on_a_server(case: Json, face: Face, server: Server) -> None:
    conformance.run(case, face.connect(server.url), ServerPlace(server))


def test_all_cases_of_the_index_are_here() -> None:
    assert {entry["file"]: entry["cases"] for entry in INDEX["files"]} == {
        file: len(cases) for file, cases in BY_FILE.items()
    }
    needed = {need for cases in BY_FILE.values() for case in cases for need in case.get("needs", ())}
    assert needed <= conformance.NEEDS


@pytest.mark.parametrize("bad", INDEX["bad"], ids=lambda bad: bad["file"])
def test_bad_cases_are_not_let_through(bad: Json) -> None:
    text = (BAD_CASES / bad["file"]).read_text()
    if bad["must"] == "be refused":
        with pytest.raises(CaseRefusedError):
            conformance.read_cases(text)
        return
    (case,) = conformance.read_cases(text)
    with Face("blocking") as face:
        client = face.connect("memory://")
        with pytest.raises(CaseFailedError):
            conformance.run(case, client, MemoryPlace(client))
