"""What was measured, as a table and as JSON."""

import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

import redis
from contestants import FLOORS, MOST_KILOBYTES_OF_WASM, Contestant


@dataclass(frozen=True)
class Circumstances:
    """Where and how it was measured."""

    machine: str
    server: str
    placing: str
    rounds: int
    block_seconds: float

    @classmethod
    def of(cls, server: redis.Redis, placing: str, rounds: int, block_seconds: float) -> "Circumstances":
        """Describes this machine and this server."""
        info = server.info("server")
        version = f"{info.get('server_name', 'redis')} {info.get('valkey_version', info['redis_version'])}"
        machine = f"{os.cpu_count()} x {_processor()}, {platform.system()}"
        return cls(machine, version, placing, rounds, block_seconds)


@dataclass(frozen=True)
class Ratio:
    """How long one contestant took, another one's time being 1: the median of the rounds' own ratios."""

    beside: str
    ratio: float
    most: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the target is reached; None without one."""
        return None if self.most is None else round(self.ratio, 2) <= self.most

    def __str__(self) -> str:
        return f"{self.ratio:.2f}" if self.most is None else f"{self.ratio:.2f} (<= {self.most:.2f})"


@dataclass
class Report:
    """Microseconds a call, one figure for each contestant and round."""

    contestants: list[Contestant]
    circumstances: Circumstances
    wasm_bytes: int | None = None
    _figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, contestant: Contestant, microseconds: float) -> None:
        """Takes the next round's figure of a contestant."""
        self._figures.setdefault(contestant.name, []).append(microseconds)

    def ratios(self, contestant: Contestant) -> dict[str, Ratio]:
        """The ratios to the `floor` and to the `peer`, as far as there are any."""
        ratios = {}
        floor = FLOORS.get(contestant.work, contestant)
        if contestant is not floor:
            ratios["floor"] = self._ratio(contestant, floor.name, contestant.most_of_floor)
        if contestant.peer is not None:
            ratios["peer"] = self._ratio(contestant, contestant.peer, contestant.most_of_peer)
        return ratios

    def _ratio(self, contestant: Contestant, beside: str, most: float | None) -> Ratio:
        pairs = zip(self._figures[contestant.name], self._figures[beside], strict=True)
        return Ratio(beside, statistics.median(ours / theirs for ours, theirs in pairs), most)

    def as_table(self) -> str:
        """The table for people: medians, ratios and whether the targets hold."""
        rows = [("", "us a call", "of the floor", "of its peer", "")]
        for contestant in self.contestants:
            ratios = self.ratios(contestant)
            rows.append(
                (
                    contestant.name,
                    f"{statistics.median(self._figures[contestant.name]):.1f}",
                    "1.00" if contestant in FLOORS.values() else str(ratios.get("floor", "")),
                    str(ratios.get("peer", "")),
                    _verdict([ratio.holds for ratio in ratios.values()]),
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if self.wasm_bytes is not None:
            size = f"wasm file, gzipped: {self.wasm_bytes / 1024:.1f} KB (<= {MOST_KILOBYTES_OF_WASM} KB)"
            lines.append(f"{size}  {_verdict([self._wasm_holds()])}")
        facts = self.circumstances
        lines.append(f"medians of {facts.rounds} interleaved blocks of {facts.block_seconds:g} s, one call at a time")
        lines.append(f"{facts.server}; {facts.machine}; {facts.placing}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        """The same with quartiles, for programs."""
        return {
            "circumstances": asdict(self.circumstances),
            "contestants": [self._contestant_as_json(contestant) for contestant in self.contestants],
            "wasm": self.wasm_bytes
            and {"gzipped_bytes": self.wasm_bytes, "most": MOST_KILOBYTES_OF_WASM * 1024, "holds": self._wasm_holds()},
        }

    def _contestant_as_json(self, contestant: Contestant) -> dict[str, object]:
        figures = self._figures[contestant.name]
        return {
            "name": contestant.name,
            "work": contestant.work.value,
            "microseconds": {
                "median": statistics.median(figures),
                "quartiles": statistics.quantiles(figures) if len(figures) > 1 else None,
            },
            "ratios": {
                name: {**asdict(ratio), "holds": ratio.holds} for name, ratio in self.ratios(contestant).items()
            },
        }

    def _wasm_holds(self) -> bool:
        return self.wasm_bytes is not None and self.wasm_bytes <= MOST_KILOBYTES_OF_WASM * 1024


def _verdict(holds: list[bool | None]) -> str:
    if False in holds:
        return "MISSED"
    return "holds" if True in holds else ""


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
