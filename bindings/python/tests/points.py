"""When to give up a call, so that it is now too early and now too late."""

import asyncio
import random
import time


class Points:
    """Random moments while a call is under way: how long it takes here is found out by being too late and too early."""

    def __init__(self) -> None:
        self._dice = random.Random(42)  # noqa: S311 - to be the same again
        self._longest = 0.001
        self.late = 0
        self.early = 0

    async def next(self) -> None:
        """Let the loop run until the next of them."""
        until = time.monotonic() + self._dice.random() * self._longest
        # Not by a timer: what it is rounded up to is longer than many a call.
        while time.monotonic() < until:
            await asyncio.sleep(0)

    def met(self, *, was_late: bool) -> None:
        """Take in whether the call had already ended at the last of them."""
        if was_late:
            self.late += 1
            self._longest = max(self._longest * 0.9, 0.00001)
        else:
            self.early += 1
            self._longest = min(self._longest * 1.1, 1.0)
