"""Names without an underscore are a promise: every public list is complete, sorted, and tells the truth."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import handrail

HOMES: dict[str, str] = handrail._HOMES  # pyright: ignore[reportPrivateUsage] - the table is what is tested

ROOT = Path(__file__).parent.parent
RINGS = ("core", "ports", "adapters")
MODULES = sorted(
    ".".join(("handrail", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for ring in RINGS
    for path in (ROOT / ring).rglob("*.py")
    if not path.name.startswith("_") or path.name == "__init__.py"
)


def defined_names(module: ModuleType) -> set[str]:
    """The public names that a module defines itself: classes, functions, constants; no type variables."""
    assert module.__file__ is not None
    names: set[str] = set()
    for node in ast.parse(Path(module.__file__).read_text("utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not makes_type_variable(value):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return {name for name in names if not name.startswith("_")}


def makes_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


@pytest.mark.parametrize("name", MODULES)
def test_a_module_lists_what_it_defines(name: str) -> None:
    module = import_module(name)
    listed: list[str] = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    assert defined_names(module) <= set(listed)
    for each in listed:
        assert hasattr(module, each), f"{name}.{each} does not exist"


def test_the_public_face_is_sorted() -> None:
    assert handrail.__all__ == sorted(handrail.__all__)


@pytest.mark.parametrize("name", handrail.__all__)
def test_a_public_name_is_that_of_its_home(name: str) -> None:
    home = import_module(HOMES[name])
    assert getattr(handrail, name) is getattr(home, name)
    assert name in home.__all__


def test_the_public_face_is_the_same_for_programs_and_type_checkers() -> None:
    assert handrail.__file__ is not None
    tree = ast.parse(Path(handrail.__file__).read_text("utf-8"))
    seen_by_type_checkers = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("handrail.")
        for alias in node.names
    }
    assert seen_by_type_checkers == HOMES
    assert sorted(HOMES) == handrail.__all__
    assert set(handrail.__all__) <= set(dir(handrail))


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="toolbx"):
        getattr(handrail, "toolbx")  # noqa: B009 - a type checker refuses the plain form, as it should


def test_a_star_import_gives_every_public_name() -> None:
    namespace: dict[str, object] = {}
    exec("from handrail import *", namespace)
    assert set(handrail.__all__) <= set(namespace)
