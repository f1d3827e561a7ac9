"""The single file, as `tests/firmware/` builds it."""

from tests.firmware.conftest import single_file

__all__ = ["single_file"]
