"""What a path argument means: the literal name first, then what a model may have meant. Contract section 4."""

from __future__ import annotations

import pytest

from handrail.adapters.memory.entries import Directory
from handrail.adapters.memory.environment import memory_environment
from handrail.core.errors import ToolError
from handrail.core.paths import expand, join, parent, relative_to, resolve, resolve_existing, spellings
from handrail.ports.environment import Environment

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]

CWD, HOME = "/project", "/home/user"


def world(*files: str) -> Environment:
    return memory_environment(files=dict.fromkeys(files, "x"), cwd=CWD, home=HOME)


@pytest.mark.parametrize(
    "raw, path",
    [
        ("a.txt", "/project/a.txt"),
        ("./d/../a.txt", "/project/a.txt"),
        ("/etc//hosts", "/etc/hosts"),
        ("//etc/hosts", "/etc/hosts"),
        ("@a.txt", "/project/a.txt"),
        ("@@a.txt", "/project/@a.txt"),
        ("~", "/home/user"),
        ("~/a.txt", "/home/user/a.txt"),
        ("~//a.txt", "/home/user/a.txt"),
        ("@~/a.txt", "/home/user/a.txt"),
        ("~other/a.txt", "/project/~other/a.txt"),
        ("~/..", "/home"),
        ("file:///a%20b.txt", "/a b.txt"),
        ("file://localhost/a.txt", "/a.txt"),
        ("a\u00a0b.txt", "/project/a b.txt"),
        ("a\u2003b\u3000c", "/project/a b c"),
        ("a%20b.txt", "/project/a%20b.txt"),
        ("", "/project"),
    ],
)
async def test_what_does_not_exist_is_understood(raw: str, path: str) -> None:
    assert expand(raw, cwd=CWD, home=HOME) == path
    assert await resolve(raw, world()) == path


@pytest.mark.parametrize("name", ["@a.txt", "~", "a\u00a0b.txt", "a\\x0ab", "file:", "~user"])
async def test_a_literal_name_comes_first(name: str) -> None:
    assert await resolve(name, world(f"{CWD}/{name}", f"{CWD}/a.txt", f"{CWD}/a b.txt")) == f"{CWD}/{name}"


@pytest.mark.parametrize("directory", ["@scope", "~", "a\u00a0b"])
async def test_a_new_file_goes_into_the_literal_directory(directory: str) -> None:
    env = memory_environment(files={f"{CWD}/{directory}": Directory()}, cwd=CWD, home=HOME)
    assert await resolve(f"{directory}/new.txt", env) == f"{CWD}/{directory}/new.txt"


async def test_a_meant_file_that_exists_is_not_taken_for_a_new_one() -> None:
    env = world(f"{CWD}/src/a b.txt")
    assert await resolve("src/a\u00a0b.txt", env) == f"{CWD}/src/a b.txt"
    assert await resolve("src/c\u00a0d.txt", env) == f"{CWD}/src/c\u00a0d.txt"


async def test_the_parent_of_home_is_not_the_working_directory() -> None:
    env = world(f"{CWD}/x", "/home/x")
    assert await resolve("~/..", env) == "/home"
    assert await resolve("~/../x", env) == "/home/x"


async def test_an_escaped_name_is_taken_back() -> None:
    env = world(f"{CWD}/two\nlines", f"{CWD}/bad\udcff")
    assert await resolve("two\\x0alines", env) == f"{CWD}/two\nlines"
    assert await resolve("bad\\xff", env) == f"{CWD}/bad\udcff"


@pytest.mark.parametrize(
    "stored, asked",
    [
        ("Shot 1.02\u202fPM.png", "Shot 1.02 PM.png"),
        ("Shot\u202fam.png", "Shot am.png"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("it\u2019s.txt", "it's.txt"),
        ("l\u2019e\u0301te\u0301.txt", "l'\u00e9t\u00e9.txt"),
    ],
)
async def test_an_existing_file_is_found_under_the_spelling_of_its_disk(stored: str, asked: str) -> None:
    env = world(f"{CWD}/{stored}")
    assert await resolve_existing(asked, env) == f"{CWD}/{stored}"
    assert await resolve(asked, env) == f"{CWD}/{asked}"
    assert await resolve_existing("missing.txt", env) == f"{CWD}/missing.txt"


def test_a_name_that_has_one_spelling_has_no_others() -> None:
    assert list(spellings("/project/plain.txt")) == []


@pytest.mark.parametrize("raw", ["a\0b", "\0", "file:///a%00b"])
async def test_a_nul_is_refused(raw: str) -> None:
    with pytest.raises(ToolError, match="NUL byte") as caught:
        await resolve(raw, world())
    assert caught.value.code == "nul_in_argument"


@pytest.mark.parametrize("raw", ["file://server/share", "file://", "file:///a%2Fb", "file:///%ff"])
async def test_a_bad_file_url_is_refused(raw: str) -> None:
    with pytest.raises(ToolError) as caught:
        await resolve(raw, world())
    assert caught.value.code == "bad_file_url"


def test_windows_paths_keep_their_own_rules() -> None:
    cwd, home = "C:\\work", "C:\\Users\\me"
    assert expand("src/a.txt", cwd=cwd, home=home) == "C:\\work\\src\\a.txt"
    assert expand("~/a.txt", cwd=cwd, home=home) == "C:\\Users\\me\\a.txt"
    assert expand("D:/x/../y", cwd=cwd, home=home) == "D:\\y"
    assert expand("file:///C:/x%20y", cwd=cwd, home=home) == "C:\\x y"
    assert join(cwd, "a.txt") == "C:\\work\\a.txt"
    assert parent("C:\\work\\a.txt") == cwd
    assert relative_to("C:\\work\\src\\a.txt", cwd) == "src/a.txt"


def test_relative_paths() -> None:
    assert relative_to("/project/src/a.txt", "/project") == "src/a.txt"
    assert relative_to("/project/a.txt", "/") == "project/a.txt"
    assert relative_to("/projects/a.txt", "/project") == "/projects/a.txt"
    assert relative_to("/project", "/project") == "/project"
    assert relative_to("/", "/") == "/"
