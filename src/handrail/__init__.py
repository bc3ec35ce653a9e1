"""handrail: the hands of a coding agent, and the rail that keeps them safe."""
