"""What of the signals of whoever started us is ours: nothing but what that one set aside on purpose. Stdlib only,
because the warden uses it too; it listens to nothing itself."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

#: Python ignores these itself, and gives them back to what it starts.
_PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)
#: Without these nothing ends: ignored by a careless parent, they are as they are for anyone.
_NEEDED = (signal.SIGCHLD, signal.SIGTERM)


def settle() -> None:
    """Block nothing, and ignore nothing in a way that is inherited: a mask and an ignored signal outlive exec, and
    agents would run with them. First of all, in the main thread.

    What was set aside (SIGHUP by `nohup`, SIGINT by a shell's `&`) stays so for this process, by a handler, which ends
    with exec."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals():
        if number not in _PYTHONS and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number in _NEEDED else unheard)


def unheard(_number: int, _frame: FrameType | None) -> None:
    """The handler of what was set aside."""


def heard(*numbers: signal.Signals) -> list[signal.Signals]:
    """Those of them that nobody set aside."""
    return [number for number in numbers if signal.getsignal(number) is not unheard]
