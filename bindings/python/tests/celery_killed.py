"""The worker of examples/python/celery_billing.py, killed (SIGKILL) once in each task, at the task's own step.

A session's name is the number of the step, before the first `-`.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["EXAMPLES"])

import celery_billing  # type: ignore[import-not-found]

app = celery_billing.app
# The broker loses patience at once: what was handed to a process that is being killed comes again, perhaps twice at
# the same time.
app.conf.worker_prefetch_multiplier = 8
app.conf.broker_transport_options = {
    "visibility_timeout": 1,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
    "unacked_mutex_expire": 2,
}
bill, kills = celery_billing.bill, Path(os.environ["KILLS"])


class Step:
    """A process that is killed after so many steps, unless that has happened for this session."""

    def __init__(self, session: str) -> None:
        self._left = int(session.partition("-")[0])
        self._marker = kills / session

    def __call__(self) -> None:
        if self._left == 0 and not self._marker.exists():
            self._marker.touch()
            # What is killed: this process of the pool, or the whole worker.
            os.killpg(0, signal.SIGKILL) if "KILL_ALL" in os.environ else os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


class Stepping:
    """An object whose every call is two steps: before it, and after it."""

    def __init__(self, target: Any, step: Step) -> None:
        self._target = target
        self._step = step

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._target, name)

        def call(*arguments: object) -> Any:
            self._step()
            result = method(*arguments)
            self._step()
            return result

        return call


def stepping_bill(pending: Any, session: str, invoices: Any) -> int | None:
    step = Step(session)
    billed: int | None = bill(Stepping(pending, step), session, Stepping(invoices, step))
    return billed


celery_billing.bill = stepping_bill
