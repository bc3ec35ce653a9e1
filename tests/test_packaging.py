"""What a user installs: every module of every ring, the type marker, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
RINGS = ("core", "ports", "adapters")
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def module_files() -> list[Path]:
    return [path for ring in RINGS for path in (ROOT / ring).rglob("*.py")]


def test_every_package_is_listed() -> None:
    directories = {path.parent.relative_to(ROOT) for path in module_files()}
    found = {"handrail", *(".".join(("handrail", *directory.parts)) for directory in directories)}
    assert sorted(found) == sorted(CONFIGURATION["tool"]["setuptools"]["packages"])


def test_every_package_has_an_init_file() -> None:
    missing = [path.parent for path in module_files() if not (path.parent / "__init__.py").is_file()]
    assert not missing


def test_static_tools_see_the_rings_below_the_installed_name() -> None:
    for ring in RINGS:
        assert (ROOT / "src" / "handrail" / ring).resolve() == (ROOT / ring).resolve()


def test_the_programs_entry_point_exists() -> None:
    from handrail.adapters.cli import main

    assert CONFIGURATION["project"]["scripts"] == {"handrail": f"{main.__module__}:{main.__name__}"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy, so that the build leaves nothing in the checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in (*RINGS, "src", "tests"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(target), "."], cwd=source, check=True)
    [built] = target.glob("handrail-*.whl")
    return built


@pytest.mark.slow
def test_a_wheel_has_every_module_and_the_type_marker_and_nothing_else(wheel: Path) -> None:
    modules = {f"handrail/{path.relative_to(ROOT).as_posix()}" for path in module_files()}
    face = {f"handrail/{path.name}" for path in (ROOT / "src" / "handrail").glob("*.py")}
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    packaged = [name for name in names if ".dist-info/" not in name]
    assert sorted(packaged) == sorted({"handrail/py.typed", *face, *modules})


@pytest.mark.slow
def test_an_installed_wheel_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import handrail; print(handrail.__file__)\n"
        "from handrail.adapters.cli import main; sys.exit(main(['tools', '--json']))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True)
    where, _, listing = done.stdout.partition("\n")
    assert Path(where) == tmp_path / "handrail" / "__init__.py"
    assert '"name": "read"' in listing
