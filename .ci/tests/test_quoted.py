"""What counts as a quotation, and when it is wrong."""

from pathlib import Path

from quoted import misquoted

PROGRAM = "import x\n\nwith y:\n    first()\n\n    second()\n"


def page(quoted: str, path: str = "program.py") -> str:
    return f"Text.\n\n<!-- quoted from {path} -->\n```python\n{quoted}```\n"


def test_the_same_lines_are_right(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    assert misquoted(page("with y:\n    first()\n"), tmp_path) == []
    assert misquoted(page("first()\n\nsecond()\n"), tmp_path) == []


def test_other_lines_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    assert misquoted(page("with y:\n    second()\n"), tmp_path) == ["program.py"]


def test_a_file_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    assert misquoted(page("first()\n"), tmp_path) == ["program.py"]
