"""Decompression bombs: refused before their pixels take memory, measured in a process of their own."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import pytest
from PIL import Image

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's peak of one program is read from /proc")

PROGRAM = """
import re, sys
from handrail.core.images import detect_image_type, prepare_image

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

data = sys.stdin.buffer.read()
mime_type = detect_image_type(data)
prepare_image(data[:40], mime_type)  # imports and buffers are no part of the measurement
before = peak()
text = prepare_image(data, mime_type)
print(peak() - before, mime_type, text)
"""


def small(kind: str) -> bytearray:
    target = io.BytesIO()
    Image.new("RGB", (16, 16)).save(target, kind)
    return bytearray(target.getvalue())


def png() -> bytes:
    data = small("PNG")
    data[16:24] = struct.pack(">II", 60_000, 60_000)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def jpeg() -> bytes:
    data = small("JPEG")
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", 60_000, 60_000)
    return bytes(data)


def gif() -> bytes:
    data = small("GIF")
    data[6:10] = struct.pack("<HH", 60_000, 60_000)
    return bytes(data)


def webp() -> bytes:
    data = small("WEBP")
    data[26:30] = struct.pack("<HH", 16_000, 16_000)
    return bytes(data)


def bmp() -> bytes:
    data = small("BMP")
    data[18:26] = struct.pack("<II", 60_000, 60_000)
    return bytes(data)


@pytest.mark.parametrize(
    "mime_type, data",
    [("image/png", png()), ("image/jpeg", jpeg()), ("image/gif", gif()), ("image/webp", webp()), ("image/bmp", bmp())],
    ids=["png", "jpeg", "gif", "webp", "bmp"],
)
def test_a_bomb_takes_no_memory(mime_type: str, data: bytes) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=data, capture_output=True, check=True)
    grown_kilobytes, found, text = done.stdout.decode().split(" ", 2)
    assert found == mime_type
    assert "at most 67 million are decoded" in text
    assert int(grown_kilobytes) < 4 * 1024
