"""handrail: the hands of a coding agent, and the rail that keeps them safe.

    async with local_environment(cwd="/repo") as env:
        toolbox = Toolbox(env, coding_tools())
        result = await toolbox.call("read", {"path": "README.md"})

Every name here is loaded on first use, so that importing handrail costs nothing that is not needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from handrail.adapters.confined.environment import confine
    from handrail.adapters.journal.environment import JournaledEnvironment, journal
    from handrail.adapters.journal.history import JournalError, UndoConflict
    from handrail.adapters.local.environment import local_environment
    from handrail.adapters.memory.clock import VirtualClock
    from handrail.adapters.memory.environment import MemoryEnvironment, memory_environment
    from handrail.adapters.recording.environment import record
    from handrail.adapters.recording.errors import LogError, RecordingError, ReplayError
    from handrail.adapters.recording.redaction import Redaction
    from handrail.adapters.recording.replaying.environment import ReplayEnvironment, replay
    from handrail.adapters.recording.sinks.memory import MemoryLog
    from handrail.adapters.recording.verifying import Verification, verify_log
    from handrail.core.arguments import parameter
    from handrail.core.errors import ToolError
    from handrail.core.events import CallEnded, CallStarted, CallUpdated, Event, EventStream
    from handrail.core.file_queue import FileQueue
    from handrail.core.planning import AppliedPlan, EditPlan, apply_plan, apply_plans
    from handrail.core.results import Content, ImageContent, TextContent, ToolResult, text_result
    from handrail.core.tool import Tool, ToolContext, define_tool
    from handrail.core.toolbox import Call, Toolbox
    from handrail.core.tools.bash import BashOptions, SpawnRequest
    from handrail.core.tools.edit import EditOptions, plan_edit
    from handrail.core.tools.find import FindOptions
    from handrail.core.tools.grep import GrepOptions
    from handrail.core.tools.ls import LsOptions
    from handrail.core.tools.powershell import PowershellOptions
    from handrail.core.tools.read import ReadOptions
    from handrail.core.tools.write import WriteOptions
    from handrail.core.toolsets import all_tools, coding_tools, read_only_tools
    from handrail.ports.clock import ClockPort, Deadline
    from handrail.ports.commands import (
        BackgroundProcess,
        Command,
        CommandPort,
        Exit,
        ExitListener,
        Inheritance,
        OutputSink,
        ResourceLimits,
    )
    from handrail.ports.context import CallContext, CallObserver
    from handrail.ports.environment import Environment, Offload, Session
    from handrail.ports.errors import PortError, PortErrorCode
    from handrail.ports.files import (
        ABSENT,
        DirEntry,
        DirListing,
        FileContent,
        FileKind,
        FilePort,
        FileStart,
        FileStat,
        Version,
        WriteReceipt,
    )

__all__ = [
    "ABSENT",
    "AppliedPlan",
    "BackgroundProcess",
    "BashOptions",
    "Call",
    "CallContext",
    "CallEnded",
    "CallObserver",
    "CallStarted",
    "CallUpdated",
    "ClockPort",
    "Command",
    "CommandPort",
    "Content",
    "Deadline",
    "DirEntry",
    "DirListing",
    "EditOptions",
    "EditPlan",
    "Environment",
    "Event",
    "EventStream",
    "Exit",
    "ExitListener",
    "FileContent",
    "FileKind",
    "FilePort",
    "FileQueue",
    "FileStart",
    "FileStat",
    "FindOptions",
    "GrepOptions",
    "ImageContent",
    "Inheritance",
    "JournalError",
    "JournaledEnvironment",
    "LogError",
    "LsOptions",
    "MemoryEnvironment",
    "MemoryLog",
    "Offload",
    "OutputSink",
    "PortError",
    "PortErrorCode",
    "PowershellOptions",
    "ReadOptions",
    "RecordingError",
    "Redaction",
    "ReplayEnvironment",
    "ReplayError",
    "ResourceLimits",
    "Session",
    "SpawnRequest",
    "TextContent",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Toolbox",
    "UndoConflict",
    "Verification",
    "Version",
    "VirtualClock",
    "WriteOptions",
    "WriteReceipt",
    "all_tools",
    "apply_plan",
    "apply_plans",
    "coding_tools",
    "confine",
    "define_tool",
    "journal",
    "local_environment",
    "memory_environment",
    "parameter",
    "plan_edit",
    "read_only_tools",
    "record",
    "replay",
    "text_result",
    "verify_log",
]

_NAMES: Final = {
    "handrail.adapters.confined.environment": ("confine",),
    "handrail.adapters.journal.environment": ("JournaledEnvironment", "journal"),
    "handrail.adapters.journal.history": ("JournalError", "UndoConflict"),
    "handrail.adapters.local.environment": ("local_environment",),
    "handrail.adapters.memory.clock": ("VirtualClock",),
    "handrail.adapters.memory.environment": ("MemoryEnvironment", "memory_environment"),
    "handrail.adapters.recording.environment": ("record",),
    "handrail.adapters.recording.errors": ("LogError", "RecordingError", "ReplayError"),
    "handrail.adapters.recording.redaction": ("Redaction",),
    "handrail.adapters.recording.replaying.environment": ("ReplayEnvironment", "replay"),
    "handrail.adapters.recording.sinks.memory": ("MemoryLog",),
    "handrail.adapters.recording.verifying": ("Verification", "verify_log"),
    "handrail.core.arguments": ("parameter",),
    "handrail.core.errors": ("ToolError",),
    "handrail.core.events": ("CallEnded", "CallStarted", "CallUpdated", "Event", "EventStream"),
    "handrail.core.file_queue": ("FileQueue",),
    "handrail.core.planning": ("AppliedPlan", "EditPlan", "apply_plan", "apply_plans"),
    "handrail.core.results": ("Content", "ImageContent", "TextContent", "ToolResult", "text_result"),
    "handrail.core.tool": ("Tool", "ToolContext", "define_tool"),
    "handrail.core.toolbox": ("Call", "Toolbox"),
    "handrail.core.tools.bash": ("BashOptions", "SpawnRequest"),
    "handrail.core.tools.edit": ("EditOptions", "plan_edit"),
    "handrail.core.tools.find": ("FindOptions",),
    "handrail.core.tools.grep": ("GrepOptions",),
    "handrail.core.tools.ls": ("LsOptions",),
    "handrail.core.tools.powershell": ("PowershellOptions",),
    "handrail.core.tools.read": ("ReadOptions",),
    "handrail.core.tools.write": ("WriteOptions",),
    "handrail.core.toolsets": ("all_tools", "coding_tools", "read_only_tools"),
    "handrail.ports.clock": ("ClockPort", "Deadline"),
    "handrail.ports.commands": (
        "BackgroundProcess",
        "Command",
        "CommandPort",
        "Exit",
        "ExitListener",
        "Inheritance",
        "OutputSink",
        "ResourceLimits",
    ),
    "handrail.ports.context": ("CallContext", "CallObserver"),
    "handrail.ports.environment": ("Environment", "Offload", "Session"),
    "handrail.ports.errors": ("PortError", "PortErrorCode"),
    "handrail.ports.files": (
        "ABSENT",
        "DirEntry",
        "DirListing",
        "FileContent",
        "FileKind",
        "FilePort",
        "FileStart",
        "FileStat",
        "Version",
        "WriteReceipt",
    ),
}
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker that saw this function would accept every misspelt name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
