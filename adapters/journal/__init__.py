"""The journal: undo, redo and differences of what tools changed, by tool call."""

from handrail.adapters.journal.environment import JournaledEnvironment, journal
from handrail.adapters.journal.history import History, JournalError, UndoConflict, Undone
from handrail.adapters.journal.states import Change, State
from handrail.adapters.journal.store import DirectoryJournal, JournalStore, MemoryJournal

__all__ = [
    "Change",
    "DirectoryJournal",
    "History",
    "JournalError",
    "JournalStore",
    "JournaledEnvironment",
    "MemoryJournal",
    "State",
    "UndoConflict",
    "Undone",
    "journal",
]
