"""The project's charset: which .editorconfig counts, which section, and when it is asked for at all."""

from __future__ import annotations

import pytest

from handrail.adapters.memory import Directory, memory_environment
from handrail.core.editorconfig import decode_in_project, project_charset
from handrail.core.text import TextDocument

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


async def charset(files: dict[str, str], path: str = "/project/src/a.txt") -> str | None:
    return await project_charset(memory_environment(dict(files)), path)


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ("[*]\ncharset = latin1\n", "latin1"),
        ("[*]\nCharset=UTF-16LE\n", "utf-16le"),
        ("\ufeff[*]\r\ncharset = latin1\r\n", "latin1"),
        ("[*.txt]\ncharset = latin1\n", "latin1"),
        ("[src/*.txt]\ncharset = latin1\n", "latin1"),
        ("[/src/*.txt]\ncharset = latin1\n", "latin1"),
        ("[/*.txt]\ncharset = latin1\n", None),
        ("[**.txt]\ncharset = latin1\n", "latin1"),
        ("[{*.md,*.txt}]\ncharset = latin1\n", "latin1"),
        ("[*.md]\ncharset = latin1\n", None),
        ("[*]\ncharset = latin1\n[*.txt]\ncharset = gbk\n", "gbk"),  # the last section that fits
        ("[*.txt]\ncharset = gbk\n[*]\ncharset = latin1\n", "latin1"),
        ("[*]\ncharset = latin1\n[*.txt]\ncharset = unset\n", None),
        ("[*]\n# charset = gbk\n; charset = gbk\nindent_size = 2\n", None),
        ("charset = gbk\n", None),  # before any section
        ("[*\ncharset = gbk\n", None),
        ("[[]\ncharset = gbk\n[*]\ncharset = latin1\n", "latin1"),  # a section that is no glob
        ("", None),
    ],
)
async def test_the_section_decides(config: str, found: str | None) -> None:
    assert await charset({"/project/.editorconfig": config}) == found


async def test_closer_files_win() -> None:
    files = {"/project/.editorconfig": "[*]\ncharset = gbk\n", "/project/src/.editorconfig": "[*]\ncharset = latin1\n"}
    assert await charset(files) == "latin1"
    assert await charset(files, "/project/b.txt") == "gbk"


async def test_silent_files_leave_it_to_those_above_until_the_root() -> None:
    above = {"/project/.editorconfig": "[*]\ncharset = gbk\n"}
    assert await charset({**above, "/project/src/.editorconfig": "[*]\nindent_size = 2\n"}) == "gbk"
    assert await charset({**above, "/project/src/.editorconfig": "root = true\n[*]\nindent_size = 2\n"}) is None
    assert await charset({**above, "/project/src/.editorconfig": "root = false\n"}) == "gbk"
    # Only the preamble makes a root.
    assert await charset({**above, "/project/src/.editorconfig": "[*]\nroot = true\n"}) == "gbk"


async def test_a_config_that_cannot_be_read_is_none() -> None:
    env = memory_environment({"/project/src/.editorconfig": Directory(), "/project/.editorconfig": "[*]\ncharset=gbk"})
    assert await project_charset(env, "/project/src/a.txt") == "gbk"
    env.files.faults.deny("/project/.editorconfig")
    assert await project_charset(env, "/project/src/a.txt") is None


async def test_only_a_file_that_is_not_unicode_asks_the_project() -> None:
    env = memory_environment({".editorconfig": "[*]\ncharset = koi8-r\n"})
    russian = "\u0434\u0430"

    async def text(data: bytes, encoding: str | None = None) -> str:
        document = await decode_in_project(env, "/project/a.txt", data, encoding=encoding)
        assert isinstance(document, TextDocument)
        return document.text

    assert await text(russian.encode("koi8-r")) == russian
    assert await text(russian.encode("cp866"), encoding="cp866") == russian
    # Now any look at a file would raise.
    env.files.faults.fail("io_error", times=None)
    env.files.faults.before(_fail, operation="read")
    assert await text(russian.encode()) == russian
    assert await text(russian.encode("utf-16")) == russian
    assert await text("plain words".encode("utf-16-le")) == "plain words"


async def _fail() -> None:
    raise AssertionError("a file was read")
