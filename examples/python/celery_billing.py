"""Billing in two steps, in Celery: a worker may be killed in the middle of a task, and each second is on one invoice.

usage: cd examples/python && BROKER_URL=redis://... TALLYLOCK_URL=redis://... INVOICES=invoices.db \
           celery --app celery_billing worker
       and, in a program that has usage to bill: celery_billing.bill_session.delay("42")

A task is acknowledged only when it is done, and delivered again if its worker died; so `bill` is called again, which
takes up the run where it was. That it may be called twice at once (the broker lost patience) does no harm.
"""

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from functools import cache

import tallylock
from celery import Celery  # type: ignore[import-untyped]
from claims import Invoices, bill

app = Celery("billing", broker=os.environ.get("BROKER_URL", "redis://127.0.0.1:6379/1"))
app.conf.update(
    # Acknowledged when it is done, not when it begins; and put back if the process that ran it was killed.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    # No tasks wait in a worker that is about to die.
    worker_prefetch_multiplier=1,
    # Where the whole worker was killed, Redis as a broker delivers again after so many seconds; an hour if not said.
    broker_transport_options={"visibility_timeout": 600},
    task_ignore_result=True,
)

# What may be otherwise in a moment. After OutcomeUnknownError too: the same claim id is asked for, so nothing is taken
# twice.
RETRIED = (
    tallylock.UnavailableError,
    tallylock.CallTimeoutError,
    tallylock.OutcomeUnknownError,
    tallylock.ReadOnlyError,
    tallylock.OutOfMemoryError,
    sqlite3.OperationalError,
)


@cache
def client() -> tallylock.Client:
    """Return this worker's client; it survives the fork by which Celery makes the processes of its pool."""
    return tallylock.connect(os.environ.get("TALLYLOCK_URL", "redis://127.0.0.1:6379/0"))


@app.task(autoretry_for=RETRIED, retry_backoff=True, retry_backoff_max=60, max_retries=None)  # type: ignore[untyped-decorator]
def bill_session(session: str) -> int | None:
    """Bill what is pending for a session; return the seconds, None for nothing."""
    pending = client().counter(f"session:{session}:billableSecondsPending", ttl=timedelta(minutes=15))
    with closing(sqlite3.connect(os.environ.get("INVOICES", "invoices.db"), timeout=30)) as database:
        return bill(pending, session, Invoices(database))
