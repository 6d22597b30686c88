"""The conformance cases: read, checked and run; tests/cases/README.md says what each field means."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

import jsonschema

import tallylock
from servers import ROOT

CASES = ROOT / "tests" / "cases"
BAD_CASES = ROOT / "tests" / "cases-bad"
# All that a case may need; the types of Python can express each.
NEEDS = {"negative_duration", "big_amount"}
_LONGEST_REAL_WAIT_MS = 300

Json = dict[str, Any]


class CaseRefusedError(Exception):
    """A file of cases is not of the form that is agreed."""


class CaseFailedError(Exception):
    """A case came out otherwise than it says."""


class BlockError(Exception):
    """What a block raises where a case wants it to."""


@dataclass(frozen=True)
class Left:
    """A key that is there: its text (None for another type) and its remaining milliseconds (None for no TTL)."""

    text: bytes | None
    ttl_ms: int | None


class Place(Protocol):
    """Where a case runs: what another program does there, and what is there."""

    def plant(self, plant: Json) -> None: ...
    def remove(self, key: bytes) -> None: ...
    def advance(self, millis: int) -> None: ...
    def lose_next_reply(self) -> None: ...
    def left(self) -> dict[bytes, Left]: ...


def read_index() -> Json:
    """Return the index, after a look at whether it lists each file that is there."""
    index: Json = json.loads((CASES / "index.json").read_text())
    for folder, listed, others in ((CASES, "files", {"index.json", "schema.json"}), (BAD_CASES, "bad", set())):
        there = {path.name for path in folder.glob("*.json")} - others
        names = {entry["file"] for entry in index[listed]}
        if there != names:
            message = f"{folder.name} and the index differ: {sorted(there ^ names)}"
            raise CaseRefusedError(message)
    return index


def read_cases(text: str) -> list[Json]:
    """Return the cases of a file; CaseRefusedError if anything in it is not of the agreed form."""
    document = json.loads(text)
    try:
        jsonschema.validate(document, json.loads((CASES / "schema.json").read_text()))
    except jsonschema.ValidationError as error:
        raise CaseRefusedError(error.message) from None
    cases: list[Json] = document["cases"]
    names = [case["name"] for case in cases]
    if len(set(names)) < len(names):
        message = "two cases have the same name"
        raise CaseRefusedError(message)
    for case in cases:
        _check(case)
    return cases


def run(case: Json, client: Any, place: Place) -> None:
    """Run a case; CaseFailedError if it comes out otherwise than it says."""
    for plant in case.get("given", ()):
        place.plant(plant)
    Run(client, place, {handle["name"]: handle for handle in case["handles"]}).steps(case["steps"])
    _compare(case["left"], place.left())


def text_of(value: str | Json) -> bytes:
    """Return a text or bytes as a case writes them."""
    if isinstance(value, str):
        return value.encode()
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    return str(value["repeat"]).encode() * int(value["times"])


def millis(number: float) -> timedelta:
    """Return a duration as a case writes it."""
    return timedelta(milliseconds=number)


@dataclass
class Run:
    """One run of a case: its handles, each opened when it is first used, and its leases."""

    client: Any
    place: Place
    declared: dict[str, Json]
    opened: dict[str, Any] = field(default_factory=dict)
    leases: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, bytes] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    def steps(self, steps: list[Json]) -> None:
        """Do steps one after the other."""
        for step in steps:
            self._step(step)

    def _step(self, step: Json) -> None:
        verb, given = step["do"], step.get("with", {})
        if verb == "lock.block":
            self._block(step, given)
        elif verb == "advance":
            self.place.advance(given["ms"])
        elif verb == "plant":
            self.place.plant(given)
        elif verb == "remove":
            self.place.remove(text_of(given["key"]))
        elif verb == "lose_next_reply":
            self.place.lose_next_reply()
        else:
            with _expecting(step):
                self._call(step, verb, given)

    def _call(self, step: Json, verb: str, given: Json) -> None:
        kind, name = verb.split(".")
        expected = step.get("expect", {})
        arguments = _arguments(given)
        match kind:
            case "lease":
                self._lease(step, name, given, expected)
                return
            case "lock":
                self._lock(step, name, given, arguments)
                return
            case "counter":
                result = self._counter(self._handle(step["on"]), name, given, arguments)
            case "guarded":
                result = self._guarded(self._handle(step["on"]), given, arguments)
            case "value":
                result = self._value(self._handle(step["on"]), name, given, arguments)
            case _:
                result = self._of_client(name, given, arguments)
        if "error" not in step:
            told = result if isinstance(result, dict) else dict.fromkeys(expected, result)
            _same(_plain(expected), _plain_result(told))

    def _lock(self, step: Json, name: str, given: Json, arguments: Json) -> None:
        lock = self._handle(step["on"])
        match name:
            case "inspect":
                self._inspect(step, lock.inspect())
            case "steal":
                self._steal(step, lock, given)
            case "adopt":
                token = given["token"] if "token" in given else self.given[given["given"]]
                self.leases[step.get("as", "")] = lock.adopt(token)
            case _:
                self.leases[step.get("as", "")] = lock.acquire(**arguments)

    def _counter(self, counter: Any, name: str, given: Json, arguments: Json) -> Any:
        if "id" in given:
            return self._once(counter, name, given, arguments)
        if name == "add":
            return counter.add(int(given["amount"]))
        if name == "claims":
            return {"claims": [{"id": claim.id, "amount": claim.amount} for claim in counter.claims()]}
        return getattr(counter, name)(**arguments)

    def _once(self, counter: Any, name: str, given: Json, arguments: Json) -> Any:
        once = text_of(given["id"])
        match name:
            case "add_once":
                return counter.add(int(given["amount"]), idempotency_key=once, **arguments)._asdict()
            case "claim":
                claim = counter.claim(once, **arguments)
                return {"claim": None if claim is None else {"amount": claim.amount, "state": claim.state.encode()}}
            case "commit":
                return counter.commit(once, int(given["amount"]))
            case _:
                return counter.abort(once, **arguments)

    def _guarded(self, guarded: Any, given: Json, arguments: Json) -> Any:
        if "value" in given:
            return guarded.set(text_of(given["value"]), **arguments)
        return guarded.delete(**arguments)

    def _inspect(self, step: Json, holder: Any) -> None:
        expected = step.get("expect", {"holder": None})["holder"]
        if holder is not None:
            self.tokens[step.get("seen", "")] = holder.token
        if holder is None or expected is None:
            _same(expected is None, holder is None)
            return
        _matches(expected["token"], holder.token.decode())
        _matches(expected["label"], holder.label)
        _matches(expected["fence"], holder.fence)
        if expected["remaining_ms"] is None or holder.remaining is None:
            _same(expected["remaining_ms"], holder.remaining)
        else:
            _within(expected["remaining_ms"], holder.remaining / timedelta(milliseconds=1))

    def _steal(self, step: Json, lock: Any, given: Json) -> None:
        token = text_of(given["token"]) if "token" in given else self.tokens[given["seen"]]
        fence = lock.steal(token, reason=given["reason"])
        _matches(step.get("expect", {"fence": None})["fence"], fence)

    def _value(self, value: Any, name: str, given: Json, arguments: Json) -> Any:
        match name:
            case "replace_if_present":
                return value.replace_if_present(text_of(given["value"]), **arguments)
            case "compare_and_set":
                return value.compare_and_set(text_of(given["expected"]), text_of(given["value"]), **arguments)
            case "update":
                return value.update(lambda present: present + text_of(given["append"]), **arguments)
            case _:
                return getattr(value, name)(**arguments)

    def _of_client(self, name: str, given: Json, arguments: Json) -> Json:
        if name == "add_many":
            results = self.client.add_many([self._entry(entry) for entry in given["entries"]])
            return {"results": [_result(result) for result in results]}
        found = getattr(self.client, name)(text_of(given["pattern"]), **arguments)
        return {"counters": [{"key": each.key, "total": each.total} for each in sorted(found)]}

    def _entry(self, entry: Json) -> Any:
        once = {"idempotency_key": text_of(entry["id"])} if "id" in entry else {}
        return self._handle(entry["on"]).entry(int(entry["amount"]), **once)

    def _lease(self, step: Json, name: str, given: Json, expected: Json) -> None:
        lease = self.leases[step["on"]]
        match name:
            case "transfer":
                self.given[step.get("as", "")] = lease.transfer()
            case "extend":
                lease.extend(*(millis(value) for value in given.values()))
            case "ensure":
                lease.ensure(millis(given["margin_ms"]))
            case "verify":
                lease.verify(millis(given["margin_ms"]))
            case "release":
                lease.release()
            case "remaining":
                _within(expected["ms"], lease.remaining() / timedelta(milliseconds=1))
            case "fence":
                self._fence(lease.fence, expected)

    def _fence(self, fence: int, expected: Json) -> None:
        if "is" in expected:
            _same(int(expected["is"]), fence)
        elif "equals" in expected:
            _same(self.leases[expected["equals"]].fence, fence)
        elif fence <= (other := self.leases[expected["above"]].fence):
            message = f"the fence {fence} is not above {other}"
            raise CaseFailedError(message)

    def _block(self, step: Json, given: Json) -> None:
        arguments = {"wait": millis(given["wait_ms"])} if "wait_ms" in given else {}
        raised = BlockError()
        with _expecting(step):
            try:
                with self._handle(step["on"]).acquire(**arguments) as lease:
                    if "error" in step:
                        message = "a block was entered that had to be refused"
                        raise CaseFailedError(message)
                    self.leases[step.get("as", "")] = lease
                    self.steps(step.get("inside", []))
                    if step.get("raises"):
                        raise raised
            except BlockError as arrived:
                if arrived is not raised:
                    raise
            else:
                if step.get("raises"):
                    message = "an exception of a block did not arrive outside"
                    raise CaseFailedError(message)

    def _handle(self, name: str) -> Any:
        if name not in self.opened:
            handle = self.declared[name]
            options = {"expiry": handle["expiry"]} if "expiry" in handle else {}
            if "ttl_ms" in handle:
                options["ttl"] = millis(handle["ttl_ms"])
            if "renewal" in handle:
                options["renewal"] = handle["renewal"]
            self.opened[name] = getattr(self.client, handle["kind"])(text_of(handle["key"]), **options)
        return self.opened[name]


@contextmanager
def _expecting(step: Json) -> Iterator[None]:
    """Compare an error with the one that a step expects, if any."""
    expected = step.get("error")
    try:
        yield
    except tallylock.TallylockError as error:
        if expected is None:
            message = f"{step['do']}: {error}"
            raise CaseFailedError(message) from error
        _same(
            (expected["code"], expected["applied"], expected.get("reason")), (error.code, error.applied, error.reason)
        )
        missing = [text for text in expected.get("mentions", ()) if text not in str(error)]
        if missing:
            message = f"the message {error} lacks {missing}"
            raise CaseFailedError(message) from error
    else:
        if expected is not None:
            message = f"{step['do']}: no error, but {expected} was expected"
            raise CaseFailedError(message)


def _arguments(given: Json) -> Json:
    """Return the arguments that have a name in each verb."""
    durations: Json = {key.removesuffix("_ms"): millis(value) for key, value in given.items() if key.endswith("_ms")}
    return durations | ({"fence": int(given["fence"])} if "fence" in given else {})


def _result(result: Any) -> Json:
    """Return a result of a batch as a case writes it."""
    if isinstance(result, tallylock.TallylockError):
        return {"code": result.code.encode()}
    plain: Json = result._asdict()
    return plain


def _plain(expected: Any) -> object:
    if expected is None or isinstance(expected, bool):
        return expected
    if isinstance(expected, list):
        return [_plain(each) for each in expected]
    if isinstance(expected, str) or expected.keys() & {"hex", "repeat"}:
        return text_of(expected)
    return {name: _plain(value) for name, value in expected.items()}


def _plain_result(result: object) -> object:
    if isinstance(result, list):
        return [_plain_result(each) for each in result]
    if isinstance(result, dict):
        return {name: _plain_result(value) for name, value in result.items()}
    # Integers are texts in a case, so that no JSON parser rounds them.
    if isinstance(result, int) and not isinstance(result, bool):
        return str(result).encode()
    return result


def _same(expected: object, result: object) -> None:
    if expected != result or type(expected) is not type(result):
        message = f"expected {expected!r}, got {result!r}"
        raise CaseFailedError(message)


def _matches(pattern: str | None, result: object) -> None:
    if pattern is None or result is None:
        _same(pattern, result)
    elif re.search(pattern, str(result)) is None:
        message = f"{result} does not match {pattern}"
        raise CaseFailedError(message)


def _within(bounds: list[int], number: float) -> None:
    if not bounds[0] <= number <= bounds[1]:
        message = f"{number} is not within {bounds}"
        raise CaseFailedError(message)


def _compare(expected: list[Json], there: dict[bytes, Left]) -> None:
    keys = {text_of(left["key"]) for left in expected}
    if keys != set(there):
        message = f"keys that are left and keys that are expected differ: {sorted(keys ^ set(there))}"
        raise CaseFailedError(message)
    for left in expected:
        found = there[text_of(left["key"])]
        if "type" in left:
            _same(None, found.text)
        elif "value" in left:
            _same(text_of(left["value"]), found.text)
        elif found.text is None or re.search(left["pattern"], found.text.decode()) is None:
            message = f"{found} does not match {left}"
            raise CaseFailedError(message)
        if left["ttl_ms"] is None:
            _same(None, found.ttl_ms)
        elif found.ttl_ms is None:
            message = f"{left['key']} has no TTL"
            raise CaseFailedError(message)
        else:
            _within(left["ttl_ms"], found.ttl_ms)


def _check(case: Json) -> None:
    """Check what the schema can't: names that refer to each other, and what only memory can do."""
    kinds = {handle["name"]: handle["kind"] for handle in case["handles"]}
    flat = list(_flat(case["steps"]))
    leases: set[str] = set()
    tokens: set[str] = set()
    for step in flat:
        kind, on = step["do"].split(".")[0], step.get("on", "")
        if on and (on not in leases if kind == "lease" else kinds.get(on) != kind):
            message = f"{case['name']}: {step['do']} on {on}"
            raise CaseRefusedError(message)
        entries = step["with"]["entries"] if step["do"] == "client.add_many" else ()
        if any(kinds.get(entry["on"]) != "counter" for entry in entries):
            message = f"{case['name']}: an entry of no counter"
            raise CaseRefusedError(message)
        if step["do"] == "lease.fence" and step["expect"].get("above", on) not in leases:
            message = f"{case['name']}: a fence above that of no lease"
            raise CaseRefusedError(message)
        if step["do"] == "lock.steal" and step["with"].get("seen") not in tokens | {None}:
            message = f"{case['name']}: a token that was not seen"
            raise CaseRefusedError(message)
        tokens |= {step["seen"]} if "seen" in step else set()
        if kind == "lock" and "as" in step:
            leases.add(step["as"])
    if case.get("only") != "memory":
        waited = sum(step["with"]["ms"] for step in flat if step["do"] == "advance")
        if waited > _LONGEST_REAL_WAIT_MS or any(step["do"] == "lose_next_reply" for step in flat):
            message = f"{case['name']}: not for a server"
            raise CaseRefusedError(message)


def _flat(steps: list[Json]) -> Iterator[Json]:
    for step in steps:
        yield step
        yield from _flat(step.get("inside", []))


def sleep_millis(number: int) -> None:
    """Really wait, for a server's clock."""
    time.sleep(number / 1000)
