"""Mutants: copies of the library that are wrong in one place, which the tests should notice.

With ``python -m benchmarks.mutants reach`` the fast tier of each file of tests notes the mutants
whose code it runs; ``run`` gives each mutant, in a copy of this checkout, to those files, nearest
first; ``run --tier thorough`` those that live. All go on in ``--results`` where they were stopped.
``sample`` draws again what is gone from ``mutants.json``; ``reach`` then needs new results.
``reason`` in the sample is why a mutant may live.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

TOP = Path(__file__).parents[1]
SOURCE = TOP / "src" / "rankframe"
SAMPLE = TOP / "benchmarks" / "mutants.json"
SIZE, SEED, MISSES = 120, 46, 3
TIERS = ("fast", "thorough")
SLOW = ("tests/spark", "tests/test_notebooks.py")  # a mutant elsewhere needs them if no other file
BATCH = 60  # seconds of tests in one process

#: What a node of the syntax tree looks like, and what it becomes.
OPERATORS = """Gt:>:>=, GtE:>=:>, Lt:<:<=, LtE:<=:<, Eq:==:!=, NotEq:!=:==, Is:is:is not,
IsNot:is not:is, In:in:not in, NotIn:not in:in, And:and:or, Or:or:and, Not:not:, Invert:~:,
Add:+:-, Sub:-:+, Mult:*:/, Div:/:*, FloorDiv://:*, Mod:%:*, Pow:**:*, USub:-:, BitAnd:&:|,
BitOr:|:&"""
CHANGES = {name: change for name, *change in re.findall(r"(\w+):(.*?):(.*?)(?:,\s|$)", OPERATORS)}
PAIRS = "min max, sum mean, any all, first last, head tail, ceil floor, is_null is_not_null, lt le"
METHODS = {a: b for pair in PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}


class Mutant(NamedTuple):
    """A change of source text, found again by the text of its line where code has moved."""

    file: str
    line: int  # when it was drawn
    text: str
    occurrence: int  # among lines of this text
    column: int  # in the text
    kind: str
    before: str
    after: str
    reason: str = ""

    @property
    def id(self) -> str:
        own = self._replace(line=0, reason="")
        return hashlib.sha256(repr(tuple(own)).encode()).hexdigest()[:8]

    def place(self, source: str) -> int | None:
        """Find where ``before`` begins; None if it is gone."""
        line = rf"^[ \t]*({re.escape(self.text)})[ \t]*$"
        same = [hit.start(1) for hit in re.finditer(line, source, re.MULTILINE)]
        start = same[self.occurrence] + self.column if self.occurrence < len(same) else None
        return start if start is not None and source.startswith(self.before, start) else None

    def apply(self, source: str) -> str:
        start = self.place(source)
        assert start is not None
        return source[:start] + self.after + source[start + len(self.before) :]


class Edit(NamedTuple):
    """Text from start to end becomes ``after``; ``outer`` is the expression that it is part of."""

    start: int
    end: int
    after: str
    kind: str
    outer: tuple[int, int]


def edits(source: str) -> Iterator[Edit]:
    """Find all edits, for one operator, constant, method, keyword or returned value each.

    >>> for edit in edits("x = a.max(b=True) if n > 1 else not c"):
    ...     print(edit.kind, repr(edit.after))
    comparison '>='
    number '0'
    method 'min'
    keyword ''
    truth 'False'
    operator ''
    """
    lines = source.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def offset(line: int, column: int) -> int:  # ast counts bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: Any) -> tuple[int, int]:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    for node in changeable(ast.parse(source)):
        pairs: list[tuple[ast.AST, int, int]] = []  # an operator, and where to look for it
        match node:
            case ast.Compare():
                sides = [span(side) for side in (node.left, *node.comparators)]
                gaps = zip(node.ops, pairwise(sides), strict=True)
                pairs = [(op, a[1], b[0]) for op, (a, b) in gaps]
            case ast.BoolOp():
                sides = [span(side) for side in node.values]
                pairs = [(node.op, a[1], b[0]) for a, b in pairwise(sides)]
            case ast.BinOp() if not (is_text(node.left) or is_text(node.right)):
                pairs = [(node.op, span(node.left)[1], span(node.right)[0])]
            case ast.UnaryOp():
                pairs = [(node.op, span(node)[0], span(node.operand)[0])]
            case ast.Constant(value=bool()):
                yield Edit(*span(node), str(not node.value), "truth", span(node))
            case ast.Constant(value=int() | float()):
                near = node.value - 1 if node.value % 2 == 1 else node.value + 1
                yield Edit(*span(node), repr(near), "number", span(node))
            case ast.Return(value=ast.AST() as value) if not (is_text(value) or is_other(value)):
                yield Edit(*span(value), "None", "return", span(value))
            case ast.Call(func=ast.Attribute(attr=method)) if method in METHODS:
                end = span(node.func)[1]
                yield Edit(end - len(method), end, METHODS[method], "method", span(node))
            case ast.keyword(arg=str(), value=ast.Constant(value=bool())):
                start, end = span(node)
                comma = re.compile(r"\s*,").match(source, end)
                yield Edit(start, comma.end() if comma else end, "", "keyword", span(node.value))
            case _:
                pass
        kind = "comparison" if isinstance(node, ast.Compare) else "operator"
        for op, start, end in pairs:
            symbol, other = CHANGES.get(type(op).__name__, ("", ""))
            words = r"\s+".join(map(re.escape, symbol.split()))
            if symbol and (hit := re.compile(words).search(source, start, end)):
                yield Edit(hit.start(), hit.end(), other, kind, span(node))


def changeable(node: ast.AST) -> Iterator[ast.AST]:
    """Walk without types, texts, errors, and calls of which an argument is only a guard."""
    yield node
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_type = field in {"annotation", "returns"}
            if isinstance(child, ast.AST) and not (is_type or is_other(child)):
                yield from changeable(child)


def is_other(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.pattern() | ast.Assign([ast.Name("msg")]):
            return True
        case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
            return True
        case ast.Call(ast.Name(name)):
            return name in {"cast", "isinstance", "zip"} or name.endswith("Error")
    return False


def is_text(node: ast.AST) -> bool:
    """Whether an operator would break at once here, or None would be the same."""
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str | None)
    return constant or isinstance(node, ast.JoinedStr | ast.List | ast.ListComp)


def room(path: str) -> str:
    """The room of a source file or of a file of tests; those of no room are of the room ``""``.

    >>> room("src/rankframe/_tables/rules.py"), room("tests/tables/test_rules.py")
    ('tables', 'tables')
    """
    first = path.removeprefix("src/rankframe/").removeprefix("tests/").partition("/")[0]
    return "" if first.endswith(".py") else first.lstrip("_")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """List all mutants of a file."""
    source, file = path.read_text(encoding="utf-8"), str(path.relative_to(TOP))
    lines = [line.strip() for line in source.split("\n")]
    for edit in edits(source):
        number = source.count("\n", 0, edit.start)
        begin = source.rfind("\n", 0, edit.start) + 1
        column = len(source[begin : edit.start].lstrip())
        place = (lines[number], lines[:number].count(lines[number]), column)
        change = (edit.kind, source[edit.start : edit.end], edit.after)
        yield Mutant(file, number + 1, *place, *change)


def is_gone(mutant: Mutant) -> bool:
    path = TOP / mutant.file
    return not path.exists() or mutant.place(path.read_text(encoding="utf-8")) is None


def draw(old: list[Mutant]) -> list[Mutant]:
    """Draw the sample, or add what an old one lacks: from each room by its lines of code."""
    found: dict[str, list[Mutant]] = {}
    code: Counter[str] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        own = room(str(path.relative_to(TOP)))
        found.setdefault(own, []).extend(mutants_of(path))
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        code[own] += len({node.lineno for node in nodes if hasattr(node, "lineno")})
    shares = {own: SIZE * count / code.total() for own, count in code.items()}
    quotas = Counter({own: max(1, int(share)) for own, share in shares.items()})
    by_rest = sorted(shares, key=lambda own: int(shares[own]) - shares[own])
    quotas.update(by_rest[: SIZE - quotas.total()])
    sample: list[Mutant] = []
    for own in sorted(quotas):
        kept = [mutant for mutant in old if room(mutant.file) == own and not is_gone(mutant)]
        taken = {(mutant.file, mutant.text) for mutant in kept}
        new = [m for m in shuffled(found[own], own) if (m.file, m.text) not in taken]
        sample += sorted([*kept, *new[: max(0, quotas[own] - len(kept))]])
    return sample


def shuffled(mutants: list[Mutant], own: str) -> list[Mutant]:
    """Take one mutant of each line, and the kinds in turns."""
    rng, turns, places = random.Random(f"{SEED} {own}"), Counter[str](), {}
    lines = {(m.file, m.line): m for m in rng.sample(mutants, len(mutants))}
    for mutant in rng.sample([*lines.values()], len(lines)):
        places[mutant] = turns[mutant.kind] + rng.random()
        turns[mutant.kind] += 1
    return sorted(places, key=places.__getitem__)


def records(path: Path, key: str) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [record for line in lines if key in (record := json.loads(line))]


def append(path: Path, **record: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    sys.stdout.write(" ".join(f"{value}"[:90] for value in record.values()) + "\n")


@contextmanager
def copy() -> Iterator[Path]:
    """Copy the checkout, beside a link to the shared data."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "main"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
        shutil.copytree(TOP, top, ignore=ignored)
        if (TOP.parent / "shared").is_dir():
            (top.parent / "shared").symlink_to(TOP.parent / "shared")
        yield top


def run_tests(top: Path, seconds: float, *options: str, **env: str) -> str:
    """Run tests of a copy, and return the name of a test that failed, if any."""
    command = [sys.executable, "-m", "pytest", "--tb=no", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=ci", *options]  # draws the same examples each time
    command += ["tests/pages.py"]  # without a path in tests, pytest knows no --thorough
    env = {**os.environ, "PYTHONPATH": str(top / "src"), **env}
    with tempfile.TemporaryFile("w+") as out:
        start = {"cwd": top, "env": env, "start_new_session": True}
        process = subprocess.Popen(command, stdout=out, stderr=out, **start)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        with suppress(ProcessLookupError):  # also what tests left running
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        out.seek(0)
        output = out.read()
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", output, re.MULTILINE)
    return "" if code in {0, 5} else failed[1] if failed else f"exit code {code}"


def all_units() -> list[str]:
    """List what runs in a process of its own for ``reach``: files of tests, a room's examples."""
    examples = [p for p in SOURCE.iterdir() if p.is_dir() or p.suffix == ".py"]
    examples = [p for p in examples if p.name not in {"spark", "__pycache__", "__main__.py"}]
    paths = sorted(examples) + sorted((TOP / "tests").rglob("test_*.py"))
    return [str(path.relative_to(TOP)) for path in paths]


AT = """import os
seen = set()
def at(mutant):
    if mutant not in seen and "REACH" in os.environ:
        seen.add(mutant)
        with open(os.environ["REACH"], "a") as file:
            file.write(mutant + chr(10))
"""


def mark(top: Path, sample: list[Mutant]) -> None:
    """Let the expression around each mutant call ``reach.at``: in every thread and process."""
    (top / "src" / "reach.py").write_text(AT)
    for file in {mutant.file for mutant in sample}:
        source = (top / file).read_text(encoding="utf-8")
        outer = {(e.start, e.kind, e.after): e.outer for e in edits(source)}
        inserts: list[tuple[int, str]] = []
        for mutant in sample:
            if mutant.file == file and (place := mutant.place(source)) is not None:
                start, end = outer[place, mutant.kind, mutant.after]
                inserts.append((start, f"(__import__('reach').at('{mutant.id}') or ("))
                inserts.append((end, "))"))
        for place, text in sorted(inserts, reverse=True):
            source = source[:place] + text + source[place:]
        (top / file).write_text(source, encoding="utf-8")


def reach(sample: list[Mutant], results: Path, jobs: int) -> None:
    """Note for each unit its seconds, what fails without a mutant, and what it reaches."""
    done = {record["unit"] for record in records(results, "unit")}
    with copy() as top:
        mark(top, sample)

        def examine(unit: str) -> None:
            own, start = top.parent / unit.replace("/", "-"), time.monotonic()
            failed = run_tests(top, 3600, unit, REACH=str(own))
            reached = sorted(set(own.read_text().split())) if own.exists() else []
            seconds = round(time.monotonic() - start)
            append(results, unit=unit, failed=failed, seconds=seconds, reached=reached)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(examine, [unit for unit in all_units() if unit not in done]))


def batches(mutant: Mutant, units: list[dict[str, Any]]) -> Iterator[tuple[list[str], int]]:
    """Order the units that reach a mutant: those of its room, then others, the short ones first."""
    near = [unit for unit in units if mutant.id in unit["reached"] and not unit["failed"]]
    quick = [u for u in near if not u["unit"].startswith(SLOW) or is_near(mutant, u)]
    names, seconds = [], 0
    for unit in sorted(quick or near, key=lambda u: (not is_near(mutant, u), u["seconds"])):
        names.append(unit["unit"])
        seconds += unit["seconds"]
        if seconds >= BATCH:
            yield names, seconds
            names, seconds = [], 0
    if names:
        yield names, seconds


def is_near(mutant: Mutant, unit: dict[str, Any]) -> bool:
    return room(mutant.file) == room(unit["unit"])


def run(sample: list[Mutant], results: Path, jobs: int, tier: str) -> None:
    """Run the tests of a tier on each mutant; the thorough tier on those that the fast one left."""
    units = [unit for unit in records(results, "unit") if (TOP / unit["unit"]).exists()]
    broken = [unit["unit"] for unit in units if unit["failed"]]
    sys.stdout.write(f"left out, for they fail without a mutant: {broken}\n" if broken else "")

    options = ["-x", *(["--thorough"] if tier == "thorough" else [])]

    def examine(mutant: Mutant) -> None:
        start, gone = time.monotonic(), is_gone(mutant)
        tests = [] if gone else [*batches(mutant, units)]
        with copy() as top:
            if tests:
                path = top / mutant.file
                path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            calls = (
                run_tests(top, 120 + 5 * seconds, *options, *batch) for batch, seconds in tests
            )
            by = next(filter(None, calls), "")
        result = "gone" if gone else "killed" if by else "survived" if tests else "unreached"
        own = {"id": mutant.id, "tier": tier, "result": result, "by": by}
        where = {"place": f"{mutant.file}:{mutant.line}", "change": change_of(mutant)}
        append(results, **own, **where, seconds=round(time.monotonic() - start))

    of_sample = fates(sample, results)
    left = [m for m in sample if tier not in of_sample[m]]
    if tier == "thorough":
        left = [m for m in left if of_sample[m].get("fast") == "survived"]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(examine, left))


def change_of(mutant: Mutant) -> str:
    return f"{mutant.before} → {mutant.after or 'nothing'}"


def fates(sample: list[Mutant], results: Path) -> dict[Mutant, dict[str, str]]:
    """Look up what each tier did to each mutant."""
    done = {(r["id"], r["tier"]): r["result"] for r in records(results, "tier")}
    return {m: {t: done[m.id, t] for t in TIERS if (m.id, t) in done} for m in sample}


def summary(sample: list[Mutant], results: Path) -> str:
    """Count by room what each tier killed, and list what the fast one did not."""
    of_sample = fates(sample, results)
    lines = [f"{'room':12} mutants, killed by the fast tier, only by the thorough one"]
    for own in [*sorted({room(mutant.file) for mutant in sample}), "all"]:
        tiers = [fate for m, fate in of_sample.items() if own in {room(m.file), "all"}]
        fast, thorough = ([fate.get(t) for fate in tiers].count("killed") for t in TIERS)
        lines.append(f"{own or 'no room':12} {len(tiers):7} {fast:7} {thorough:7}")
    for m, fate in of_sample.items():
        if fate.get("fast") != "killed":
            lines.append(f"{m.id} {m.file}:{m.line}: {change_of(m)}: {fate}\n    {m.text}")
            lines.append(f"    {m.reason or 'no reason yet'}")
    lines.append(f"the fast tier misses {thorough}; at most {MISSES} may be missed")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["sample", "reach", "run"])
    parser.add_argument("--tier", choices=TIERS, default="fast")
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    parser.add_argument("--results", type=Path, default=Path("/tmp/mutants.jsonl"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    text = options.sample.read_text(encoding="utf-8") if options.sample.exists() else "[]"
    sample = [Mutant(**entry) for entry in json.loads(text)]
    if options.step == "sample":
        entries = [json.dumps(m._asdict(), ensure_ascii=False) for m in draw(sample)]
        options.sample.write_text("[\n" + ",\n".join(entries) + "\n]\n", encoding="utf-8")
    elif options.step == "reach":
        reach(sample, options.results, options.jobs)
    else:
        run(sample, options.results, options.jobs, options.tier)
        sys.stdout.write(summary(sample, options.results) + "\n")


if __name__ == "__main__":
    main()
