"""Texts with pieces for several readers are rendered before anyone sees them."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import rankframe as rf
from rankframe import errors

SRC = Path(rf.__file__).parent
TESTS = Path(__file__).parent
MARKS = re.compile(f"[{errors._OPEN}{errors._NEXT}{errors._CLOSE}{errors._NAME}]")
PIECES = {
    ("rankframe.errors", name) for name in ("option", "code", "table_code", "wording", "marked")
}
RENDERED = {
    ("rankframe.errors", name) for name in ("Problem", "RankingDataError", "warn", "rendered")
}
#: What shows a text as it is: other exceptions and warnings, and tables.
SHOWN = re.compile(r"(Error|Warning|warn|warn_explicit|lit|Series|DataFrame)$")


#: What hands a text on.
READ = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Yield, ast.YieldFrom, ast.Call),
)


class Module:
    """A module's functions, and what its names are in the library."""

    def __init__(self, path, root=SRC):
        self.name = ".".join(["rankframe", *path.relative_to(root).with_suffix("").parts])
        self.name = self.name.removesuffix(".__init__")
        self.tree = ast.parse(path.read_text())
        nodes = [*ast.walk(self.tree)]
        self.functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        self.imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        #: of each function its statements and calls by line, and all that it names
        self.parts = {function: self._parts_of(function) for function in self.functions}

    def _parts_of(self, function):
        nodes = [*ast.walk(function)]
        read = [node for node in nodes if isinstance(node, READ)]
        return sorted(read, key=lambda node: node.lineno), {*map(self.named, nodes)}

    def named(self, node):
        """Return the module and the name of a name, or of an attribute of a module."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, (self.name, node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            place = self.imported.get(node.value.id)
            return (self.name if place is None else ".".join(place), node.attr)
        return None


class Texts:
    """The functions, constants and parameters that hold pieces, and the calls that show them."""

    def __init__(self, modules):
        self.names, self.parameters, self.shown = set(PIECES), defaultdict(set), set()
        self.arguments = {
            (module.name, function.name): [
                one.arg
                for one in function.args.posonlyargs + function.args.args
                if one.arg != "self"
            ]
            for module in modules
            for function in module.functions
        }
        size = -1
        while size != (size := len(self.names) + sum(map(len, self.parameters.values()))):
            for module in modules:
                self.read(module)

    def has_piece(self, module, node, local=()):
        """Whether a value holds a piece that is not rendered."""
        name = module.named(node.func if isinstance(node, ast.Call) else node)
        if isinstance(node, ast.Call) and name in RENDERED | PIECES:
            return name in PIECES
        if name in self.names - PIECES:
            return True
        if isinstance(node, ast.Name) and node.id in local:
            return True
        children = ast.iter_child_nodes(node)
        return not isinstance(node, ast.Compare | ast.Lambda) and any(
            self.has_piece(module, child, local) for child in children
        )

    def read(self, module):
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and self.has_piece(module, node.value):
                self.names |= {(module.name, t.id) for t in node.targets if hasattr(t, "id")}
        for function in module.functions:
            self.read_function(module, function)

    def read_function(self, module, function):
        """Follow the texts from line to line: what is assigned last counts."""
        place = module.name, function.name
        local = set(self.parameters[place])
        nodes, named = module.parts[function]
        if not local and self.names.isdisjoint(named):
            return  # it holds no piece
        says = function.returns is not None and "str" in ast.unparse(function.returns)
        for node in nodes:
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                if self.has_piece(module, value, local):
                    local |= names
                elif not isinstance(node, ast.AugAssign):
                    local -= names
            elif isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
                if says and value is not None and self.has_piece(module, value, local):
                    self.names.add(place)
            elif isinstance(node, ast.Call):
                self.read_call(module, node, local)

    def read_call(self, module, call, local):
        name = module.named(call.func)
        passed = [*zip(self.arguments.get(name, map(str, range(99))), call.args, strict=False)]
        passed += [(keyword.arg, keyword.value) for keyword in call.keywords]
        held = {key for key, value in passed if self.has_piece(module, value, local)}
        if name in self.arguments:
            self.parameters[name] |= held
        elif held and name is not None and name not in RENDERED and SHOWN.search(name[1]):
            self.shown.add(f"{module.name}, line {call.lineno}: {ast.unparse(call)}")


def test_texts_with_pieces_are_rendered():
    paths = [path for path in sorted(SRC.rglob("*.py")) if path.name != "errors.py"]
    assert sorted(Texts([*map(Module, paths)]).shown) == []


@pytest.mark.parametrize(
    "line",
    [
        "raise ValueError(option('by'))",
        "raise TypeError(f'{cure()} is missing')",
        "msg = f'pass {option(name)}'; msg += '.'; raise ValueError(msg)",
        "fail(f'pass {CURE}')",
        "warnings.warn(cure())",
        "frame.with_columns(note=pl.lit(errors.code('.sort()')))",
    ],
)
def test_text_that_is_not_rendered_is_found(line, tmp_path):
    source = f"""
from rankframe import errors
from rankframe.errors import option
CURE = f"name {{option('by')}}"
def cure() -> str:
    return CURE
def fail(text: str):
    raise ValueError(text)
def verb(name):
    {line}
"""
    path = tmp_path / "verbs.py"
    path.write_text(source)
    assert len(Texts([Module(path, tmp_path)]).shown) == 1


def test_no_golden_file_of_texts_has_a_mark():
    """They hold the errors of all calls that are refused, and what results say."""
    paths = [
        *TESTS.rglob("*.txt"),
        *TESTS.rglob("*.md"),
        *(TESTS.parent / "notebooks").glob("*.md"),
    ]
    assert len(paths) > 20
    for path in paths:
        assert not MARKS.search(path.read_text()), path
