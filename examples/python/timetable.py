"""What is due when."""

import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

# How often it is asked whether all is done, in seconds.
LOOK_EVERY = 0.05


class Happening(Protocol):
    """Something that happens so many seconds after the one before."""

    @property
    def after(self) -> float: ...


H = TypeVar("H", bound=Happening)


class Timetable:
    """Actions, each at its time in seconds since this began."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Do something at a time; at once if it has passed."""
        # By the number as well: actions can't be compared.
        heapq.heappush(self._due, (moment, next(self._numbers), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something so many seconds from now."""
        self.at(self._now() + seconds, action)

    def each(self, happenings: Iterator[H], act: Callable[[H], None], previous: float = 0) -> None:
        """Let happenings happen, one after the other; counted from when they were due, so that delays don't add up."""
        happening = next(happenings)
        moment = previous + happening.after

        def happen() -> None:
            act(happening)
            self.each(happenings, act, moment)

        self.at(moment, happen)

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Do what is due, until all is done."""
        while not is_done():
            while self._due and self._due[0][0] <= self._now():
                _, _, action = heapq.heappop(self._due)
                action()
            upcoming = self._due[0][0] - self._now() if self._due else LOOK_EVERY
            time.sleep(min(LOOK_EVERY, max(0, upcoming)))

    def _now(self) -> float:
        return time.monotonic() - self._begin
