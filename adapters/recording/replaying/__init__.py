"""Replay: an environment that answers from a log, without the world that was recorded."""
