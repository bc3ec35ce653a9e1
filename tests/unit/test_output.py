"""The output accumulator: decoding, folding, totals, both ends."""

from __future__ import annotations

import pytest

from handrail.core.output import OutputAccumulator, SecretMask, Snapshot


def accumulated(*pieces: bytes, max_lines: int = 2000, max_bytes: int = 51200, utf16: bool = False) -> Snapshot:
    output = OutputAccumulator(max_lines=max_lines, max_bytes=max_bytes, utf16=utf16)
    for piece in pieces:
        output.feed(piece)
    output.finish()
    return output.snapshot()


@pytest.mark.parametrize(
    ("pieces", "content"),
    [
        ((), ""),
        ((b"abc", b"\n"), "abc\n"),
        ((b"\xe6", b"\xbc", b"\xa2\n"), "漢\n"),
        ((b"a\xff\xfeb\n\x80",), "a\ufffd\ufffdb\n\ufffd"),
        ((b"ok\n\xe6\xbc",), "ok\n\ufffd"),
        (
            (
                b"\xef",
                b"\xbb\xbfa\n",
            ),
            "a\n",
        ),
        ((b"a\n\xef\xbb\xbfb",), "a\n\ufeffb"),
        ((b"\xef\xbb",), "\ufffd"),
        ((b"a\0b\n",), "ab\n"),
        ((b"a\r\nb\r", b"\nc\r"), "a\r\nb\r\nc\r"),
        ((b"10%\r50%\r100%\n",), "10%\r50%\r100%\n"),
        ((b"\x1b[3", b"1mred\n"), "red\n"),
        ((b"\xff\xfeh\0i\0",), "\ufffd\ufffdhi"),
    ],
)
def test_bytes_become_text(pieces: tuple[bytes, ...], content: str) -> None:
    snapshot = accumulated(*pieces)
    assert snapshot.truncation.content == content
    assert snapshot.truncation.total_bytes == len(content.encode())
    assert not snapshot.truncation.truncated


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_mark_is_understood_where_it_is_expected(encoding: str) -> None:
    data = "\ufeffPowerShell 漢😀\r\n".encode(encoding)
    assert accumulated(data[:1], data[1:7], data[7:], utf16=True).truncation.content == "PowerShell 漢😀\r\n"


def test_without_a_mark_output_is_utf8_even_where_utf16_is_expected() -> None:
    assert accumulated(b"h", b"\xc3\xa9", utf16=True).truncation.content == "hé"


def test_an_incomplete_character_is_not_shown_before_the_end() -> None:
    output = OutputAccumulator()
    output.feed(b"a\xe6\xbc")
    assert output.snapshot().truncation.content == "a"
    output.feed(b"\xa2")
    assert output.snapshot().truncation.content == "a漢"


def test_the_last_lines_are_kept_and_all_are_counted() -> None:
    cut = accumulated(b"".join(b"%d\n" % number for number in range(10)), max_lines=3).truncation
    assert (cut.content, cut.truncated_by) == ("7\n8\n9", "lines")
    assert (cut.total_lines, cut.total_bytes, cut.output_lines, cut.output_bytes) == (10, 20, 3, 5)


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_one_long_line_keeps_its_end_and_tells_its_size(ending: bytes) -> None:
    snapshot = accumulated(b"a\nb\n", b"y" * 60 + ending, max_bytes=16)
    cut = snapshot.truncation
    assert (cut.content, cut.truncated_by, cut.last_line_partial) == ("y" * 16, "bytes", True)
    assert (cut.total_lines, snapshot.last_line_bytes) == (3, 60)


def test_a_cut_never_divides_a_character() -> None:
    cut = accumulated("漢".encode() * 2_000_000).truncation
    assert cut.content == "漢" * 17066
    assert cut.total_bytes == 6_000_000


def test_51200_bytes_and_a_newline_are_cut_as_lines() -> None:
    cut = accumulated(b"x" * 51200 + b"\n").truncation
    assert (cut.truncated_by, cut.output_bytes, cut.last_line_partial) == ("lines", 51200, False)


class TestProgressBars:
    BAR = b"".join(b"%3d%%\r" % percent for percent in range(0, 101, 5))

    def test_only_the_last_state_is_shown(self) -> None:
        snapshot = accumulated(b"start\n" + self.BAR + b"100%, done\nend\n")
        assert snapshot.truncation.content == "start\n100%, done\nend\n"
        assert snapshot.folded
        assert snapshot.truncation.total_lines == 3

    def test_a_few_rewrites_are_no_progress_bar(self) -> None:
        text = b"a\rb\rc\rd\re\rf\rg\rh\ri\rj\rk\n"
        snapshot = accumulated(text)
        assert (snapshot.truncation.content, snapshot.folded) == (text.decode(), False)

    def test_the_state_before_a_blank_one_is_the_last(self) -> None:
        assert accumulated(self.BAR + b"    \r").truncation.content == "100%"

    def test_it_is_folded_while_it_runs(self) -> None:
        output = OutputAccumulator()
        output.feed(self.BAR + b"still")
        assert output.snapshot().truncation.content == "still"
        assert output.exceeds_limits

    def test_an_endless_one_does_not_push_out_what_was_before(self) -> None:
        snapshot = accumulated(b"before\n", *[self.BAR] * 20_000, max_bytes=100)
        assert snapshot.truncation.content == "before\n100%"

    def test_windows_line_endings_stay(self) -> None:
        assert accumulated(self.BAR + b"done\r\nnext\r\n").truncation.content == "done\r\nnext\r\n"


class TestWholeText:
    def test_up_to_a_mebibyte_it_is_whole(self) -> None:
        output = OutputAccumulator()
        data = b"0123456\n" * (128 * 1024)
        output.feed(data)
        assert output.text() == (data.decode(), False)

    def test_beyond_the_middle_is_left_out(self) -> None:
        output = OutputAccumulator()
        output.feed(b"0123456\n" * (128 * 1024))
        output.feed(b"0123456\n" * 2)
        text, truncated = output.text()
        half = "0123456\n" * (64 * 1024)
        assert truncated
        assert text == f"{half}\n\n[... 16 bytes (3 lines) omitted ...]\n\n{half}"

    def test_of_one_endless_line_both_ends_are_kept(self) -> None:
        output = OutputAccumulator()
        for _ in range(30):
            output.feed("é".encode() * 100_000)
        text, truncated = output.text()
        half = "é" * (256 * 1024)
        assert truncated
        assert text == f"{half}\n\n[... {6_000_000 - 1024 * 1024} bytes omitted ...]\n\n{half}"

    def test_a_long_line_between_short_ones(self) -> None:
        output = OutputAccumulator()
        output.feed(b"start\n")
        for _ in range(30):
            output.feed(b"x" * 100_000)
        output.feed(b"\nend\n")
        text, truncated = output.text()
        half = 512 * 1024
        omitted = 3_000_011 - 2 * half
        assert truncated
        assert text == f"start\n{'x' * (half - 6)}\n\n[... {omitted} bytes omitted ...]\n\n{'x' * (half - 5)}\nend\n"
        snapshot = output.snapshot()
        assert (snapshot.truncation.content, snapshot.truncation.total_lines) == ("end", 3)


class TestLimits:
    @pytest.mark.parametrize(
        ("data", "exceeds"),
        [(b"x" * 51200, False), (b"x" * 51201, True), (b"\n" * 2000, False), (b"\n" * 2001, True)],
    )
    def test_it_tells_when_a_snapshot_cannot_show_all(self, data: bytes, exceeds: bool) -> None:
        output = OutputAccumulator()
        output.feed(data)
        assert output.exceeds_limits is exceeds

    def test_replacement_characters_count_with_their_size(self) -> None:
        output = OutputAccumulator()
        output.feed(b"\xff" * 20_000)
        assert output.exceeds_limits


class TestSecretMask:
    def test_a_value_is_replaced_wherever_it_is_divided(self) -> None:
        for cut in range(18):
            mask = SecretMask(["s3cr3t"])
            data = b"token=s3cr3t; end."
            assert mask.feed(data[:cut]) + mask.feed(data[cut:]) + mask.finish() == b"token=***; end."

    def test_of_values_that_start_alike_the_longer_one_is_masked_whole(self) -> None:
        for cut in range(10):
            mask = SecretMask(["abc", "abcdef"])
            data = b"abcdef abc"
            assert mask.feed(data[:cut]) + mask.feed(data[cut:]) + mask.finish() == b"*** ***"

    def test_what_could_become_a_value_is_held_back(self) -> None:
        mask = SecretMask(["s3cr3t"])
        assert mask.feed(b"token=s3cr") == b"token="
        assert mask.feed(b"eam") == b"s3cream"

    def test_a_value_at_the_very_end_that_starts_another_one(self) -> None:
        mask = SecretMask(["xab", "abq"])
        assert mask.feed(b"xab") + mask.feed(b"z") + mask.finish() == b"***z"

    def test_without_values_everything_passes(self) -> None:
        mask = SecretMask([""])
        assert mask.feed(b"abc") + mask.finish() == b"abc"
        assert mask.text("abc") == "abc"
