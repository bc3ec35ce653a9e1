"""Recording: a log of all that passes the ports of an environment, proof against tampering, and replay from it."""

from handrail.adapters.recording.chain import Head
from handrail.adapters.recording.contents import ContentStore, DirectoryStore, MemoryStore
from handrail.adapters.recording.environment import record
from handrail.adapters.recording.errors import ContentError, LogError, RecordingError, ReplayError
from handrail.adapters.recording.redaction import DEFAULT_PATTERNS, Pattern, Redaction
from handrail.adapters.recording.replaying.environment import RecordedToolCall, ReplayEnvironment, replay
from handrail.adapters.recording.signing import Signer, Verifier, ed25519_signer, ed25519_verifier
from handrail.adapters.recording.sinks.json_lines import JsonLinesSink
from handrail.adapters.recording.sinks.memory import MemoryLog
from handrail.adapters.recording.sinks.sqlite import SqliteSink
from handrail.adapters.recording.verifying import Problem, Verification, verify_log

__all__ = [
    "DEFAULT_PATTERNS",
    "ContentError",
    "ContentStore",
    "DirectoryStore",
    "Head",
    "JsonLinesSink",
    "LogError",
    "MemoryLog",
    "MemoryStore",
    "Pattern",
    "Problem",
    "RecordedToolCall",
    "RecordingError",
    "Redaction",
    "ReplayEnvironment",
    "ReplayError",
    "Signer",
    "SqliteSink",
    "Verification",
    "Verifier",
    "ed25519_signer",
    "ed25519_verifier",
    "record",
    "replay",
    "verify_log",
]
