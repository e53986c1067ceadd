"""Predictions to be scored: a JSONL file, one prediction a line, found by the sample's id.

A line has the ``id`` and, by its form, ``reply``, ``boxes``, ``mask`` or ``boxes3d``: a reply, or
what was read from one already; its schema is spec/records/predicted_<form>.json. Or it is a line of
an lmms-eval samples file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ..contract import ContractError, check
from ..json_files import Line, LineError, json_lines, strict_json
from ..samples_log import is_logged_sample, logged_reply


class Prediction(NamedTuple):
    """One prediction.

    Attributes
    ----------
    key
        The sample's id, or its position in the split where a samples file does not tell the id.
    form
        The name of the field that holds it; ``reply`` for a logged one.
    fields
        All fields but the id; of a logged reply ``reply`` and, where the log tells them,
        ``profile`` and ``min_pixels``.
    """

    key: str | int
    form: str
    fields: Mapping[str, Any]


class Predictions:
    """The predictions of a file. All are checked at once; only their places are kept in memory.

    Parameters
    ----------
    path
        The file.
    forms
        The forms that the benchmark takes, beside samples files.

    Raises
    ------
    ValueError
        For a path that is no file; for a line that is no such prediction, and for two different
        predictions of one sample, by their lines.
    """

    def __init__(self, path: Path, forms: Collection[str]) -> None:
        if not path.is_file():
            raise ValueError(f"{path}: no file; predictions are read twice, so a pipe will not do")
        self.path, self._forms = path, forms
        self.repeated = 0
        self._places: dict[str | int, Line] = {}
        self._found: set[str | int] = set()
        self._file = path.open("rb")
        try:
            for line in json_lines(path):
                self._add(line)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Predictions:
        """Return the predictions, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()

    def __len__(self) -> int:
        """Return the number of samples that are predicted."""
        return len(self._places)

    def find(self, id: str, position: int) -> Prediction | None:
        """Return the prediction of a sample; None if there is none."""
        key = id if id in self._places else position
        if key not in self._places:
            return None
        self._found.add(key)
        return self._read(self._places[key])

    def unknown(self) -> list[str]:
        """Return the keys of the predictions that no `find` has returned, as text, sorted."""
        return sorted(str(key) for key in self._places if key not in self._found)

    def fault(self, prediction: Prediction, what: object) -> LineError:
        """Return an error that names the line of a prediction."""
        return LineError(self.path, self._places[prediction.key].number, what)

    def _add(self, line: Line) -> None:
        prediction = self._prediction(line)
        if not is_logged_sample(line.value):
            try:
                check(line.value, f"records/predicted_{prediction.form}.json")
            except ContractError as fault:
                raise LineError(self.path, line.number, fault) from None
        first = self._places.setdefault(prediction.key, line._replace(value=None))
        if first.number == line.number:
            return
        if self._read(first) != prediction:
            what = f"predicts {prediction.key!r}, as line {first.number} does, but not the same"
            raise LineError(self.path, line.number, what)
        self.repeated += 1

    def _read(self, place: Line) -> Prediction:
        self._file.seek(place.start)
        return self._prediction(place._replace(value=strict_json(self._file.readline())))

    def _prediction(self, line: Line) -> Prediction:
        if is_logged_sample(line.value):
            return self._logged(line)
        fields = dict(line.value) if isinstance(line.value, dict) else {}
        form = next((form for form in self._forms if form in fields), None)
        if form is None or not isinstance(fields.get("id"), str):
            needed = " or ".join(map(repr, self._forms))
            raise LineError(
                self.path, line.number, f"a prediction has an 'id', a text, and {needed}"
            )
        return Prediction(fields.pop("id"), form, fields)

    def _logged(self, line: Line) -> Prediction:
        try:
            key, reply, reading = logged_reply(line.value)
        except (ValueError, LookupError, TypeError) as fault:
            what = f"no sample of lmms-eval ({type(fault).__name__}: {fault})"
            raise LineError(self.path, line.number, what) from None
        known = {name: reading[name] for name in ("profile", "min_pixels") if name in reading}
        return Prediction(key, "reply", {"reply": reply, **known})
