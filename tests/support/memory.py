"""Where tests write: in memory, where there is a file system for that."""

import os
import shutil
from pathlib import Path

IN_MEMORY = Path("/dev/shm")  # tmpfs on Linux
ENOUGH = 2**30  # bytes; containers often have little


def memory() -> Path | None:
    """A file system in memory with room enough, if there is one."""
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ENOUGH:
        return IN_MEMORY
    return None
