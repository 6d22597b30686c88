"""The rules for Lua scripts: what each must refuse, and what it must not."""

from __future__ import annotations

import pytest
from script_rules import problems

HEADER = (
    "-- Does something.\n-- KEYS[1]  key\n-- KEYS[2]  key\n-- ARGV[1]  text\n-- reply    nothing\n-- errors   none\n"
)


def refused(code: str) -> str:
    found = problems(HEADER + code)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    "code",
    [
        "return redis.call('GET', KEYS[1])",
        "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[1])",
        "redis.call('SET', KEYS[1], '0', 'XX', 'KEEPTTL')",
        "redis.pcall('PUBLISH', ARGV[1], 'released')",
        "redis.call('SET', KEYS[1], string.rep('a,b', 2), 'NX', 'PX', ARGV[1])",
        "return 1 -- redis.call('GETDEL', KEYS[1])",
        'local kind = redis.call("TYPE", KEYS[1])["ok"]',
    ],
)
def test_accepts_what_redis_6_0_has(code: str) -> None:
    assert problems(HEADER + code) == []


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("redis.call('GETDEL', KEYS[1])", "GETDEL"),
        ("redis.call('GETEX', KEYS[1], 'PX', ARGV[1])", "GETEX"),
        ("redis.call('get', KEYS[1])", "get"),
        ("redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[1])", "PXAT"),
        ("redis.call('SET', KEYS[1], ARGV[1], 'EXAT', ARGV[1])", "EXAT"),
        ("redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[1], 'GET')", "GET"),
        ("redis.call('PEXPIRE', KEYS[1], ARGV[1], 'NX')", "NX"),
        ("redis.call('PEXPIRE', KEYS[1], ARGV[1], 'GT')", "GT"),
        ("redis.call('SET', KEYS[1], ARGV[1], ARGV[1], ARGV[1])", "option ARGV[1]"),
        ("redis.call(ARGV[1], KEYS[1])", "literal"),
    ],
)
def test_refuses_what_is_newer_or_hidden(code: str, word: str) -> None:
    assert word in refused(code)


@pytest.mark.parametrize(
    "code",
    [
        "redis.call('SET', KEYS[1], ARGV[1])",
        "redis.call('SET', KEYS[1], ARGV[1], 'NX')",
        "redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')",
    ],
)
def test_refuses_a_set_that_may_leave_no_ttl(code: str) -> None:
    assert "without a TTL" in refused(code)


def test_refuses_a_key_that_is_not_in_keys() -> None:
    assert "KEYS[n]" in refused("redis.call('GET', ARGV[1])")


def test_refuses_publish_that_may_raise() -> None:
    assert "pcall" in refused("redis.call('PUBLISH', ARGV[1], '')")


@pytest.mark.parametrize("code", ["local call = redis.call", "local r = redis", "redis['call']('GETDEL', KEYS[1])"])
def test_refuses_a_way_around_the_rules(code: str) -> None:
    assert problems(HEADER + code) != []


def test_refuses_other_functions_of_redis() -> None:
    assert "setresp" in refused("redis.setresp(3)")


def test_names_the_line() -> None:
    assert refused("local a = 1\nredis.call('GETDEL', KEYS[1])").startswith("8:")


def test_wants_each_argument_in_the_header() -> None:
    assert "ARGV[2]" in refused("return ARGV[2]")


def test_wants_a_header() -> None:
    assert [problem.split("say ")[1] for problem in problems("return 1")] == ["KEYS[1]", "reply", "errors"]
