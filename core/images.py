"""Images for a model: recognised by their bytes, checked, and brought within the limits. Contract section 5.

Everything here is a pure and possibly long computation; callers run it through the environment's ``offload``.
Pillow is imported when the first image is prepared. Its format classes are used directly, one per type: no
other parser ever sees the bytes, and the size is known, and refused, before a pixel is decoded.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from handrail.core.byte_streams import ByteReader, ByteWriter, as_file

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose
    from PIL.ImageFile import ImageFile

__all__ = ["MAX_BASE64_BYTES", "MAX_PIXELS", "MAX_SIDE", "PreparedImage", "detect_image_type", "prepare_image"]

MAX_SIDE: Final = 2000
"""Pixels that an image may be wide or high to pass unchanged."""
MAX_BASE64_BYTES: Final = 4_718_592
"""Bytes of base64 that an image may take to pass unchanged: 4.5 MB."""
MAX_PIXELS: Final = 2**26
"""Pixels of the largest image that is decoded, 67 million: 256 MiB, of an animation a few times that."""

_MAX_SCANNED_PIXELS: Final = 40 * MAX_PIXELS
_JPEG_QUALITIES: Final = (80, 70, 55, 40)
_TOO_MANY_PIXELS: Final = (
    f"at most {MAX_PIXELS // 10**6} million are decoded. Scale it down or crop it with another program first."
)


@frozen
class PreparedImage:
    """An image that a model may be shown.

    Attributes:
        data: Base64 of the image.
        mime_type: Its type, which may differ from the file's.
        note_lines: What the model is told: the type, then what was done to the image.
        width: Pixels, as shown.
        height: Pixels, as shown.
    """

    data: str = field(repr=False)
    mime_type: str
    note_lines: tuple[str, ...]
    width: int
    height: int

    @property
    def note(self) -> str:
        """The lines of the note as one text."""
        return "\n".join(self.note_lines)


# ------------------------------------------------------------------ recognising


def detect_image_type(data: bytes) -> str | None:
    """Return the MIME type of an image that can be shown, or ``None``.

    Only the bytes decide. Animated PNG and lossless JPEG (JPEG-LS) are not among the types.

    Args:
        data: The file, or at least its first few kilobytes.
    """
    if data.startswith(b"\xff\xd8\xff"):
        return None if data[3:4] == b"\xf7" else "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"):
        return None if _is_animated_png(data) else "image/png"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"BM") and _is_bmp(data):
        return "image/bmp"
    return None


def _is_animated_png(data: bytes) -> bool:
    """Whether an animation control chunk comes before the first pixels (PNG specification, section 5.6)."""
    start = 8
    while start + 8 <= len(data):
        kind = data[start + 4 : start + 8]
        if kind in (b"acTL", b"IDAT"):
            return kind == b"acTL"
        start += 12 + int.from_bytes(data[start : start + 4], "big")
    return False


def _is_bmp(data: bytes) -> bool:
    """Whether the two headers make sense; two letters alone would make many texts an image."""

    def number(start: int, size: int) -> int:
        return int.from_bytes(data[start : start + size], "little")

    file_size, pixel_start, header_size = number(2, 4), number(10, 4), number(14, 4)
    if header_size == 12:
        numbers_start = 22
    elif 40 <= header_size <= 124:
        numbers_start = 26
    else:
        return False
    if len(data) < numbers_start + 4 or pixel_start < 14 + header_size:
        return False
    # Some writers leave the file size 0; a size that is given must hold the headers and reach the pixels.
    if file_size and (file_size < 26 or pixel_start >= file_size):
        return False
    planes, bits = number(numbers_start, 2), number(numbers_start + 2, 2)
    return planes == 1 and bits in (1, 4, 8, 16, 24, 32)


# ------------------------------------------------------------------ preparing


def prepare_image(data: bytes, mime_type: str, *, resize: bool = True) -> PreparedImage | str:
    """Check an image and bring it into a form and size that a model takes.

    An image within the limits comes back byte for byte. A larger one is scaled down, upright (its EXIF
    orientation applied), as PNG or JPEG, whichever is smaller. BMP becomes PNG. Of an animation that must be
    scaled the first frame is left.

    Args:
        data: The whole file.
        mime_type: What ``detect_image_type`` said about it.
        resize: Whether larger images are scaled down; without it they pass as they are.

    Returns:
        The image, or a text that says why there is none.
    """
    try:
        picture = _open(data, mime_type)
        if refusal := _refusal(picture, data, mime_type):
            return _omitted(mime_type, refusal)
        too_large = resize and not (_within_sides(picture) and _within_base64(data))
        decoded = _decode(picture, too_large=too_large)
    except Exception as error:  # a damaged file makes the decoders raise almost anything
        return _omitted(mime_type, _undecodable(error))
    if mime_type == "image/bmp":
        return _converted(decoded, mime_type, resize=resize)
    if too_large:
        return _reduced(decoded, ())
    note = (f"Read image file [{mime_type}]",)
    return PreparedImage(b64encode(data).decode(), mime_type, note, decoded.width, decoded.height)


@frozen
class _Decoded:
    """A decoded image."""

    pixels: Image
    """Upright; within the limit of the sides where it was too large; fit for PNG unless the file passes as it is."""
    width: int
    """Pixels in the file, upright."""
    height: int
    animated: bool


def _open(data: bytes, mime_type: str) -> ImageFile:
    """Parse the header of an image; no pixel is decoded."""
    source = as_file(ByteReader(data))
    match mime_type:
        case "image/jpeg":
            from PIL.JpegImagePlugin import JpegImageFile

            return JpegImageFile(source)
        case "image/png":
            from PIL.PngImagePlugin import PngImageFile

            PngImageFile(as_file(ByteReader(data))).verify()  # decoding alone skips the checksums of the pixels
            return PngImageFile(source)
        case "image/gif":
            from PIL.GifImagePlugin import GifImageFile

            return GifImageFile(source)
        case "image/webp":
            from PIL.WebPImagePlugin import WebPImageFile

            return WebPImageFile(source)
        case "image/bmp":
            from PIL.BmpImagePlugin import BmpImageFile

            return BmpImageFile(source)
        case _:
            raise ValueError(f"{mime_type} is not an image type that can be shown")


def _refusal(picture: ImageFile, data: bytes, mime_type: str) -> str | None:
    """Say why an image costs too much to decode, or ``None``."""
    pixels = picture.width * picture.height
    size = f"{picture.width}x{picture.height}"
    if pixels > MAX_PIXELS:
        return f"at {size} it has {pixels / 1e6:.0f} million pixels, and {_TOO_MANY_PIXELS}"
    # Each scan of a progressive JPEG visits every pixel, and an empty one takes a few bytes only.
    if mime_type == "image/jpeg" and (scans := data.count(b"\xff\xda")) * pixels > _MAX_SCANNED_PIXELS:
        return f"at {size} it has {scans} scans, which would take too long. Save it anew with another program first."
    return None


def _decode(picture: ImageFile, *, too_large: bool) -> _Decoded:
    turn = _turn(picture)
    width, height = _turned(picture.size, turn)
    target = _turned(_fitting(width, height), turn)
    if too_large:
        # A JPEG can be decoded at a half, a quarter or an eighth; about twice the target is enough to smooth.
        picture.draft(None, (max(1, 2 * target[0] - 1), max(1, 2 * target[1] - 1)))
    animated = bool(getattr(picture, "is_animated", False))
    picture.load()
    if too_large:
        pixels = _resized(picture, target)
        return _Decoded(pixels if turn is None else pixels.transpose(turn), width, height, animated)
    return _Decoded(_in_plain_mode(picture) if picture.format == "BMP" else picture, width, height, animated)


def _resized(picture: Image, size: tuple[int, int]) -> Image:
    """Scale a picture of any mode, first its width and then its height.

    The width is scaled in bands, so that no second picture of full size exists in another mode.
    """
    from PIL.Image import new

    rows = 256
    bands = [
        _lanczos(_in_plain_mode(picture.crop((0, top, picture.width, min(top + rows, picture.height)))), size[0], None)
        for top in range(0, picture.height, rows)
    ]
    narrow = new(bands[0].mode, (size[0], picture.height))
    for index, band in enumerate(bands):
        narrow.paste(band, (0, index * rows))
    return _lanczos(narrow, None, size[1])


def _lanczos(image: Image, width: int | None, height: int | None) -> Image:
    from PIL.Image import Resampling

    size = (width or image.width, height or image.height)
    return image.resize(size, Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType]  # its stub names numpy


def _in_plain_mode(picture: Image) -> Image:
    """Return the same picture in a mode that scales smoothly and that PNG can hold: L, RGB or RGBA."""
    if picture.mode in ("I", "I;16", "I;16L", "I;16B"):
        wide = picture.convert("I").point(lambda value: value * (1 / 256))  # pyright: ignore[reportUnknownMemberType]  # its stub names numpy
        return wide.convert("L")
    if picture.has_transparency_data:
        return picture.convert("RGBA")
    return picture if picture.mode in ("L", "RGB") else picture.convert("L" if picture.mode == "1" else "RGB")


def _turn(picture: ImageFile) -> Transpose | None:
    """Return what makes a picture upright: its EXIF orientation (EXIF 2.3, tag 0x0112)."""
    from PIL.Image import Transpose

    try:
        orientation = int(picture.getexif().get(0x0112, 1))
    except Exception:  # a damaged EXIF block says nothing about the pixels
        return None
    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return turns.get(orientation)


def _turned(size: tuple[int, int], turn: Transpose | None) -> tuple[int, int]:
    """Return a size after a turn; a second time, it is the size before."""
    sideways = turn is not None and turn.name in ("TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
    return (size[1], size[0]) if sideways else size


# ------------------------------------------------------------------ scaling and encoding


def _converted(decoded: _Decoded, mime_type: str, *, resize: bool) -> PreparedImage:
    """Return an image of a type that models do not take as PNG, within the limits where they hold."""
    if decoded.pixels.size == (decoded.width, decoded.height):
        data = _png(decoded.pixels.copy())  # a copy is no longer tied to a file, which saving would look for
        if not resize or _within_base64(data):
            note = ("Read image file [image/png]", _conversion(mime_type, "image/png"))
            return PreparedImage(b64encode(data).decode(), "image/png", note, decoded.width, decoded.height)
    return _reduced(decoded, (mime_type,))


def _reduced(decoded: _Decoded, converted_from: tuple[str, ...]) -> PreparedImage:
    """Return an image that is too large as large as the limits allow."""
    shown = decoded.pixels
    while (encoded := _encoded(shown)) is None:
        # Ends: a picture of one pixel takes a few hundred bytes.
        shown = _lanczos(shown, max(1, shown.width * 3 // 4), max(1, shown.height * 3 // 4))
    data, mime_type = encoded
    note = [f"Read image file [{mime_type}]"]
    note += [_conversion(source, mime_type) for source in converted_from]
    note.append(_coordinates((decoded.width, decoded.height), shown.size))
    if decoded.animated:
        note.append("[Animated image: only its first frame is shown.]")
    return PreparedImage(b64encode(data).decode(), mime_type, tuple(note), shown.width, shown.height)


def _fitting(width: int, height: int) -> tuple[int, int]:
    """Return the largest size of the same shape within the limit, halves rounded up."""
    if width > MAX_SIDE:
        width, height = MAX_SIDE, max(1, (2 * height * MAX_SIDE + width) // (2 * width))
    if height > MAX_SIDE:
        width, height = max(1, (2 * width * MAX_SIDE + height) // (2 * height)), MAX_SIDE
    return width, height


def _encoded(image: Image) -> tuple[bytes, str] | None:
    """Return the smaller of PNG and JPEG, or the best JPEG that is small enough, or ``None``."""
    png, jpeg = _png(image), _jpeg(image, _JPEG_QUALITIES[0])
    smaller = (png, "image/png") if len(png) <= len(jpeg) else (jpeg, "image/jpeg")
    if _within_base64(smaller[0]):
        return smaller
    for quality in _JPEG_QUALITIES[1:]:
        jpeg = _jpeg(image, quality)
        if _within_base64(jpeg):
            return jpeg, "image/jpeg"
    return None


def _png(image: Image) -> bytes:
    # Runs only: many times faster than a full search on large pictures, and what that would gain, JPEG gains better.
    target = ByteWriter()
    image.save(as_file(target), "PNG", compress_type=zlib.Z_RLE, icc_profile=None)
    return target.value()


def _jpeg(image: Image, quality: int) -> bytes:
    # Colour at full resolution: small coloured text stays readable.
    target = ByteWriter()
    _on_white(image).save(as_file(target), "JPEG", quality=quality, subsampling=0)
    return target.value()


def _on_white(image: Image) -> Image:
    """Return an opaque image: JPEG has no transparency."""
    if image.mode != "RGBA":
        return image
    from PIL.Image import new

    paper = new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    return paper


def _within_sides(image: Image) -> bool:
    return image.width <= MAX_SIDE and image.height <= MAX_SIDE


def _within_base64(data: bytes) -> bool:
    return (len(data) + 2) // 3 * 4 <= MAX_BASE64_BYTES


# ------------------------------------------------------------------ texts


def _conversion(source: str, target: str) -> str:
    return f"[Image converted from {source} to {target}.]"


def _coordinates(original: tuple[int, int], shown: tuple[int, int]) -> str:
    # The longer side gives the factor: rounding the shorter one to whole pixels may change its ratio a lot.
    longer = 0 if original[0] >= original[1] else 1
    # Halves of the binary quotient round up, so that 1.125 is 1.13.
    numerator, denominator = (original[longer] / shown[longer]).as_integer_ratio()
    hundredths = (200 * numerator + denominator) // (2 * denominator)
    return (
        f"[Image: original {original[0]}x{original[1]}, displayed at {shown[0]}x{shown[1]}. "
        f"Multiply coordinates by {hundredths // 100}.{hundredths % 100:02} to map to original image.]"
    )


def _omitted(mime_type: str, reason: str) -> str:
    return f"Read image file [{mime_type}]\n[Image omitted: {reason}]"


def _undecodable(error: Exception) -> str:
    from PIL.Image import DecompressionBombError, DecompressionBombWarning

    if isinstance(error, DecompressionBombError | DecompressionBombWarning):
        return f"it has too many pixels: {_TOO_MANY_PIXELS}"
    if isinstance(error, MemoryError):
        return "there is not enough memory to decode it. Scale it down with another program first."
    said = " ".join(str(error).split())[:200] or type(error).__name__
    return f"it cannot be decoded ({said}). The file is damaged, incomplete, or of a variant that is not supported."
