"""Pure tool logic: no operating system, no clock, no randomness; the world is reached through ports only."""
