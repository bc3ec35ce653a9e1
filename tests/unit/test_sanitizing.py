"""Sanitising: what a terminal would act on goes, text stays."""

from __future__ import annotations

import pytest

from handrail.core.sanitizing import Sanitizer, sanitize


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain ünïcode 漢 😀", "plain ünïcode 漢 😀"),
        ("tab\tnewline\nreturn\r", "tab\tnewline\nreturn\r"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mtrue colour\x1b[m", "true colour"),
        ("\x1b[?25lhidden\x1b[?25h", "hidden"),
        ("\x1b[2 q\x1b[!pcursor", "cursor"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2;0;0;0#0~~\x1b\\image", "image"),
        ("\x1b^private\x1b\\\x1b_application\x1b\\\x1bXstring\x1b\\text", "text"),
        ("\x1b(B\x1b)0\x1b#8charset", "charset"),
        ("\x1b7\x1b8\x1b=\x1b>\x1bMsaved", "saved"),
        ("\x9b31mC1\x9b0m \x9d0;title\x9ctext", "C1 text"),
        ("nul\0bell\x07back\x08form\x0cvertical\x0bdelete\x7f", "nulbellbackformverticaldelete"),
        ("next\x85line", "nextline"),
        ("\x1b\x1b[1mtwice", "twice"),
        ("\x1b[31\x18cancelled", "cancelled"),
        ("\x1b[3\x1b[4mrestarted", "restarted"),
        ("unicode in a sequence \x1b[1é", "unicode in a sequence é"),
        ("a title that never ends \x1b]0;swallowed\nnext line", "a title that never ends \nnext line"),
        ("ends in the middle \x1b[3", "ends in the middle "),
    ],
)
def test_a_text_is_cleaned(text: str, clean: str) -> None:
    assert sanitize(text) == clean


def test_a_sequence_may_be_divided_anywhere() -> None:
    sanitizer = Sanitizer()
    assert "".join(map(sanitizer.feed, "a\x1b]0;title\x1b\\b\x1b[31mc")) == "abc"


def test_it_is_at_rest_outside_of_sequences_only() -> None:
    sanitizer = Sanitizer()
    assert sanitizer.at_rest
    sanitizer.feed("text\x1b[3")
    assert not sanitizer.at_rest
    sanitizer.feed("1m")
    assert sanitizer.at_rest
