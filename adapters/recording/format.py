"""The kinds of entries, and the header that says that a file is a log at all.

=============  ========================================================================================
kind           meaning and own keys (each entry also has ``seq time at kind prev hash``)
=============  ========================================================================================
log            a recorder begins: ``format version recorder cwd home session contents redacted torn
               may_survive``
call           a tool call starts: ``call tool arguments``
start          a port call that changes something, or streams, is about to run: ``op port method arguments``
chunk          bytes of its stream as they passed: ``op content``
exit           the program of a command ended, its output may go on: ``op exit``
port           a port call ended: ``op begun port method seconds`` and ``result``, ``error``, ``raised`` or
               ``cancelled``; ``arguments`` unless there was a ``start``
result         a tool call ended: ``call tool result``
checkpoint     a signature of all before: ``key signature``
lost           entries that the sink refused: ``first`` (their range ends with this entry's ``seq``)
end            a recorder ends
=============  ========================================================================================

Entries of a tool call have ``call``, ``tool`` and ``within``, the ``seq`` of its ``call`` entry. ``op`` numbers the
port calls of one recorder; ``begun`` is the ``seq`` of the first entry that was written after the call began.
"""

from __future__ import annotations

from typing import Final

from handrail.adapters.recording.chain import Line, parse_line
from handrail.adapters.recording.errors import LogError

__all__ = ["FORMAT", "VERSION", "check_header"]

FORMAT: Final = "handrail-audit"
VERSION: Final = 1


def check_header(raw: bytes, where: str) -> Line:
    """Return the first line of a log.

    Raises:
        LogError: It is no log, or one of another version.
    """
    try:
        line = parse_line(raw)
    except ValueError as error:
        if f'"format":"{FORMAT}"'.encode() in raw:
            raise LogError(f"{where}: the first entry of the log is damaged ({error}).") from None
        raise LogError(f"{where} is not a log of handrail ({error}).") from None
    entry = line.entry
    if entry.get("format") != FORMAT:
        raise LogError(f"{where} is not a log of handrail.")
    if entry.get("version") != VERSION:
        raise LogError(
            f"{where} is a log of version {entry.get('version')}; this program knows version {VERSION}. "
            "Use the handrail that wrote it, or a newer one."
        )
    return line
