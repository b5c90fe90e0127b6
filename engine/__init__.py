"""The engine: constraint → automaton → classes → messages → draw → record. It knows no page and no picture."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def kernel_cache(folder: Path) -> Path:
    """Return where the compiled kernels of exactly the sources in a folder are kept.

    numba looks for changes in a kernel's own file only, but compiles into it what it calls in others: with one folder
    for all versions, an edited callee would go on being run as it was.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted([*folder.glob("*.py"), *folder.glob("inference/*.py")]):
        source = path.read_bytes()
        if b"from numba import" in source:
            digest.update(source)
    return folder / "__pycache__" / f"kernels-{digest.hexdigest()}"


os.environ.setdefault("NUMBA_CACHE_DIR", str(kernel_cache(Path(__file__).parent)))
