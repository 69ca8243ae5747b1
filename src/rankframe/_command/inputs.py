"""The inputs of the command line as the caller writes them: files, folders, patterns, names."""

import glob
import itertools
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from rankframe.trec import _lines

PATTERN = re.compile(r"[*?\[]")


STDOUT = Path("-")  # compared by identity: a file of this name is passed as ./-


class Input(NamedTuple):
    """An input as the caller writes it: a file, a folder, a pattern, an address, or ``-``."""

    text: str
    name: str | None = None  # of NAME=FILE

    @property
    def path(self) -> Path:
        """The path of an input that is neither standard input nor an address."""
        return Path(self.text)

    @property
    def is_stdin(self) -> bool:
        """Whether it is standard input; a file of this name is passed as ./-."""
        return self.text == "-"

    @property
    def is_remote(self) -> bool:
        """Whether it is an address, which Polars reads."""
        return "://" in self.text

    @property
    def is_table(self) -> bool:
        """Whether it is a folder or a pattern, whose files are one table."""
        if self.is_stdin or self.is_remote:
            return False
        return self.path.is_dir() if self.path.exists() else bool(PATTERN.search(self.text))

    def __str__(self) -> str:
        """Name the input in an error."""
        return "<stdin>" if self.is_stdin else self.text

    def files(self) -> list[Path]:
        """Return the local files; of a table, without names that begin with _ or a dot."""
        if self.is_stdin or self.is_remote:
            return []
        if not self.is_table:
            return [self.path]
        is_folder = self.path.is_dir()
        roots = [self.text] if is_folder else glob.glob(self.text, recursive=True)  # noqa: PTH207
        fixed = list(itertools.takewhile(lambda part: not PATTERN.search(part), self.path.parts))
        start = len(self.path.parts if is_folder else fixed)
        files = {file for root in roots for file in _files_in(Path(root))}
        hidden = ("_", ".")
        return sorted(
            file
            for file in files
            if not any(part.startswith(hidden) for part in file.parts[start:])
        )


def _files_in(root: Path) -> list[Path]:
    """Return the files of a folder and of the folders in it, or a file itself."""
    if (root / "_delta_log").is_dir():
        msg = f"{root}: a Delta table, whose folder keeps rows of old versions: save it as Parquet"
        raise ValueError(msg)
    return [file for file in (root.rglob("*") if root.is_dir() else [root]) if file.is_file()]


def output_of(text: str) -> Path:
    return STDOUT if text == "-" else Path(text)


def run_of(text: str) -> Input:
    """Read FILE or NAME=FILE; a text that is a file or a pattern of files as a whole is no name."""
    name, _, rest = text.partition("=")
    whole = Input(text)
    is_name = bool(name and rest) and not re.search(r"[/\\*?\[]", name)
    if not is_name or whole.path.exists() or (whole.is_table and whole.files()):
        return whole
    return Input(rest, name)


def check_inputs(inputs: Sequence[Input]) -> None:
    """Check that all files exist, and no pipe is read twice: the second read would wait forever."""
    seen: set[Path] = set()
    for source in inputs:
        if source.is_remote:
            continue
        _check_exists(source)
        real = resolved(source)
        once = source.is_stdin or (not source.is_table and not _lines.can_be_scanned(source.path))
        if once and real in seen:
            msg = (
                f"{source}: two inputs, but it can be read only once; "
                "save it to a file, and pass the file for one of them"
            )
            raise ValueError(msg)
        seen.add(real)


def names_of(runs: Sequence[Input], tags: Sequence[str | None]) -> list[str]:
    """Name runs as the caller does, or after their files without the suffix.

    Equal names are replaced by the tags of TREC runs, by the nearest part of the paths, or by the
    whole paths as the caller writes them, if these differ.
    """
    names = [_plain_name(run) if run.name is None else run.name for run in runs]
    chosen = names.copy()
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        places = [place for place, other in enumerate(names) if other == name]
        alike = [(runs[place], tags[place]) for place in places]
        new_names = _names_apart(name, alike, {*chosen} - {name})
        for place, new_name in zip(places, new_names, strict=True):
            chosen[place] = new_name
    return chosen


def _names_apart(
    name: str, alike: Sequence[tuple[Input, str | None]], taken: Collection[str]
) -> list[str]:
    """Name runs of one name by their tags, by a part of their paths, or by the whole paths."""
    runs, tags = zip(*alike, strict=True)
    parts = zip(*(_parts(run)[::-1] for run in runs), strict=False)
    for texts in (tags, *parts, map(str, runs)):
        names = [text for text in texts if text is not None and text not in taken]
        if len({*names}) == len(runs) and all(run.name is None for run in runs):
            return names
    msg = f"two runs are called {name!r}: give each its own name, as in old={runs[0]} new={runs[1]}"
    raise ValueError(msg)


def _plain_name(run: Input) -> str:
    """Name a file without its suffix, and a table by the last part of its path that is a name."""
    parts = _parts(run)
    if run.is_stdin or not parts:
        return run.text
    last = parts[-1]
    is_one = not (run.is_table or run.is_remote)
    is_file = is_one or (not run.path.is_dir() and run.text.endswith(last))
    return Path(last).stem if is_file else last


def _parts(run: Input) -> list[str]:
    """Return the parts of a path, as the caller writes it, that are names and no patterns."""
    parts = run.text.split("/") if run.is_remote else list(run.path.parts)
    named = [part for part in parts if part not in ("", "..", run.path.anchor)]
    may_have_patterns = run.is_table or run.is_remote
    return [part for part in named if not (may_have_patterns and PATTERN.search(part))]


def _check_exists(source: Input) -> None:
    exists = source.is_stdin or (bool(source.files()) if source.is_table else source.path.exists())
    if not exists:
        written = str(source) if source.name is None else f"{source.name}={source}"
        is_folder = source.is_table and source.path.is_dir()
        problem = "it has no file" if is_folder else "no such file"
        if source.is_table:
            problem += " (names that begin with _ or . are left out)"
        msg = f"{written}: {problem}"
        raise ValueError(msg)


def resolved(source: Input) -> Path:
    """Return the real path of an input, also of standard input."""
    return (Path("/dev/stdin") if source.is_stdin else source.path).resolve()
