"""confine: any environment, kept inside the directories it is meant to work in."""

from handrail.adapters.confined.environment import confine

__all__ = ["confine"]
