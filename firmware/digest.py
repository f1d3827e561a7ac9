"""The SHA-256 digest of a file."""

import hashlib
from pathlib import Path


def sha256_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
