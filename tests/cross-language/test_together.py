"""All languages at one server: a lock taken in one is refused in the others, and what one adds another drains."""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
import redis

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LANGUAGES = ("rust", "python", "java", "node")
LOCK = "invoice:42"
COUNTER = "session:42:billableSecondsPending"


def command(language: str) -> list[str | Path]:
    if language == "rust":
        return [ROOT / "target" / "debug" / "examples" / "cross-language-agent"]
    if language == "python":
        return [sys.executable, HERE / "agent.py"]
    if language == "node":
        return ["node", HERE / "agent.mjs"]
    classes = [ROOT / "bindings/kotlin/target/classes", ROOT / "bindings/kotlin/target/native"]
    jars = sorted((ROOT / "bindings/kotlin/target/dependency").glob("*.jar"))
    assert jars, "the jars that tallylock needs are not there: run `make setup`"
    return ["java", "-cp", os.pathsep.join(map(str, [*classes, *jars])), HERE / "Agent.java"]


class Agent:
    """A program in one of the languages that does what it is told."""

    def __init__(self, language: str, url: str) -> None:
        self.language = language
        self._process = subprocess.Popen(
            [*command(language), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *words: object) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer, f"the agent in {self.language} ended with {self._process.wait()}"
        return answer

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def server() -> redis.Redis:
    return redis.Redis.from_url(os.environ["TALLYLOCK_REDIS_URL"])


@pytest.fixture(scope="module")
def agents() -> Iterator[dict[str, Agent]]:
    agents = {language: Agent(language, os.environ["TALLYLOCK_REDIS_URL"]) for language in LANGUAGES}
    yield agents
    for agent in agents.values():
        agent.close()


@pytest.fixture(autouse=True)
def _no_keys(server: redis.Redis) -> Iterator[None]:
    """Only the keys of these tests are removed: the server may be one that somebody uses."""
    yield
    server.delete(LOCK, COUNTER)


def test_a_lock_taken_in_one_language_is_refused_in_the_others(agents: dict[str, Agent]) -> None:
    last = 0
    for language, holder in agents.items():
        fence = int(holder("acquire", LOCK))
        assert fence > last, f"the fence of {language} follows that of the language before"
        last = fence
        for other in agents.values():
            assert other("acquire", LOCK) == "error busy", f"{other.language} while {language} holds it"
        assert holder("release", LOCK) == "0"


def test_other_libraries_locks_exclude_every_language(agents: dict[str, Agent], server: redis.Redis) -> None:
    theirs = server.lock(LOCK, timeout=30)
    assert theirs.acquire(blocking=False)
    assert [agent("acquire", LOCK) for agent in agents.values()] == ["error busy"] * len(LANGUAGES)
    theirs.release()
    assert server.set(LOCK, "theirs", nx=True, px=30_000)
    assert [agent("acquire", LOCK) for agent in agents.values()] == ["error busy"] * len(LANGUAGES)
    server.delete(LOCK)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_excludes_other_libraries_locks(
    language: str, agents: dict[str, Agent], server: redis.Redis
) -> None:
    agents[language]("acquire", LOCK)
    assert not server.lock(LOCK, timeout=30).acquire(blocking=False)
    assert server.set(LOCK, "theirs", nx=True, px=30_000) is None
    agents[language]("release", LOCK)
    theirs = server.lock(LOCK, timeout=30)
    assert theirs.acquire(blocking=False)
    theirs.release()


@pytest.mark.parametrize(("adder", "biller"), list(permutations(LANGUAGES, 2)))
def test_what_one_language_adds_another_drains(
    adder: str, biller: str, agents: dict[str, Agent], server: redis.Redis
) -> None:
    most = 2**63 - 1
    assert agents[adder]("add", COUNTER, most - 1) == str(most - 1)
    assert agents[biller]("add", COUNTER, 1) == str(most)
    assert agents[adder]("add", COUNTER, 1) == "error overflow"
    assert agents[biller]("drain", COUNTER) == str(most)
    assert 0 < server.pttl(COUNTER) <= 900_000
    assert agents[adder]("add", COUNTER, -most - 1) == str(-most - 1)
    assert agents[biller]("finish", COUNTER) == str(-most - 1)
    assert agents[adder]("drain", COUNTER) == "none"
