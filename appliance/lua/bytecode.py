"""Bytecode: what Lua 5.4 made of a file, read as data and never run; it tells which globals are used, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from lupa import lua54

from appliance.lua.source import Source

_HEADER = b"\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08"
_NUMBERS = 8 + 8 + 1
"""Bytes behind the header that need no look: an integer, a float, how many upvalues the file has."""

_LINE_ELSEWHERE = -0x80


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step: its opcode, its operands, its line. `jump` is how far a jump goes."""

    op: int
    a: int
    b: int
    c: int
    jump: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function of a file, the file itself included. Constants that are no text are None."""

    code: tuple[Instruction, ...]
    constants: tuple[str | None, ...]
    upvalues: tuple[str, ...]
    locals: frozenset[str]


def functions_of(source: Source) -> list[Function]:
    """Every function of the file; none if it does not compile, or if this Lua writes its bytecode another way."""
    dumped: bytes = _dump()(source.chunk) or b""
    if not dumped.startswith(_HEADER):
        return []
    return list(_Bytes(dumped, len(_HEADER) + _NUMBERS).function())


@cache
def _dump() -> Any:
    lua = lua54.LuaRuntime(encoding=None, register_eval=False, register_builtins=False)
    return lua.eval(b"function(text) local f = load(text, '=', 't') return f and string.dump(f) end")


class _Bytes:
    """The bytes, and how far they have been read."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def function(self) -> Iterator[Function]:
        """The function that begins here and those inside it; the order is that of the bytes."""
        self._text()
        first_line = self._size()
        self._size()
        self._take(3)
        words = [int.from_bytes(self._take(4), "little") for _ in range(self._size())]
        constants = tuple(self._constant() for _ in range(self._size()))
        self._take(3 * self._size())
        inner = [each for _ in range(self._size()) for each in self.function()]
        lines = self._lines(first_line)
        names = frozenset(self._local() for _ in range(self._size()))
        upvalues = tuple(self._text() for _ in range(self._size()))
        code = tuple(map(_instruction, words, lines))
        yield Function(code=code, constants=constants, upvalues=upvalues, locals=names)
        yield from inner

    def _lines(self, line: int) -> list[int]:
        deltas = [int.from_bytes(self._take(1), "little", signed=True) for _ in range(self._size())]
        known = {self._size(): self._size() for _ in range(self._size())}
        lines = []
        for index, delta in enumerate(deltas):
            line = known[index] if delta == _LINE_ELSEWHERE else line + delta
            lines.append(line)
        return lines

    def _constant(self) -> str | None:
        kind = self._take(1)[0]
        if kind in (0x04, 0x14):
            return self._text()
        self._take(8 if kind in (0x03, 0x13) else 0)
        return None

    def _local(self) -> str:
        name = self._text()
        self._size(), self._size()
        return name

    def _text(self) -> str:
        size = self._size()
        return self._take(size - 1).decode(errors="replace") if size else ""

    def _size(self) -> int:
        value, byte = 0, 0
        while byte < 0x80:
            byte = self._take(1)[0]
            value = value << 7 | byte & 0x7F
        return value

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken


def _instruction(word: int, line: int) -> Instruction:
    jump = (word >> 7) - ((1 << 24) - 1)
    return Instruction(word & 0x7F, word >> 7 & 0xFF, word >> 16 & 0xFF, word >> 24, jump, line)
