"""bitwatch: launches a multi-GPU training, watches it, and keeps its story."""

__version__ = "0.1.0"
