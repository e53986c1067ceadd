"""The corpus's own rules, checked with nothing but a JSON parser and jsonschema."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jsonschema.exceptions import SchemaError

from ..contract import BASE, DATA_FOLDERS, faults, validator
from ..corpus import Case, json_names, load_cases, read_json, spec_names
from .differences import row_problems
from .known_failures import form_problems

KINDS = ("geometry", "metrics", "parsers", "tasks")
_WORDS_OF_TESTS = {"should", "must", "test"}


def stated_specs() -> list[str]:
    """Return the paths of all specs that have cases, without their ending."""
    return [name for name in json_names("spec") if name.partition("/")[0] in KINDS]


def corpus_problems() -> list[str]:
    """Return every breach of the corpus's rules, one sentence each; none is the aim."""
    return [
        *pairing_problems(),
        *schema_problems(),
        *cases_problems(),
        *known_failures_problems(),
        *differences_problems(),
    ]


def pairing_problems() -> Iterator[str]:
    """Yield specs without a case file and case files without a spec."""
    specs, case_files = set(stated_specs()), set(spec_names())
    yield from (f"spec/{name}.json has no cases" for name in sorted(specs - case_files))
    yield from (f"golden_cases/{name}.json has no spec" for name in sorted(case_files - specs))


def schema_problems() -> Iterator[str]:
    """Yield what is wrong with each schema in spec/: its form, and the name in its ``$id``."""
    for name in json_names("spec"):
        if name.startswith(tuple(f"{folder}/" for folder in DATA_FOLDERS)):
            continue
        schema, place = read_json("spec", f"{name}.json"), f"spec/{name}.json"
        try:
            validator(f"{name}.json").check_schema(schema)
        except SchemaError as fault:
            yield f"{place}: {fault.message[:200]}"
        if schema.get("$id") != f"{BASE}{name}.json":
            yield f"{place}: its $id names another place"


def cases_problems() -> Iterator[str]:
    """Yield what is wrong with each spec and its cases."""
    for name in sorted(set(stated_specs()) & set(spec_names())):
        for folder in ("spec", "golden_cases"):
            yield from (f"{folder}/{name}.json: {fault}" for fault in _text_problems(folder, name))
        cases = read_json("golden_cases", f"{name}.json")
        yield from spec_problems(name, read_json("spec", f"{name}.json"), cases)


def spec_problems(name: str, spec: dict[str, Any], case_file: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with one spec and its file of cases.

    Parameters
    ----------
    name
        The spec's path, without its ending.
    spec, case_file
        What the two files hold.
    """
    broken = [
        *(f"spec/{name}.json: {fault}" for fault in faults(spec, "meta.json")),
        *(f"golden_cases/{name}.json: {fault}" for fault in faults(case_file, "cases.json")),
    ]
    yield from broken
    if broken:
        return
    if case_file["spec"] != f"{name}.json":
        yield f"golden_cases/{name}.json: names another spec, {case_file['spec']}"
    stated = next(spec[key] for key in spec if key.startswith("x-"))
    cases = case_file["cases"]
    for case in cases:
        place = f"{name}: {case['description']}"
        instance = {"input": case["input"], "expected": case["expected"]}
        yield from (f"{place}: {fault}" for fault in faults(instance, f"{name}.json"))
        yield from (f"{place}: {fault}" for fault in _wording_problems(case["description"]))
        yield from (f"{place}: {fault}" for fault in _profile_problems(case["input"]))
    cited = {rule for case in cases for rule in case["rules"]}
    rules = set(stated["rules"])
    yield from (f"{name}: no case cites the rule {rule}" for rule in sorted(rules - cited))
    yield from (f"{name}: there is no rule {rule}, which a case cites" for rule in cited - rules)
    departed = {deviation["rule"] for deviation in stated["deviations"]}
    yield from (f"{name}: there is no rule {rule} to deviate from" for rule in departed - rules)
    repeated = Counter(case["description"] for case in cases)
    yield from (f"{name}: two cases are called {d!r}" for d, n in repeated.items() if n > 1)


def known_failures_problems() -> Iterator[str]:
    """Yield what is wrong with the files of spec/known_failures/."""
    cases: list[Case] = load_cases()
    for name, stated in _data("known_failures"):
        yield from (f"spec/{name}.json: {fault}" for fault in form_problems(stated, cases))


def differences_problems() -> Iterator[str]:
    """Yield what is wrong with the files of spec/differences/."""
    cases = load_cases("metrics/")
    specs = {stated["evaluator"]: stated["specs"] for _, stated in _data("known_failures")}
    for name, stated in _data("differences"):
        problems = row_problems(stated, cases, specs)
        yield from (f"spec/{name}.json: {fault}" for fault in problems)


def _data(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and content of each file of a folder of spec/ that holds data."""
    for name in json_names("spec"):
        if name.startswith(f"{folder}/"):
            yield name, read_json("spec", f"{name}.json")


def _wording_problems(description: str) -> Iterator[str]:
    """Yield why a description is no plain statement."""
    for word in sorted(_WORDS_OF_TESTS & set(description.lower().split())):
        yield f"says {word!r}; say what holds"
    if description.endswith("."):
        yield "ends with a full stop"


def _profile_problems(given: dict[str, Any]) -> Iterator[str]:
    name = given.get("profile")
    if name is not None and name.partition(":")[0] not in read_json("parsing", "profiles.json"):
        yield f"there is no profile {name!r}"


def _text_problems(folder: str, name: str) -> list[str]:
    """Return what JSON parsers do not all read alike: keys twice, NaN, numbers beyond float64."""
    file = files(f"lmms_eval_grounding.{folder}").joinpath(*f"{name}.json".split("/"))
    problems: list[str] = []

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        counts = Counter(key for key, _ in pairs)
        problems.extend(f"the key {key!r} stands twice" for key, n in counts.items() if n > 1)
        return dict(pairs)

    def whole(digits: str) -> int:
        number = int(digits)
        if abs(number) >= 2**53:
            problems.append(f"{digits} is not below 2^53")
        return number

    def constant(name: str) -> None:
        problems.append(f"{name} is not JSON")

    json.loads(
        file.read_text("utf-8"), object_pairs_hook=checked, parse_int=whole, parse_constant=constant
    )
    return problems
