"""What can be wrong with the data of a benchmark, each as one sentence that names the place."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used as they are; the message says where, what and what to do."""


class SourceError(DataError):
    """An official release that is broken; the message names the file, the place and the reason."""


class OutputError(DataError):
    """A folder that cannot be written to, or must not be replaced."""


class MissingData(SystemExit):
    """No data to evaluate on; the message names the command that makes them.

    A ``SystemExit`` on purpose: lmms-eval wraps any ``Exception`` raised while it loads a task
    into an ``ImportError`` with a long traceback and ends with code 0, whereas this ends the
    command at once with its one line on stderr and code 1.
    """
