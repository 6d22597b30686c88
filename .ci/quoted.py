"""Checks that what a page quotes from a program is what the program says.

usage: quoted.py PAGE...

A quotation is a fenced block behind the line `<!-- quoted from PATH -->`: its lines stand in the file like that.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

QUOTATION = re.compile(r"^<!-- quoted from (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def misquoted(page: str, root: Path) -> list[str]:
    """Returns the paths that `page` quotes wrongly; a path that isn't there is one of them."""
    wrong = []
    for path, quoted in QUOTATION.findall(page):
        file = root / path
        if not file.is_file() or dedented(quoted) not in dedented(file.read_text("utf-8")):
            wrong.append(path)
    return wrong


def dedented(text: str) -> str:
    """Returns the text without indentation, which a page may leave out."""
    return "\n".join(line.strip() for line in text.splitlines())


def main(pages: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    code = 0
    for name in pages:
        page = (root / name).read_text("utf-8")
        for path in misquoted(page, root):
            print(f"{name}: what it quotes from {path} isn't there", file=sys.stderr)
            code = 1
        if not QUOTATION.search(page):
            print(f"{name}: it quotes nothing", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
