"""An execution inside the worker, whose code runs on the test's thread. Frames arrive while the execution sends a
frame."""

from __future__ import annotations

from collections.abc import Callable

from appliance.lua_worker.lua_state import LuaState
from appliance.lua_worker.protocol import TIMING, Decoder, FrameKind, Reason
from tests.fakes.rows import each_row

TEXT = b"return {execute = function(ctx) ctx:get_device('a') end}"
NOW = TIMING.pack(5.0, 50.0, Reason.RUNNING_TIME, 0.0)

ARRIVALS: tuple[tuple[Callable[[LuaState], Callable[[], None] | None], FrameKind], ...] = (
    (lambda execution: execution.take_answer((NOW, b"1", b"null")), FrameKind.DONE),
    (lambda execution: execution.take_answer((NOW, b"", b"no such device")), FrameKind.FAILED),
    (lambda execution: execution.take_stop(Reason.CANCELLED), FrameKind.STOPPED),
)


@each_row(("arrival", "last"), ARRIVALS)
def test_frames_of_the_hub_can_arrive_before_send_returns(
    arrival: Callable[[LuaState], Callable[[], None] | None], last: FrameKind
) -> None:
    """Another thread may end the execution, and free its state, while the requesting thread is in `send`."""
    sent: list[FrameKind] = []

    def send(data: bytes) -> None:
        [frame] = Decoder().feed(data)
        sent.append(frame.kind)
        if frame.kind is FrameKind.REQUEST:
            job = arrival(execution)
            assert job is not None
            job()

    over: list[int] = []
    execution = LuaState(1 << 24, send, over.append, lambda *_: None)
    execution.begin(FrameKind.EXECUTE, (NOW, TEXT, b"x.lua", b""))
    assert sent == [FrameKind.REQUEST, last]
    assert over == [execution.number] and execution.memory == 0


def test_an_execution_that_is_stopped_before_its_first_request_sends_no_request() -> None:
    sent: list[bytes] = []
    execution = LuaState(1 << 24, sent.append, lambda _: None, lambda *_: None)
    assert execution.take_stop(Reason.BACKSTOP) is None
    execution.begin(FrameKind.EXECUTE, (NOW, TEXT, b"x.lua", b""))
    [frame] = Decoder().feed(b"".join(sent))
    assert (frame.kind, frame.parts[0][0]) == (FrameKind.STOPPED, Reason.BACKSTOP)


def test_an_execution_polls_after_its_first_instructions() -> None:
    """Each instruction may be a long call of a C function, so the first poll must not wait for a second interval."""
    polled_at: list[float] = []
    execution = LuaState(1 << 24, lambda _: None, lambda _: None, lambda *_: polled_at.append(execution.cpu_secs))
    execution.begin(FrameKind.EXECUTE, (NOW, b"for _ = 1, 900 do end return {}", b"x.lua", b""))
    assert len(polled_at) == 1


@each_row(
    ("text", "message"),
    (
        (b"return {execute = function()\n  error('no')\nend}", b"x.lua:2: no"),
        (b"return {execute = function()\n  end end}", b"x.lua:2: '}' expected (to close '{' at line 1) near 'end'"),
        (b"\x1bLua", b"attempt to load a binary chunk (mode is 't')"),
    ),
)
def test_a_later_run_of_a_file_has_the_same_error(text: bytes, message: bytes) -> None:
    for _ in range(2):  # the second run uses the compiled code of the first run
        sent: list[bytes] = []
        execution = LuaState(1 << 24, sent.append, lambda _: None, lambda *_: None)
        execution.begin(FrameKind.EXECUTE, (NOW, text, b"x.lua", b""))
        [frame] = Decoder().feed(b"".join(sent))
        assert (frame.kind, frame.parts[0]) == (FrameKind.FAILED, message)
