"""record: wrap an environment so that everything that passes its ports is in a log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableSequence
from typing import Any, Final, TypeGuard, TypeVar, cast

from attrs import evolve

from handrail.adapters.recording.anchors import AnchorSource
from handrail.adapters.recording.clock import RecordingClock
from handrail.adapters.recording.commands import RecordingCommands
from handrail.adapters.recording.contents import ContentStore
from handrail.adapters.recording.files import RecordingFiles
from handrail.adapters.recording.keeping import ContentKeeper, ContentsMode
from handrail.adapters.recording.offloading import RecordingOffload
from handrail.adapters.recording.recorder import FailurePolicy, Recorder
from handrail.adapters.recording.redaction import Redaction, Redactor
from handrail.adapters.recording.signing import Signer
from handrail.adapters.recording.sinks.base import Sink
from handrail.adapters.recording.sinks.json_lines import JsonLinesSink
from handrail.adapters.recording.sinks.memory import CallableSink, ListSink
from handrail.adapters.recording.sinks.sqlite import SqliteSink
from handrail.ports.environment import Environment

__all__ = ["SinkLike", "record"]

E = TypeVar("E", bound=Environment)

SinkLike = Sink | str | os.PathLike[str] | MutableSequence[Mapping[str, Any]] | Callable[[Mapping[str, Any]], object]
"""A sink; a path (SQLite where its name ends in ``.db``, ``.sqlite`` or ``.sqlite3``, else JSON lines); a list of
mappings; a function that gets each entry as a mapping."""

_SQLITE_SUFFIXES: Final = (".db", ".sqlite", ".sqlite3")


def record(
    env: E,
    sink: SinkLike,
    *,
    contents: ContentsMode = "full",
    store: ContentStore | None = None,
    max_content_bytes: int = 256 * 1024 * 1024,
    redact: Redaction | None = None,
    on_failure: FailurePolicy = "fail",
    signer: Signer | None = None,
    checkpoint_every: int = 1000,
    anchor: AnchorSource | None = None,
) -> E:
    """Return an environment that does the same and records it. Closing it ends the log and closes ``env``.

    Args:
        env: The environment to wrap.
        sink: Where the log goes; an existing file is continued.
        contents: What is kept of the contents of files, output, and long texts: ``off``: their sizes; ``hashes``:
            their SHA-256 too; ``full``: the contents, in the store. Replay needs ``full``.
        store: Where contents go; by default beside the log. A list or function has no such place: without a store,
            ``full`` then means ``hashes``.
        max_content_bytes: A larger content is hashed and not kept.
        redact: What must not get into the log; nothing by default.
        on_failure: When the log cannot be written: ``fail`` makes every call fail before it does anything; ``warn``
            goes on, logs a warning, and notes in the log what is missing.
        signer: Signs checkpoints; see ``ed25519_signer``.
        checkpoint_every: After how many entries there is a checkpoint; one is always at the end.
        anchor: A file or function that keeps the newest head, in a place that who can edit the log cannot.

    Raises:
        LogError: The sink has no log to continue, or another recorder is writing it.
        OSError: It cannot be opened.
    """
    place = _as_sink(sink)
    opened = place.open()
    if store is None and contents == "full":
        store = place.default_store()
        if store is None:
            contents = "hashes"
    keeper = ContentKeeper(contents, store, max_content_bytes, Redactor(redact) if redact is not None else None)
    recorder = Recorder(env.clock, place, keeper, on_failure, signer, checkpoint_every, anchor)
    recorder.begin(env, continues=opened.head, torn=opened.torn)
    env.on_close.insert(0, recorder.aclose)  # the last to close: what happens on closing is recorded too
    return evolve(
        env,
        files=RecordingFiles(env.files, recorder),
        commands=RecordingCommands(env.commands, recorder),
        clock=RecordingClock(env.clock, recorder),
        offload=RecordingOffload(env.offload, recorder),
        observers=(*env.observers, recorder),
    )


def _as_sink(sink: SinkLike) -> Sink:
    if _is_path(sink):
        path = os.fspath(sink)
        return SqliteSink(path) if path.endswith(_SQLITE_SUFFIXES) else JsonLinesSink(path)
    if _is_list(sink):
        return ListSink(sink)
    return CallableSink(sink) if callable(sink) else cast(Sink, sink)


def _is_path(sink: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(sink, str | os.PathLike)


def _is_list(sink: object) -> TypeGuard[MutableSequence[Mapping[str, Any]]]:
    return isinstance(sink, MutableSequence)
