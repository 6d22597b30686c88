"""What a Lua script of core may say: only commands and options that Redis 6.0 has, and no key without a TTL.

The test servers are newer than the oldest server that tallylock promises to run on, so a command or an option that came
after 6.0 would pass every test. What is not listed here is refused, hence a new command is a deliberate change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LITERAL = re.compile(r"""^(['"])(.*)\1$""", re.DOTALL)
KEY = re.compile(r"^KEYS\[\d+\]$")
# A string, a comment to the end of its line, or any other character.
PIECE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|--[^\n]*|.""", re.DOTALL)
HEADER_WORDS = ("KEYS[1]", "reply", "errors")
REDIS_NAMES = {"call", "pcall", "error_reply", "status_reply"}


@dataclass(frozen=True)
class Command:
    """How a command is written: its fixed arguments, then options, each with the number of values that follow it."""

    arguments: int
    options: dict[str, int]
    has_key: bool = True


COMMANDS = {
    "DEL": Command(1, {}),
    "EXISTS": Command(1, {}),
    "GET": Command(1, {}),
    "INCRBY": Command(2, {}),
    "PEXPIRE": Command(2, {}),
    "PTTL": Command(1, {}),
    "PUBLISH": Command(2, {}, has_key=False),
    "SET": Command(2, {"NX": 0, "XX": 0, "PX": 1, "KEEPTTL": 0}),
    "TIME": Command(0, {}, has_key=False),
    "TYPE": Command(1, {}),
}


@dataclass(frozen=True)
class Call:
    """One `redis.call` or `redis.pcall`, with its arguments as they stand in the source."""

    line: int
    function: str
    arguments: list[str]


def problems(source: str) -> list[str]:
    """Returns what is wrong with a script, each with its line; nothing if it follows the rules."""
    code = without_comments(source)
    found = header_problems(source, code)
    for name in re.finditer(r"\bredis\s*\.\s*(\w+)|\bredis\s*\[", code):
        if name.group(1) not in REDIS_NAMES:
            found.append(f"{line_of(code, name.start())}: redis.{name.group(1) or '[...]'} is not allowed")
    # Through another name (`local call = redis.call`) a command would escape these rules.
    for name in re.finditer(r"\bredis\s*\.\s*p?call\b(?!\s*\()|\bredis\b(?!\s*[.\[])", code):
        found.append(f"{line_of(code, name.start())}: call commands directly, as redis.call('NAME', ...)")
    for call in calls(code):
        found.extend(f"{call.line}: {problem}" for problem in call_problems(call))
    return found


def header_problems(source: str, code: str) -> list[str]:
    """Returns what the comment at the head of the script fails to say."""
    head = []
    for line in source.splitlines():
        if not line.startswith("--"):
            break
        head.append(line)
    said = "\n".join(head)
    wanted = [*HEADER_WORDS, *sorted(set(re.findall(r"\b(?:KEYS|ARGV)\[\d+\]", code)))]
    return [f"1: the header doesn't say {word}" for word in dict.fromkeys(wanted) if word not in said]


def call_problems(call: Call) -> Iterator[str]:
    """Yields what is wrong with one command."""
    name = literal(call.arguments[0]) if call.arguments else None
    if name is None:
        yield "the command must be a literal"
        return
    command = COMMANDS.get(name)
    if command is None:
        yield f"{name} is not among the allowed commands of Redis 6.0"
        return
    if name == "PUBLISH" and call.function != "pcall":
        yield "PUBLISH must be a pcall: an account without channels would get an error after the writes"
    fixed = call.arguments[1 : 1 + command.arguments]
    if len(fixed) < command.arguments:
        yield f"{name} needs {command.arguments} arguments"
        return
    if command.has_key and not KEY.match(fixed[0]):
        yield f"{name} must name its key as KEYS[n], not {fixed[0]}"
    used: set[str] = set()
    rest = call.arguments[1 + command.arguments :]
    while rest:
        option = literal(rest[0])
        if option is None or option not in command.options:
            yield f"{name} has no option {rest[0]} in Redis 6.0, or none that is allowed here"
            return
        used.add(option)
        rest = rest[1 + command.options[option] :]
    if name == "SET":
        yield from set_problems(used)


def set_problems(used: set[str]) -> Iterator[str]:
    """Yields how a SET with these options could leave a key without a TTL."""
    if not used & {"PX", "KEEPTTL"}:
        yield "SET without PX or KEEPTTL makes a key without a TTL"
    if "KEEPTTL" in used and "XX" not in used:
        yield "SET KEEPTTL without XX makes a key without a TTL if the key is not there"


def calls(code: str) -> Iterator[Call]:
    """Yields each call of a command in code that has no comments."""
    for match in re.finditer(r"\bredis\s*\.\s*(p?call)\s*\(", code):
        yield Call(line_of(code, match.start()), match.group(1), arguments(code[match.end() :]))


def arguments(code: str) -> list[str]:
    """Returns the arguments of a call, given what follows its opening parenthesis."""
    found, current, depth = [], "", 0
    for piece in PIECE.findall(code):
        if piece in ("(", "[", "{"):
            depth += 1
        elif piece in (")", "]", "}"):
            if depth == 0:
                break
            depth -= 1
        if piece == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += piece
    if current.strip():
        found.append(current.strip())
    return found


def without_comments(source: str) -> str:
    """Returns the source without its comments, each line still at its number."""
    return "".join("" if piece.startswith("--") else piece for piece in PIECE.findall(source))


def literal(argument: str) -> str | None:
    """Returns the text of a string literal, or None for any other expression."""
    match = LITERAL.match(argument)
    return match.group(2) if match else None


def line_of(code: str, offset: int) -> int:
    """Returns the number of the line, from 1, that an offset lies in."""
    return code.count("\n", 0, offset) + 1
