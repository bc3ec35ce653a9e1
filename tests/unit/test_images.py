"""Images: recognised by their bytes, checked, brought within the limits."""

from __future__ import annotations

import base64
import io
import random
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from handrail.core import images
from handrail.core.images import PreparedImage, detect_image_type, prepare_image

PNG, JPEG, GIF, WEBP, BMP = "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def shown(result: PreparedImage | str) -> Image.Image:
    """Decode what a model would see, and check that the result describes it."""
    assert isinstance(result, PreparedImage), result
    picture = Image.open(io.BytesIO(base64.b64decode(result.data, validate=True)))
    picture.load()
    assert picture.size == (result.width, result.height)
    assert Image.MIME[picture.format or ""] == result.mime_type
    assert result.note_lines[0] == f"Read image file [{result.mime_type}]"
    return picture


def refused(result: PreparedImage | str) -> str:
    assert isinstance(result, str)
    return result


def near(actual: Any, expected: tuple[int, ...], tolerance: int = 12) -> bool:
    return all(abs(a - e) <= tolerance for a, e in zip(actual, expected, strict=True))


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(width).randbytes(3 * width * height))


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_of_size(width: int, height: int) -> bytes:
    """A PNG that claims a size and has no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", b"") + png_chunk(b"IEND", b"")


# ------------------------------------------------------------------ recognising


@pytest.mark.parametrize("kind, mime_type", [("PNG", PNG), ("JPEG", JPEG), ("GIF", GIF), ("WEBP", WEBP), ("BMP", BMP)])
def test_each_type_is_known_by_its_first_bytes(kind: str, mime_type: str) -> None:
    data = encoded(Image.new("RGB", (3, 2), RED), kind)
    assert detect_image_type(data) == mime_type
    assert detect_image_type(data[:64]) == mime_type


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff\xf7rest",  # lossless JPEG
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDX",
        b"GIF88a",
        b"GIF89",
        b"RIFF\x00\x00\x00\x00WAVE",
        b"RIFF\x00\x00\x00\x00WEB",
        b"BM is a text file, really it is, and long enough too",
        b"%PDF-1.4\n",
        b"II*\x00\x08\x00\x00\x00",  # TIFF
    ],
)
def test_other_bytes_are_no_image(data: bytes) -> None:
    assert detect_image_type(data) is None


def test_an_animated_png_is_none_of_the_types() -> None:
    frames = [Image.new("RGB", (2, 2), colour) for colour in (RED, BLUE)]
    data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    assert b"acTL" in data
    assert detect_image_type(data) is None


def test_a_png_that_ends_before_its_pixels_is_a_png() -> None:
    assert detect_image_type(png_of_size(3, 3)[:33]) == PNG


def bmp_with(**changed: int) -> bytes:
    """A BMP of 78 bytes with changed header fields."""
    layout = {"file_size": (2, 4), "pixel_start": (10, 4), "header_size": (14, 4), "planes": (26, 2), "bits": (28, 2)}
    data = bytearray(encoded(Image.new("RGB", (3, 2)), "BMP"))
    for name, value in changed.items():
        start, size = layout[name]
        data[start : start + size] = value.to_bytes(size, "little")
    return bytes(data)


@pytest.mark.parametrize(
    "changed, known",
    [
        ({}, True),
        ({"file_size": 0}, True),
        ({"file_size": 20}, False),
        ({"pixel_start": 16}, False),
        ({"pixel_start": 200}, False),
        ({"header_size": 16}, False),
        ({"header_size": 125}, False),
        ({"planes": 2}, False),
        ({"bits": 7}, False),
        ({"bits": 32}, True),
    ],
)
def test_a_bmp_has_headers_that_make_sense(changed: dict[str, int], known: bool) -> None:
    assert detect_image_type(bmp_with(**changed)) == (BMP if known else None)


def test_a_bmp_with_the_old_header_is_known() -> None:
    old = b"BM" + struct.pack("<IHHI", 30, 0, 0, 26) + struct.pack("<IHHHH", 12, 1, 1, 1, 24) + b"\x00\x00\xff\x00"
    assert detect_image_type(old) == BMP
    assert detect_image_type(old[:25]) is None
    assert shown(prepare_image(old, BMP)).getpixel((0, 0)) == RED


# ------------------------------------------------------------------ within the limits


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("resize", [True, False])
def test_a_small_png_passes_byte_for_byte(mode: str, resize: bool) -> None:
    data = encoded(Image.new(mode, (5, 3)), "PNG")
    result = prepare_image(data, PNG, resize=resize)
    assert shown(result).size == (5, 3)
    assert isinstance(result, PreparedImage)
    assert base64.b64decode(result.data) == data
    assert result.note == "Read image file [image/png]"


@pytest.mark.parametrize(
    "kind, mime_type, options",
    [
        ("JPEG", JPEG, {"progressive": True}),
        ("GIF", GIF, {"save_all": True, "append_images": [Image.new("RGB", (9, 7), BLUE)]}),
        ("WEBP", WEBP, {"save_all": True, "append_images": [Image.new("RGB", (9, 7), BLUE)]}),
    ],
)
def test_other_small_images_pass_byte_for_byte(kind: str, mime_type: str, options: dict[str, Any]) -> None:
    data = encoded(Image.new("RGB", (9, 7), RED), kind, **options)
    result = prepare_image(data, mime_type)
    assert isinstance(result, PreparedImage)
    assert base64.b64decode(result.data) == data
    assert result.note_lines == (f"Read image file [{mime_type}]",)


def test_a_cmyk_jpeg_within_the_limits_passes() -> None:
    data = encoded(Image.new("CMYK", (9, 7), (0, 255, 255, 0)), "JPEG")
    assert shown(prepare_image(data, JPEG)).mode == "CMYK"


def test_the_largest_size_passes_and_one_pixel_more_does_not() -> None:
    fits = prepare_image(encoded(Image.new("1", (2000, 2000)), "PNG"), PNG)
    assert isinstance(fits, PreparedImage)
    assert fits.note_lines == ("Read image file [image/png]",)
    over = prepare_image(encoded(Image.new("1", (2001, 8)), "PNG"), PNG)
    assert isinstance(over, PreparedImage)
    assert (over.width, over.height) == (2000, 8)


def test_without_resizing_a_large_image_passes() -> None:
    data = encoded(Image.new("RGB", (2100, 10), RED), "PNG")
    result = prepare_image(data, PNG, resize=False)
    assert shown(result).size == (2100, 10)
    assert isinstance(result, PreparedImage)
    assert base64.b64decode(result.data) == data


# ------------------------------------------------------------------ scaled


@pytest.mark.parametrize(
    "size, expected, factor",
    [
        ((2100, 4), (2000, 4), "1.05"),
        ((2500, 60), (2000, 48), "1.25"),
        ((2250, 9), (2000, 8), "1.13"),
        ((10, 4001), (5, 2000), "2.00"),
        ((4000, 1), (2000, 1), "2.00"),
        ((1, 4000), (1, 2000), "2.00"),
        ((3, 5000), (1, 2000), "2.50"),  # by the longer side: the shorter one would say 3.00
        ((2400, 2300), (2000, 1917), "1.20"),
        ((2300, 2400), (1917, 2000), "1.20"),
    ],
)
def test_a_large_image_is_scaled_and_the_note_says_how(
    size: tuple[int, int], expected: tuple[int, int], factor: str
) -> None:
    result = prepare_image(encoded(Image.new("L", size, 77), "PNG", compress_level=1), PNG)
    picture = shown(result)
    assert picture.size == expected
    assert near(picture.convert("RGB").getpixel((0, 0)), (77, 77, 77))
    assert isinstance(result, PreparedImage)
    assert result.note_lines[1:] == (
        f"[Image: original {size[0]}x{size[1]}, displayed at {expected[0]}x{expected[1]}. "
        f"Multiply coordinates by {factor} to map to original image.]",
    )


@pytest.mark.parametrize(
    "size, mime_type", [((2100, 10), PNG), ((10, 4001), JPEG), ((2500, 60), PNG), ((2001, 1001), PNG)]
)
def test_the_smaller_of_png_and_jpeg_is_taken(size: tuple[int, int], mime_type: str) -> None:
    result = prepare_image(encoded(Image.new("RGB", size, (200, 30, 10)), "PNG"), PNG)
    assert isinstance(result, PreparedImage)
    assert result.mime_type == mime_type


def test_a_photograph_becomes_jpeg() -> None:
    result = prepare_image(encoded(noise(2100, 50), "PNG", compress_level=0), PNG)
    assert shown(result).format == "JPEG"


def test_an_image_that_is_small_but_heavy_is_encoded_anew() -> None:
    data = encoded(noise(1200, 1000), "PNG", compress_level=0)
    assert len(base64.b64encode(data)) > images.MAX_BASE64_BYTES
    result = prepare_image(data, PNG)
    assert shown(result).size == (1200, 1000)
    assert isinstance(result, PreparedImage)
    assert len(result.data) <= images.MAX_BASE64_BYTES
    assert "original 1200x1000, displayed at 1200x1000. Multiply coordinates by 1.00" in result.note


@pytest.mark.parametrize("limit, smaller", [(50_000, False), (31_000, False), (12_000, True), (900, True)])
def test_quality_falls_before_size_does(monkeypatch: pytest.MonkeyPatch, limit: int, smaller: bool) -> None:
    monkeypatch.setattr(images, "MAX_BASE64_BYTES", limit)
    picture = noise(200, 150)
    assert len(encoded(picture, "JPEG", quality=80, subsampling=0)) * 4 / 3 > limit
    result = prepare_image(encoded(picture, "PNG"), PNG)
    shown(result)
    assert isinstance(result, PreparedImage)
    assert len(result.data) <= limit
    assert (result.width < 200) is smaller


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_scaled_image_is_upright(orientation: int) -> None:
    # Red at the left, blue at the right, a green stripe on top: every one of the eight positions looks different.
    upright = Image.new("RGB", (2400, 240), BLUE)
    upright.paste(RED, (0, 0, 1200, 240))
    upright.paste(GREEN, (0, 0, 2400, 80))
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = upright.transpose(undo[orientation]) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    result = prepare_image(encoded(stored, "JPEG", exif=exif, quality=95), JPEG)
    picture = shown(result).convert("RGB")
    assert picture.size == (2000, 200)
    for position, colour in [((100, 20), GREEN), ((100, 150), RED), ((1900, 150), BLUE)]:
        assert near(picture.getpixel(position), colour, 40)
    assert isinstance(result, PreparedImage)
    assert "original 2400x240, displayed at 2000x200" in result.note


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize(
    "exif",
    [b"Exif\x00\x00garbage", b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x02\x00\x00\x00\x02xy\x00\x00"],
)
def test_a_damaged_orientation_is_ignored(exif: bytes) -> None:
    data = encoded(Image.new("RGB", (2100, 20), RED), "JPEG", exif=exif)
    assert shown(prepare_image(data, JPEG)).size == (2000, 19)


def test_sixteen_bits_become_eight_and_keep_their_brightness() -> None:
    ramp = struct.pack("<2100H", *(value * 31 for value in range(2100))) * 4
    data = encoded(Image.frombytes("I;16", (2100, 4), ramp), "PNG")
    picture = shown(prepare_image(data, PNG)).convert("L")
    assert [picture.getpixel((x, 2)) for x in (0, 1000, 1999)] == pytest.approx([0, 127, 254], abs=2)


def test_a_high_picture_is_scaled_without_seams() -> None:
    ramp = b"".join(bytes([y * 255 // 4099]) * 40 for y in range(4100))
    data = encoded(Image.frombytes("L", (40, 4100), ramp), "PNG")
    picture = shown(prepare_image(data, PNG)).convert("L")
    for y in range(2000):
        assert picture.getpixel((9, y)) == pytest.approx((y + 0.5) * 2.05 * 255 / 4099, abs=3)


@pytest.mark.parametrize("mode", ["1", "L", "P"])
def test_few_colours_are_scaled_smoothly(mode: str) -> None:
    stripes = Image.new("L", (4000, 8), 0)
    for x in range(0, 4000, 2):
        stripes.paste(255, (x, 0, x + 1, 8))
    data = encoded(stripes.convert(mode), "PNG")
    picture = shown(prepare_image(data, PNG)).convert("L")
    value = picture.getpixel((1000, 2))
    assert isinstance(value, int | float)
    assert 100 < value < 155


def test_a_large_cmyk_jpeg_keeps_its_colours() -> None:
    data = encoded(Image.new("CMYK", (2100, 20), (0, 255, 255, 0)), "JPEG", quality=95)
    assert near(shown(prepare_image(data, JPEG)).convert("RGB").getpixel((5, 5)), RED, 40)


def test_transparency_is_kept_in_a_png() -> None:
    for mode, colour in [("RGBA", (0, 0, 0, 0)), ("LA", (0, 0))]:
        picture = shown(prepare_image(encoded(Image.new(mode, (2100, 8), colour), "PNG"), PNG))
        assert (picture.format, picture.convert("RGBA").getpixel((3, 3))) == ("PNG", (0, 0, 0, 0))


def test_transparency_is_white_in_a_jpeg() -> None:
    source = noise(2100, 20)
    source.putalpha(Image.new("L", source.size, 1))
    picture = shown(prepare_image(encoded(source, "PNG"), PNG))
    assert picture.format == "JPEG"
    assert near(picture.getpixel((3, 3)), WHITE)


def test_a_transparent_palette_stays_transparent() -> None:
    picture = Image.new("P", (2100, 8), 1)
    picture.putpalette([255, 0, 0, 0, 255, 0])
    result = shown(prepare_image(encoded(picture, "GIF", transparency=1), GIF)).convert("RGBA")
    pixel = result.getpixel((3, 3))
    assert isinstance(pixel, tuple)
    assert pixel[3] == 0


@pytest.mark.parametrize("kind, mime_type", [("GIF", GIF), ("WEBP", WEBP)])
def test_of_a_large_animation_the_first_frame_is_shown(kind: str, mime_type: str) -> None:
    frames = [Image.new("RGB", (2100, 8), colour) for colour in (RED, BLUE)]
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    result = prepare_image(data, mime_type)
    assert near(shown(result).convert("RGB").getpixel((3, 3)), RED)
    assert isinstance(result, PreparedImage)
    assert result.note_lines[-1] == "[Animated image: only its first frame is shown.]"


# ------------------------------------------------------------------ BMP


@pytest.mark.parametrize("mode, resize", [("1", True), ("L", True), ("P", True), ("RGB", True), ("RGB", False)])
def test_a_bmp_becomes_png(mode: str, resize: bool) -> None:
    source = Image.new("RGB", (6, 4), WHITE)
    source.paste((0, 0, 0), (0, 0, 3, 4))
    result = prepare_image(encoded(source.convert(mode), "BMP"), BMP, resize=resize)
    picture = shown(result).convert("RGB")
    assert (picture.getpixel((0, 0)), picture.getpixel((5, 3))) == ((0, 0, 0), WHITE)
    assert isinstance(result, PreparedImage)
    assert result.note == "Read image file [image/png]\n[Image converted from image/bmp to image/png.]"


def test_a_large_bmp_is_converted_and_scaled() -> None:
    result = prepare_image(encoded(Image.new("RGB", (2100, 8), RED), "BMP"), BMP)
    assert shown(result).size == (2000, 8)
    assert isinstance(result, PreparedImage)
    assert result.note_lines == (
        "Read image file [image/png]",
        "[Image converted from image/bmp to image/png.]",
        "[Image: original 2100x8, displayed at 2000x8. Multiply coordinates by 1.05 to map to original image.]",
    )


def test_a_bmp_that_is_too_high_only_is_scaled() -> None:
    result = prepare_image(encoded(Image.new("RGB", (1, 4000), RED), "BMP"), BMP)
    assert shown(result).size == (1, 2000)
    assert isinstance(result, PreparedImage)
    assert "original 1x4000, displayed at 1x2000" in result.note


def test_a_bmp_too_large_as_a_file_passes_when_its_png_is_small() -> None:
    data = encoded(Image.new("RGB", (1300, 1300), RED), "BMP")
    assert len(data) > images.MAX_BASE64_BYTES
    result = prepare_image(data, BMP)
    assert isinstance(result, PreparedImage)
    assert (result.mime_type, result.width, len(result.note_lines)) == (PNG, 1300, 2)


def test_a_bmp_whose_png_is_too_heavy_becomes_jpeg() -> None:
    result = prepare_image(encoded(noise(1200, 1000), "BMP"), BMP)
    assert isinstance(result, PreparedImage)
    assert result.note_lines[:2] == ("Read image file [image/jpeg]", "[Image converted from image/bmp to image/jpeg.]")


# ------------------------------------------------------------------ refused


@pytest.mark.parametrize("kind, mime_type", [("PNG", PNG), ("JPEG", JPEG), ("GIF", GIF), ("WEBP", WEBP), ("BMP", BMP)])
def test_a_truncated_image_is_told(kind: str, mime_type: str) -> None:
    data = encoded(noise(40, 30), kind)
    text = refused(prepare_image(data[: len(data) // 2], mime_type))
    assert text.startswith(f"Read image file [{mime_type}]\n[Image omitted: it cannot be decoded (")
    assert text.endswith("The file is damaged, incomplete, or of a variant that is not supported.]")


@pytest.mark.parametrize("mime_type", [PNG, JPEG, GIF, WEBP, BMP])
@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff\xe0garbage", b"GIF89a", b"BM", b"\x89PNG\r\n\x1a\n"])
def test_garbage_is_told(mime_type: str, data: bytes) -> None:
    assert "[Image omitted: it cannot be decoded (" in refused(prepare_image(data, mime_type))


def test_a_damaged_png_says_what_is_wrong() -> None:
    data = bytearray(encoded(noise(40, 30), "PNG"))
    data[60] ^= 0xFF
    assert "checksum" in refused(prepare_image(bytes(data), PNG))


def test_an_unknown_type_is_told() -> None:
    assert "image/tiff is not an image type that can be shown" in refused(prepare_image(b"II*\x00", "image/tiff"))


@pytest.mark.parametrize("resize", [True, False])
def test_a_decompression_bomb_is_refused(resize: bool) -> None:
    text = refused(prepare_image(png_of_size(60_000, 50_000), PNG, resize=resize))
    assert "at 60000x50000 it has 3000 million pixels, and at most 67 million are decoded" in text


def test_the_pixel_limit_is_the_only_reason_to_refuse_by_size() -> None:
    text = refused(prepare_image(png_of_size(8192, 8192), PNG))
    assert "cannot be decoded" in text  # it was tried: the file has no pixels


def test_a_jpeg_of_endless_scans_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(noise(64, 64), "JPEG", progressive=True)
    monkeypatch.setattr(images, "_MAX_SCANNED_PIXELS", 64 * 64 * 20)
    assert isinstance(prepare_image(data, JPEG), PreparedImage)
    last_scan = data[data.rindex(b"\xff\xda") : -2]
    text = refused(prepare_image(data[:-2] + 30 * last_scan + data[-2:], JPEG))
    assert "scans, which would take too long" in text


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(self: Image.Image) -> None:
        raise MemoryError

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", exhausted)
    text = refused(prepare_image(encoded(Image.new("RGB", (3, 3)), "PNG"), PNG))
    assert "not enough memory" in text


def test_a_bomb_that_the_decoder_finds_is_refused_too() -> None:
    data = bytearray(encoded(Image.new("RGB", (16, 16)), "GIF"))
    frame = data.index(b",")  # the image descriptor; the screen is small, the frame is not
    data[frame + 5 : frame + 9] = struct.pack("<HH", 60_000, 60_000)
    assert "too many pixels: at most 67 million are decoded" in refused(prepare_image(bytes(data), GIF))
