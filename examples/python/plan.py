"""What is to go wrong in one run of the demo, and when: the same for the same seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# A run in which less has gone wrong proves nothing.
JOB_KILLS_ASKED = 20
ADDER_KILLS_ASKED = 1
LOST_REPLIES_ASKED = 20
SWEPT_ASKED = 20

# In seconds.
BETWEEN_STRIKES = (0.3, 1.2)
BETWEEN_SWEEPER_STRIKES = (4.0, 9.0)
BETWEEN_LOSSES = (0.1, 0.5)
# Which of the next requests loses its reply; a service sends some hundreds each day.
NTH_REQUEST = (1, 200)
# One strike in so many holds its victim up instead, for longer than the lock's TTL.
HOLD_UP_ONE_IN = 10
HELD_UP_FOR = (1.2, 1.8)
# At which part of the month the adder is killed, and for how long it is gone.
ADDER_KILLED_AT = (0.3, 0.7)
ADDER_GONE_FOR = (0.2, 1.0)


@dataclass(frozen=True)
class Strike:
    """So many seconds after the strike before, this victim is killed, or held up for some seconds."""

    after: float
    victim: str
    blow: Literal["kill", "hold up"]
    held_up_for: float


@dataclass(frozen=True)
class Loss:
    """So many seconds after the loss before, the reply to the nth request from then on is lost."""

    after: float
    nth: int


class Plan:
    """All choices of one run."""

    def __init__(self, seed: int) -> None:
        """Choose by `seed`."""
        self._seed = seed
        dice = self._dice("adder")
        self.adder_killed_at = dice.uniform(*ADDER_KILLED_AT)
        self.adder_gone_for = dice.uniform(*ADDER_GONE_FOR)

    def strikes(self, victims: tuple[str, ...], between: tuple[float, float]) -> Iterator[Strike]:
        """Yield strikes among `victims`, with so many seconds between them; there is no last one."""
        dice = self._dice(f"strikes {victims}")
        while True:
            yield Strike(
                after=dice.uniform(*between),
                victim=dice.choice(victims),
                blow="hold up" if dice.randrange(HOLD_UP_ONE_IN) == 0 else "kill",
                held_up_for=dice.uniform(*HELD_UP_FOR),
            )

    def losses(self) -> Iterator[Loss]:
        """Yield the losses; there is no last one."""
        dice = self._dice("losses")
        while True:
            yield Loss(after=dice.uniform(*BETWEEN_LOSSES), nth=dice.randint(*NTH_REQUEST))

    def _dice(self, what_for: str) -> random.Random:
        # Each kind of choice has dice of its own: how many of another were needed must not matter.
        return random.Random(f"{self._seed} {what_for}")
