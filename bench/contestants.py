"""Who runs, beside whom, and what is to be reached."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "bench"
RELEASE = ROOT / "target" / "release"
PYTHON = ROOT / ".cache" / "bench-venv" / "bin" / "python"
JARS = ROOT / "target" / "bench-kotlin"


class Work(Enum):
    """What one call of a contestant does."""

    ADD = "add 1 to a counter and set its TTL"
    LOCK = "acquire a free lock and release it"
    BATCH = "add 1 ten thousand times, to a hundred counters, in one round trip"
    HAND_OVER = "release a lock that another client waits for, 5 ms away from the server, until that one has it"


ADDS_OF_A_BATCH = 10_000
COUNTERS_OF_A_BATCH = 100


@dataclass(frozen=True)
class Contestant:
    """A program that runs blocks of calls (see blocks.py), started as `command URL KEY`."""

    name: str
    work: Work
    command: tuple[str, ...]
    # The name of the other library's program that does the same work in the same language.
    peer: str | None = None
    most_of_floor: float | None = None
    most_of_peer: float | None = None


def _kotlin(name: str) -> tuple[str, ...]:
    return ("java", "-cp", f"{JARS}/classes:{JARS}/dependency/*", "bench.MainKt", name)


def _python(program: str, work: str) -> tuple[str, ...]:
    return (str(PYTHON), str(BENCH / "python" / program), work)


def _node(program: str, work: str) -> tuple[str, ...]:
    return ("node", str(BENCH / "node" / program), work)


FLOOR = Contestant("floor: Rust over std::net", Work.ADD, (str(RELEASE / "floor"),))
BATCH_FLOOR = Contestant("floor of a batch", Work.BATCH, (str(RELEASE / "floor_batch"),))
ROUND_TRIP = Contestant("round trip of 5 ms", Work.HAND_OVER, (str(RELEASE / "hand_over"), "round-trip"))
FLOORS = {Work.ADD: FLOOR, Work.BATCH: BATCH_FLOOR, Work.HAND_OVER: ROUND_TRIP}

CONTESTANTS = (
    FLOOR,
    Contestant("Rust blocking add", Work.ADD, (str(RELEASE / "tallylock_rust"),), most_of_floor=1.10),
    Contestant(
        "Python blocking add",
        Work.ADD,
        _python("tallylock_python.py", "add"),
        peer="redis-py evalsha",
        most_of_floor=1.45,
        most_of_peer=0.75,
    ),
    Contestant("redis-py evalsha", Work.ADD, _python("redis_py.py", "add")),
    Contestant(
        "Python acquire+release",
        Work.LOCK,
        _python("tallylock_python.py", "lock"),
        peer="redis-py Lock",
        most_of_peer=0.60,
    ),
    Contestant("redis-py Lock", Work.LOCK, _python("redis_py.py", "lock")),
    Contestant(
        "Kotlin blocking add",
        Work.ADD,
        _kotlin("tallylock-blocking"),
        peer="Lettuce sync evalsha",
        most_of_peer=1.15,
    ),
    Contestant("Lettuce sync evalsha", Work.ADD, _kotlin("lettuce-blocking")),
    Contestant(
        "Kotlin suspend add",
        Work.ADD,
        _kotlin("tallylock-suspend"),
        peer="Lettuce coroutines evalsha",
        most_of_peer=1.15,
    ),
    Contestant("Lettuce coroutines evalsha", Work.ADD, _kotlin("lettuce-suspend")),
    Contestant(
        "Node add",
        Work.ADD,
        _node("tallylock.mjs", "add"),
        peer="ioredis evalsha",
        most_of_peer=1.15,
    ),
    Contestant("ioredis evalsha", Work.ADD, _node("ioredis.mjs", "add")),
    Contestant(
        "Node acquire+release",
        Work.LOCK,
        _node("tallylock.mjs", "lock"),
        peer="redlock",
        most_of_peer=1.15,
    ),
    Contestant("redlock", Work.LOCK, _node("ioredis.mjs", "lock")),
    BATCH_FLOOR,
    Contestant(
        "Python add_many",
        Work.BATCH,
        _python("tallylock_python.py", "batch"),
        peer="redis-py pipeline",
        # 0.7 of the floor's adds a second, and 1.3 times redis-py's.
        most_of_floor=1.43,
        most_of_peer=0.77,
    ),
    Contestant("redis-py pipeline", Work.BATCH, _python("redis_py.py", "batch")),
    ROUND_TRIP,
    # To the server, the notice back, the waiter's question and its answer: less than two there cannot be.
    Contestant("from release to grant", Work.HAND_OVER, (str(RELEASE / "hand_over"), "release")),
    Contestant("from released to grant", Work.HAND_OVER, (str(RELEASE / "hand_over"), "released"), most_of_floor=2.0),
)

WASM = ROOT / "wasm" / "npm" / "dist" / "tallylock_wasm_bg.wasm"
MOST_KILOBYTES_OF_WASM = 60
