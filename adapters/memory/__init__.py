"""A world in memory: files, programs and time that a test owns. Nothing in it touches the real system."""

from handrail.adapters.memory.clock import Timer, VirtualClock
from handrail.adapters.memory.commands import Matcher, ScriptedCommands, prints
from handrail.adapters.memory.entries import Directory, Entry, File, Special, Symlink
from handrail.adapters.memory.environment import MemoryEnvironment, memory_environment
from handrail.adapters.memory.faults import Faults, Operation
from handrail.adapters.memory.files import MemoryFiles, NameRules
from handrail.adapters.memory.process import Handler, Process

__all__ = [
    "Directory",
    "Entry",
    "Faults",
    "File",
    "Handler",
    "Matcher",
    "MemoryEnvironment",
    "MemoryFiles",
    "NameRules",
    "Operation",
    "Process",
    "ScriptedCommands",
    "Special",
    "Symlink",
    "Timer",
    "VirtualClock",
    "memory_environment",
    "prints",
]
