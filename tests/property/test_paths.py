"""Laws of paths: contract section 4."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.memory.environment import memory_environment
from handrail.core.errors import ToolError
from handrail.core.paths import expand, join, parent, relative_to, resolve, resolve_existing, show_name, unescape_name
from strategies import names, plain_names

pytestmark = pytest.mark.anyio

CWD, HOME = "/project/work", "/home/user"

RELATIVE = st.lists(plain_names | st.sampled_from([".", "..", "", "a b", "@x", "~"]), min_size=1, max_size=5).map(
    "/".join
)
ABSOLUTE = RELATIVE.map(lambda path: "/" + path.lstrip("/"))
RAW = RELATIVE | ABSOLUTE | RELATIVE.map(lambda path: f"~/{path}") | RELATIVE.map(lambda path: f"@{path}")
ODD_NAMES = names(undecodable=True)


def expanded(raw: str) -> str:
    return expand(raw, cwd=CWD, home=HOME)


@given(RAW)
def test_an_expanded_path_is_absolute_and_normal(raw: str) -> None:
    path = expanded(raw)
    assert path.startswith("/")
    assert path == posixpath.normpath(path)
    assert not path.startswith("//")


@given(RAW)
def test_expanding_an_expanded_path_changes_nothing(raw: str) -> None:
    path = expanded(raw)
    assert expanded(path) == path
    assert expand(path, cwd="/elsewhere", home="/another") == path


@given(RELATIVE)
def test_a_leading_at_sign_and_unicode_spaces_mean_nothing(path: str) -> None:
    if not path.startswith(("@", "~")):
        assert expanded(f"@{path}") == expanded(path)
    for space in "\u00a0\u2003\u202f\u3000":
        assert expanded(path.replace(" ", space)) == expanded(path)


@given(ABSOLUTE)
def test_a_file_url_is_its_path(path: str) -> None:
    for host in ("", "localhost"):
        assert expanded(f"file://{host}{path.replace(' ', '%20')}") == expanded(path)


@given(st.text(max_size=20).filter(lambda text: not text.removeprefix("@").startswith("file://")))
def test_no_text_breaks_expansion(raw: str) -> None:
    assert expanded(raw).startswith("/")


@given(ODD_NAMES)
def test_a_shown_name_can_be_given_back(name: str) -> None:
    assert unescape_name(show_name(name)) == name


@given(ODD_NAMES)
def test_a_shown_name_is_one_printable_line_of_valid_unicode(name: str) -> None:
    shown = show_name(name)
    shown.encode("utf-8")
    assert len(shown.splitlines()) == 1
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in shown)


@given(ODD_NAMES, ODD_NAMES)
def test_two_names_are_never_shown_alike(one: str, other: str) -> None:
    assert (show_name(one) == show_name(other)) == (one == other)


@given(st.lists(ODD_NAMES, min_size=1, max_size=4).map("/".join))
def test_a_path_is_shown_like_its_names(path: str) -> None:
    assert show_name(path) == "/".join(show_name(name) for name in path.split("/"))


@given(ABSOLUTE.map(expanded), ODD_NAMES)
def test_joining_and_taking_apart_are_inverse(directory: str, name: str) -> None:
    path = join(directory, name)
    assert parent(path) == directory
    assert relative_to(path, directory) == name


@given(ABSOLUTE.map(expanded), ABSOLUTE.map(expanded))
def test_a_path_outside_a_directory_stays_as_it_is(path: str, directory: str) -> None:
    relative = relative_to(path, directory)
    if f"{path}/".startswith(f"{directory.rstrip('/')}/") and path != directory:
        assert join(directory, relative) == path
    else:
        assert relative == path


@given(ODD_NAMES, st.sampled_from(["", "below here/", "./", "../work/", "below here/../"]))
async def test_an_existing_name_is_found_as_it_is_and_as_it_is_shown(name: str, prefix: str) -> None:
    env = memory_environment(files={f"{CWD}/{name}": "x", f"{CWD}/below here/{name}": "x"}, cwd=CWD, home=HOME)
    wanted = posixpath.normpath(f"{CWD}/{prefix}{name}")
    for raw in (f"{prefix}{name}", f"{prefix}{show_name(name)}", wanted, f"{CWD}/{prefix}{show_name(name)}"):
        assert await resolve(raw, env) == wanted
        assert await resolve_existing(raw, env) == wanted


@given(RAW)
async def test_a_path_that_does_not_exist_resolves_as_it_expands(raw: str) -> None:
    env = memory_environment(cwd=CWD, home=HOME)
    first = raw.partition("/")[0]
    if first not in (".", ".."):  # those exist, so the rest is taken to the letter
        assert await resolve(raw, env) == expanded(raw)


@given(st.text(max_size=10), st.text(max_size=10))
async def test_a_nul_is_refused_with_its_place(before: str, after: str) -> None:
    raw = f"{before}\0{after}"
    with pytest.raises(ToolError) as caught:
        await resolve(raw, memory_environment(cwd=CWD), argument="pattern")
    assert caught.value.code == "nul_in_argument"
    assert f"pattern has a NUL byte at position {raw.index(chr(0))}" in caught.value.message
