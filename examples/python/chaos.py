"""The demo's supervisor: starts the services and the billing jobs, and makes go wrong what its plan says.

The jobs that bill are killed and started again, so is one of the services; what both services add goes through a proxy
that loses replies. Ends with 0 if every program did its part. What went wrong is left in a file for the report.
"""

import argparse
import csv
import json
import random
import signal
import sys
import time
from pathlib import Path

from fault_proxy import FaultProxy
from plan import BETWEEN_STRIKES, BETWEEN_SWEEPER_STRIKES, JOB_KILLS_ASKED, Loss, Plan, Strike
from programs import Program, Programs, end_with_parent
from timetable import Timetable

JOBS = ("job-1", "job-2")
SWEEPER = "sweeper"
HERE = Path(__file__).parent
JAVA_CLASSES = "examples/kotlin/target/classes:examples/kotlin/target/dependency/*"
NODE_PROGRAM = "examples/node/main.mjs"


class ProgramFailed(Exception):
    """A program has ended that should not have, or has failed."""


class Chaos:
    """One run: the programs, and what happens to them."""

    def __init__(self, arguments: argparse.Namespace, plan: Plan, programs: Programs, proxy: FaultProxy) -> None:
        """Start the programs; times count from now."""
        self._arguments = arguments
        self._plan = plan
        self._proxy = proxy
        self._began_ms = round(time.time() * 1000)
        self._timetable = Timetable()
        self._hold_ups = 0
        self._jobs = {name: programs.start(name, self._job(name)) for name in (*JOBS, SWEEPER)}
        self._kotlin = programs.start("Kotlin service", self._kotlin_service())
        self._node = programs.start("Node edge function", self._node_function())
        self._node_is_gone = False

    def run(self) -> None:
        """Let the days of the data pass, then let the jobs bill what is left; ProgramFailed if one does not do it."""
        self._timetable.each(self._plan.strikes(JOBS, BETWEEN_STRIKES), self._strike)
        self._timetable.each(self._plan.strikes((SWEEPER,), BETWEEN_SWEEPER_STRIKES), self._strike)
        self._timetable.each(self._plan.losses(), self._lose)
        lasts = number_of_days(self._arguments.data) * self._arguments.day_ms / 1000
        self._timetable.at(lasts * self._plan.adder_killed_at, self._kill_adder)
        self._timetable.run_until(self._is_over)
        # Nobody adds any more: each job is killed once more, and bills what is left.
        for name, job in self._jobs.items():
            self._kill(job)
            job.restart(self._job(name, "--to-end"))
        for job in self._jobs.values():
            if job.wait() != 0:
                raise ProgramFailed(f"{job.name} failed at the end")

    def tally(self) -> dict[str, int]:
        """Return how much has gone wrong so far."""
        return {
            "job_kills": self._job_kills(),
            "sweeper_kills": self._jobs[SWEEPER].kills,
            "adder_kills": self._node.kills,
            "hold_ups": self._hold_ups,
            "lost_replies": self._proxy.lost(),
        }

    def _strike(self, strike: Strike) -> None:
        victim = self._jobs[strike.victim]
        if strike.blow == "hold up":
            victim.hold_up()
            self._hold_ups += 1
            self._timetable.after(strike.held_up_for, victim.go_on)
        else:
            self._kill(victim)
            victim.restart(self._job(victim.name))

    def _lose(self, loss: Loss) -> None:
        self._proxy.lose(loss.nth)

    def _kill_adder(self) -> None:
        self._kill(self._node)
        self._node_is_gone = True
        self._timetable.after(self._plan.adder_gone_for, self._resume_adder)

    def _resume_adder(self) -> None:
        # From its start: what it has added before, it adds under the same keys.
        self._node.restart(self._node_function())
        self._node_is_gone = False

    def _kill(self, program: Program) -> None:
        if not program.kill():
            raise ProgramFailed(f"{program.name} has ended by itself, with {program.exit_code}")

    def _is_over(self) -> bool:
        for job in self._jobs.values():
            if not job.is_running:
                raise ProgramFailed(f"{job.name} has ended by itself, with {job.exit_code}")
        adders = [self._kotlin] if self._node_is_gone else [self._kotlin, self._node]
        for adder in adders:
            if adder.exit_code:
                raise ProgramFailed(f"{adder.name} failed, with {adder.exit_code}")
        is_adding = self._node_is_gone or self._kotlin.is_running or self._node.is_running
        return not is_adding and self._job_kills() >= JOB_KILLS_ASKED

    def _job_kills(self) -> int:
        return sum(self._jobs[name].kills for name in JOBS)

    def _job(self, name: str, *more: str) -> list[str]:
        work = self._arguments.work
        program = ["sweeping_job.py"] if name == SWEEPER else ["billing_job.py", name]
        files = ["--ledger", str(work / "invoices.db"), "--finished", str(work / "finished.csv")]
        return [sys.executable, str(HERE / program[0]), *program[1:], "--url", self._arguments.url, *files, *more]

    def _kotlin_service(self) -> list[str]:
        # The other client of the sessions that it ends: see SessionService.
        finish = ["--finish-url", self._arguments.url, "--finished", str(self._arguments.work / "finished.csv")]
        return ["java", "-cp", JAVA_CLASSES, "flights.MainKt", *self._adder("refused-kotlin.csv"), *finish]

    def _node_function(self) -> list[str]:
        return ["node", NODE_PROGRAM, *self._adder("refused-node.csv")]

    def _adder(self, refused: str) -> list[str]:
        files = ["--data", str(self._arguments.data), "--refused", str(self._arguments.work / refused)]
        times = ["--day-ms", str(self._arguments.day_ms), "--began-ms", str(self._began_ms)]
        return ["--url", self._proxy.url, *files, *times]


def number_of_days(data: Path) -> int:
    with data.open(newline="") as rows:
        return len({(row["month"], row["day"]) for row in csv.DictReader(rows)})


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Let services add and jobs bill, and kill them.")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    parser.add_argument("--proxy", type=Path, required=True, help="the program tallylock-fault-proxy")
    parser.add_argument("--data", type=Path, required=True, help="the flights, as CSV")
    parser.add_argument("--work", type=Path, required=True, help="the folder for the files of this run")
    parser.add_argument("--day-ms", type=int, required=True, help="how long a day lasts")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="repeats what goes wrong")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    end_with_parent()
    # Python would end at once, and leave the others to the system.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(f"the seed of what goes wrong: {arguments.seed} (DEMO_SEED={arguments.seed} repeats it)", flush=True)
    failure = None
    try:
        with FaultProxy(arguments.proxy, arguments.url) as proxy, Programs() as programs:
            chaos = Chaos(arguments, Plan(arguments.seed), programs, proxy)
            try:
                chaos.run()
            except ProgramFailed as error:
                failure = f"chaos: {error}"
            tally = {"seed": arguments.seed, **chaos.tally()}
    except ValueError as error:
        sys.exit(f"chaos: {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    (arguments.work / "chaos.json").write_text(json.dumps(tally))
    sys.exit(failure)


if __name__ == "__main__":
    main()
