"""The frames between the hub and a Lua worker."""

from __future__ import annotations

import pytest

from appliance.lua_worker.protocol import MAX_FRAME_BYTES, Decoder, FrameKind, WorkerFrame, encode
from tests.fakes.memory import peak_bytes

FRAMES = [
    WorkerFrame(FrameKind.STOP, 1, (b"\x03",)),
    WorkerFrame(FrameKind.PING, 2**32 - 1, ()),
    WorkerFrame(FrameKind.ANSWER, 7, (b"", b"1", b"x" * 70_000, b"")),
    WorkerFrame(FrameKind.DONE, 7, (b"",)),
]


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_frames_arrive_in_pieces(size: int) -> None:
    sent, decoder = b"".join(encode(kind, run, *parts) for kind, run, parts in FRAMES), Decoder()
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert [frame for piece in pieces for frame in decoder.feed(piece)] == FRAMES


def test_encoding_a_frame_copies_its_parts_only_once() -> None:
    part = bytes(1 << 22)
    assert peak_bytes(lambda: encode(FrameKind.ANSWER, 1, part)) < 1.1 * len(part)


def test_a_frame_is_limited() -> None:
    encode(FrameKind.ANSWER, 1, bytes(MAX_FRAME_BYTES - 8), b"")
    with pytest.raises(ValueError, match="too long"):
        encode(FrameKind.ANSWER, 1, bytes(MAX_FRAME_BYTES - 7), b"")


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\0\x63\0\0\0\0\0",  # an unknown kind
        b"\xff\xff\xff\x7f\x01\0\0\0\0\0",  # too long
        b"\2\0\0\0\x01\0\0\0\0\1\0\0",  # ends within the size of a part
        b"\5\0\0\0\x01\0\0\0\0\1\2\0\0\0x",  # the part is longer than the frame
        b"\6\0\0\0\x01\0\0\0\0\1\1\0\0\0xy",  # the frame is longer than its part
        b"\1\0\0\0\x01\0\0\0\0\0x",  # without a part, but not empty
    ],
)
def test_an_invalid_frame_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match="frame"):
        Decoder().feed(data)
