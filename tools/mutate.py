"""Do the tests notice? ``python -m tools.mutate --seed 1 --count 30`` breaks random lines, one at a time.

A line of ``src/`` is drawn with the seed, and something in it is changed: a comparison turned round, a number
raised by one, ``and`` made ``or``, a statement dropped. The tests of its room run on a copy of ``src/``; the
working tree is never touched. A mutation that survives is a test that is missing, or a line that does not
matter: either is worth a look.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

ROOT = Path(__file__).resolve().parents[1]
_OPPOSITE: dict[type[ast.AST], Any] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.In: ast.NotIn,
    ast.Is: ast.IsNot,
    ast.Add: ast.Sub,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items() if one is not ast.Mult}


class Mutation(NamedTuple):
    """A part of a file and what takes its place."""

    path: Path
    line: int
    before: str
    after: str
    content: str  # of the whole file, changed

    def __str__(self) -> str:
        shown = (" ".join(text.split())[:60] for text in (self.before, self.after))
        return f"{self.path.relative_to(ROOT)}:{self.line}  {' -> '.join(shown)}"


def changed(node: ast.AST) -> ast.AST | None:
    """Another node in the place of this one; none where there is nothing to change."""
    other: Any = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in _OPPOSITE:
        other.ops[0] = _OPPOSITE[type(other.ops[0])]()
    elif isinstance(other, ast.BoolOp | ast.BinOp) and type(other.op) in _OPPOSITE:
        other.op = _OPPOSITE[type(other.op)]()
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        other.value = not other.value
    elif isinstance(other, ast.Constant) and isinstance(other.value, int | float):
        other.value += 1
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        return other.operand
    elif isinstance(other, ast.Assign | ast.AugAssign | ast.Raise) or (
        isinstance(other, ast.Expr) and isinstance(other.value, ast.Call)
    ):
        return ast.Pass()
    else:
        return None
    return cast(ast.AST, other)


def mutations(path: Path) -> Iterator[Mutation]:
    """All that can be changed in a file; annotations, defaults of fields and what is imported are left."""
    whole, starts = path.read_bytes(), [0]
    for line in whole.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    functions = (node for node in ast.walk(ast.parse(whole)) if isinstance(node, ast.FunctionDef))
    for statement in (statement for function in functions for statement in function.body):
        node: Any
        for node in ast.walk(statement):
            other = changed(node)
            if other is None or isinstance(statement, ast.FunctionDef | ast.ClassDef):
                continue
            low = starts[node.lineno - 1] + node.col_offset
            high = starts[node.end_lineno - 1] + node.end_col_offset
            if not _stands_for(whole[low:high].decode(), node):  # within an f-string places are not known
                continue
            part = ast.unparse(other)
            part = part if isinstance(other, ast.stmt | ast.Constant) else f"({part})"
            content = whole[:low] + part.encode() + whole[high:]
            yield Mutation(path, node.lineno, whole[low:high].decode(), part, content.decode())


def _stands_for(text: str, node: ast.AST) -> bool:
    try:
        return ast.unparse(ast.parse(f"({text})" if isinstance(node, ast.expr) else text)) == ast.unparse(
            node
        )
    except SyntaxError:
        return False


def tests_of(path: Path) -> list[Path]:
    """The folder of tests that mirrors a room; of a single module, the tests that import it."""
    room, *more = path.relative_to(ROOT / "src" / "nodejepa").with_suffix("").parts
    if more and (ROOT / "tests" / room).is_dir():
        return [ROOT / "tests" / room]
    named = ROOT / "tests" / f"test_{room}.py"
    using = (p for p in sorted((ROOT / "tests").rglob("test_*.py")) if f"nodejepa.{room} " in p.read_text())
    return [named] if named.exists() else [*using][:6]


def notices(mutation: Mutation, tests: list[Path], timeout: float) -> bool:
    """Whether the tests fail, or do not end, with the mutation."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / mutation.path.relative_to(ROOT / "src")).write_text(mutation.content, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *map(str, tests)]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode != 0


def main() -> None:
    """Draw, break, run and say."""
    parser = argparse.ArgumentParser(description="Break random lines of src/ and see whether tests notice.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--room", default="", help="only files below this folder of the package")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for the tests of one mutation")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    files = sorted((ROOT / "src" / "nodejepa" / asked.room).rglob("*.py"))
    lines: dict[tuple[Path, int], list[Mutation]] = {}
    for mutation in (mutation for path in files for mutation in mutations(path)):
        lines.setdefault((mutation.path, mutation.line), []).append(mutation)
    survived = 0
    for place in rng.sample(sorted(lines), asked.count):
        mutation, started = rng.choice(lines[place]), time.monotonic()
        tests = tests_of(mutation.path)
        caught = bool(tests) and notices(mutation, tests, asked.timeout)
        survived += not caught
        by = ", ".join(str(path.relative_to(ROOT)) for path in tests) or "no tests"
        seconds = time.monotonic() - started
        print(f"{'caught  ' if caught else 'SURVIVED'}  {mutation}  ({by}, {seconds:.0f} s)", flush=True)
    print(f"{asked.count - survived} of {asked.count} caught")


if __name__ == "__main__":
    main()
