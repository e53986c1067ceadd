"""A program that answers cases over its standard input and output, one line each.

It is not trusted to answer at all: whatever it does, `Program.answer` returns or raises
`ProgramError` within the time given. Pipes are polled, which takes a POSIX system.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

from ..json_files import strict_json
from .answer import Answer

MAX_LINE = 2**26
MAX_DEPTH = 100  # levels of an answer; what is expected has ten at most
_LAST_WORDS = 4000
_GRACE = 2.0  # seconds to end in, once nothing more is asked
_POLL = 60.0  # seconds; operating systems know no much longer wait


class ProgramError(Exception):
    """The program hung, ended, or wrote what is no answer to the case; it is of no more use."""


class Program:
    """A running program; a context manager that ends it, and what it has started."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        self._unread = bytearray()
        self._complaints = bytearray()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            with suppress(OSError):
                self._stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in self._pipes():
            with suppress(OSError):
                pipe.close()

    def answer(self, request: dict[str, Any], timeout: float) -> Answer:
        """Return the program's answer to one case.

        Raises
        ------
        ProgramError
            If there is none within ``timeout`` seconds, or not to this case.
        """
        line = self._exchange(json.dumps(request).encode() + b"\n", timeout)
        try:
            answer = strict_json(line)
            _refuse_depth(answer)
        except (ValueError, RecursionError) as fault:
            raise ProgramError(f"wrote a line that is no JSON ({fault}): {_shown(line)}") from None
        if not isinstance(answer, dict) or "id" not in answer:
            raise ProgramError(f"wrote a line that is no answer: {_shown(line)}")
        if answer.pop("id") != request["id"]:
            raise ProgramError(f"answered another case than the one asked: {_shown(line)}")
        return _answer(answer)

    def _exchange(self, line: bytes, timeout: float) -> bytes:
        """Write a line, and return the next one that the program writes."""
        deadline = time.monotonic() + timeout
        pending = memoryview(line)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            selector.register(self._stdout, selectors.EVENT_READ, self._read_answer)
            selector.register(self._stderr, selectors.EVENT_READ, self._read_complaint)
            while pending or b"\n" not in self._unread:
                left = deadline - time.monotonic()
                if left <= 0:
                    did = "did not read the case" if pending else "gave no answer"
                    raise ProgramError(f"{did} within {timeout:g} s")
                for key, _ in selector.select(min(left, _POLL)):
                    if key.data is None:
                        pending = self._write(pending)
                        if not pending:
                            selector.unregister(key.fileobj)
                    elif not _reads_on(key.data):
                        selector.unregister(key.fileobj)
        answer, _, rest = self._unread.partition(b"\n")
        self._unread = rest
        return bytes(answer)

    def _write(self, pending: memoryview) -> memoryview:
        try:
            return pending[os.write(self._stdin.fileno(), pending) :]
        except BlockingIOError:
            return pending
        except OSError:  # it reads no more; whether it still answers is for the reader to see
            return pending[:0]

    def _read_answer(self) -> bool:
        chunk = os.read(self._stdout.fileno(), 2**16)
        if not chunk:
            raise ProgramError(self._ending())
        self._unread += chunk
        if len(self._unread) > MAX_LINE:
            raise ProgramError(f"wrote a line of more than {MAX_LINE} bytes")
        return True

    def _read_complaint(self) -> bool:
        chunk = os.read(self._stderr.fileno(), 2**16)
        self._complaints = (self._complaints + chunk)[-_LAST_WORDS:]
        return bool(chunk)

    def _ending(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        with suppress(BlockingIOError):
            while self._read_complaint():
                pass
        lines = self._complaints.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return how + (f": {_shown(last.encode())}" if last else "")

    def _pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        return self._stdin, self._stdout, self._stderr

    @property
    def _stdin(self) -> IO[bytes]:
        return _opened(self._process.stdin)

    @property
    def _stdout(self) -> IO[bytes]:
        return _opened(self._process.stdout)

    @property
    def _stderr(self) -> IO[bytes]:
        return _opened(self._process.stderr)


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _reads_on(read: Callable[[], bool]) -> bool:
    try:
        return read()
    except BlockingIOError:
        return True


def _answer(given: dict[str, Any]) -> Answer:
    """Return what an answer says beside its id; a faulty form fails the case and no other."""
    match given:
        case {"result": result, **rest} if not rest:
            return Answer(result=result)
        case {"error": str(name), **rest} if not rest:
            return Answer(result={"error": name})
        case {"skip": str(reason), **rest} if not rest:
            return Answer(skipped=reason or "no reason given")
    return Answer(fault=f"an answer holds one of result, error, skip; not {sorted(given)}")


def _refuse_depth(value: Any) -> None:
    """Raise `ValueError` for what is nested so deep that no report could hold it."""
    level = [value]
    for _ in range(MAX_DEPTH):
        nested = [each for each in level if isinstance(each, (dict, list))]
        level = [
            entry
            for each in nested
            for entry in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError(f"nested in more than {MAX_DEPTH} levels")


def _shown(text: bytes) -> str:
    line = ascii(text[:201].decode(errors="replace"))[1:-1]
    return line if len(text) <= 200 else f"{line} .."
