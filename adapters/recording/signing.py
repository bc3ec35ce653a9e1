"""Signed checkpoints: who has not the private key cannot write a log that passes for another.

Ed25519 comes from the library ``cryptography`` (``pip install handrail[sign]``), imported only here. A key
elsewhere (an agent, a hardware token) takes part through two functions.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import field, frozen

from handrail.adapters.recording.chain import canonical_json
from handrail.adapters.recording.errors import RecordingError

__all__ = ["Signer", "Verifier", "ed25519_signer", "ed25519_verifier", "signed_bytes"]

_CONTEXT: Final = b"handrail-audit checkpoint\n"
_NOT_INSTALLED: Final = "Signatures need the library cryptography: pip install 'handrail[sign]'."


@frozen
class Signer:
    """Signs checkpoints.

    Attributes:
        key: Name of the key, for the reader of the log.
        sign: Returns the signature of some bytes.
    """

    key: str
    sign: Callable[[bytes], bytes] = field(repr=False)


@frozen
class Verifier:
    """Checks checkpoints.

    Attributes:
        key: Name of the key.
        check: Tells whether a signature of some bytes is genuine: ``check(signature, data)``.
    """

    key: str
    check: Callable[[bytes, bytes], bool] = field(repr=False)


def signed_bytes(entry: Mapping[str, Any]) -> bytes:
    """Return what a checkpoint signs: all of itself but the signature, the hash of the entry before included."""
    return _CONTEXT + canonical_json({key: value for key, value in entry.items() if key != "signature"})


def ed25519_signer(key_file: str | os.PathLike[str], *, password: bytes | None = None) -> Signer:
    """Return a signer for a private key in PEM form, as ``openssl genpkey -algorithm ed25519`` writes it.

    Raises:
        RecordingError: The file has no Ed25519 key, or ``cryptography`` is not installed.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    except ImportError as error:
        raise RecordingError(_NOT_INSTALLED) from error

    try:
        key = load_pem_private_key(_content(key_file), password)
    except (ValueError, TypeError) as error:
        raise RecordingError(f"{os.fspath(key_file)} is not a private key that can be read: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise RecordingError(f"{os.fspath(key_file)} is not an Ed25519 key.")
    return Signer(_name(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)), key.sign)


def ed25519_verifier(key_file: str | os.PathLike[str]) -> Verifier:
    """Return a verifier for a public key in PEM form.

    Raises:
        RecordingError: The file has no Ed25519 public key, or ``cryptography`` is not installed.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
    except ImportError as error:
        raise RecordingError(_NOT_INSTALLED) from error

    try:
        key = load_pem_public_key(_content(key_file))
    except ValueError as error:
        raise RecordingError(f"{os.fspath(key_file)} is not a public key that can be read: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise RecordingError(f"{os.fspath(key_file)} is not an Ed25519 public key.")

    def check(signature: bytes, data: bytes) -> bool:
        try:
            key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    return Verifier(_name(key.public_bytes(Encoding.Raw, PublicFormat.Raw)), check)


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RecordingError(f"The key {os.fspath(path)} cannot be read: {error.strerror}") from error


def _name(public_key: bytes) -> str:
    return f"ed25519:{hashlib.sha256(public_key).hexdigest()[:16]}"
