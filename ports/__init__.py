"""What the core asks of the world: three ports, the plain data that crosses them, and one error.

This package imports nothing else of the project and no operating-system facility.
"""
