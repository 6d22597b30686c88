"""The examples of the documentation run as they stand, against a real server."""

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

import tallylock
import tallylock.aio
from servers import ROOT, Server

PAGES = (ROOT / "docs" / "python.md", ROOT / "bindings" / "python" / "README.md")
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code: str, server: Server) -> None:
    compiled = compile(
        code.replace("redis://127.0.0.1:6379", server.url), "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    result = eval(compiled, {"__name__": "example"})  # noqa: S307 - our own documentation
    if inspect.iscoroutine(result):
        asyncio.run(result)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_has_examples(page: Path) -> None:
    assert "```python\n" in page.read_text()


@pytest.mark.parametrize("module", [tallylock, tallylock.aio], ids=lambda module: module.__name__)
def test_everything_public_is_documented(module: object) -> None:
    for name in getattr(module, "__all__"):  # noqa: B009
        public = getattr(module, name)
        assert public.__doc__, name
        for attribute, member in vars(public).items() if inspect.isclass(public) else ():
            if inspect.isfunction(member) and not attribute.startswith("_"):
                assert member.__doc__, f"{name}.{attribute}"
