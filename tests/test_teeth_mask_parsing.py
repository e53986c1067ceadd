"""Wrong ways to parse masks, as published code has them, are refused by the golden cases alone."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding import conformance
from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import Case, load_cases
from lmms_eval_grounding.geometry import masks as geometry
from lmms_eval_grounding.geometry import png
from lmms_eval_grounding.geometry.masks import MaskError, Rle
from lmms_eval_grounding.parsing import (
    answer,
    mask_maps,
    mask_polygons,
    mask_rle,
    mask_tokens,
    masks,
)
from lmms_eval_grounding.parsing.mask_parts import NOTHING, MaskReading, Part
from lmms_eval_grounding.parsing.mask_syntaxes import MASK_SYNTAXES
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.orders import ORDERS
from lmms_eval_grounding.parsing.parsed import ParsedMask
from lmms_eval_grounding.parsing.profile import Profile
from lmms_eval_grounding.parsing.spaces import Space
from lmms_eval_grounding.parsing.syntaxes import Row

CASES = sorted(
    load_cases("parsers/masks"), key=lambda case: isinstance(case.input["reply"], dict)
)  # the long ones last
Fault = Callable[[pytest.MonkeyPatch], None]


def refused(case: Case) -> bool:
    return not passes(case, own_answer)


def test_the_right_parser_is_refused_by_no_case() -> None:
    assert [str(case) for case in CASES if refused(case)] == []


def empty(width: int, height: int) -> Rle:
    return geometry.rle_from_array(np.zeros((height, width), bool))


# --- parsers that read right, and make the wrong thing of it


def parsers(wrong: Callable[..., ParsedMask]) -> Fault:
    """Return the fault that replies are read by another parser."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(conformance, "parse_mask", wrong)

    fault.__name__ = wrong.__name__
    return fault


def failure_is_an_empty_mask(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.status in ("ok", "no_target"):
        return parsed
    return ParsedMask("ok", empty(*size), parts=1)


def failure_is_no_target(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    return parsed if parsed.status == "ok" else ParsedMask("no_target")


def unparseable_is_no_target(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    return ParsedMask("no_target") if parsed.status == "unparseable" else parsed


def size_mismatch_is_an_empty_mask(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.reason != "size_mismatch":
        return parsed
    return ParsedMask("ok", empty(*size), parts=1, syntax=parsed.syntax)


def nothing_is_an_empty_mask(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    return (
        replace(parsed, status="ok", mask=empty(*size)) if parsed.status == "no_target" else parsed
    )


def an_empty_mask_is_nothing(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.mask and not geometry.area(parsed.mask):
        return ParsedMask("no_target", None, parsed.flags, None, parsed.syntax)
    return parsed


def one_pixel_is_nothing(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.mask and geometry.area(parsed.mask) == 1:
        return ParsedMask("no_target", None, parsed.flags, None, parsed.syntax)
    return parsed


def a_missing_decoder_is_no_target(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    return ParsedMask("no_target") if parsed.reason == "needs_decoder" else parsed


def a_missing_decoder_is_an_empty_mask(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.reason != "needs_decoder":
        return parsed
    return ParsedMask("ok", empty(*size), parsed.flags, None, parsed.syntax, 1)


def a_missing_decoder_is_prose(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.reason != "needs_decoder":
        return parsed
    return ParsedMask("unparseable", None, (), "no_mask")


def tags_are_stripped_before_json(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    text = re.sub(r"<[^<>]*>|```\w*", "", reply) if reply else reply
    return parse_mask(text, profile, *size)


def brackets_are_cut_out_before_json(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    found = re.search(r"\{.*?\}\]?|\[.*?\]", reply or "", re.DOTALL)
    return parse_mask(found.group() if found else reply, profile, *size)


def boxes_are_filled_where_no_mask_is(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.status in ("ok", "no_target") or profile.box is None or profile.mask is None:
        return parsed
    return parse_mask(reply, replace(profile, mask=replace(profile.mask, from_box=True)), *size)


def a_filled_box_is_not_flagged(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    return replace(parsed, flags=tuple(f for f in parsed.flags if f != "mask_from_box"))


def left_out_parts_are_not_flagged(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    return replace(parsed, flags=tuple(f for f in parsed.flags if f != "partial"))


def one_faulty_part_spoils_all(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if "partial" not in parsed.flags:
        return parsed
    return ParsedMask("malformed", None, parsed.flags, "bad_mask", parsed.syntax)


def masks_are_transposed(reply: Any, profile: Profile, *size: int) -> ParsedMask:
    parsed = parse_mask(reply, profile, *size)
    if parsed.mask is None or size[0] != size[1]:
        return parsed
    turned = geometry.array_from_rle(parsed.mask).T
    return replace(parsed, mask=geometry.rle_from_array(turned))


# --- other conventions than the declared one


def conventions(name: str, change: Callable[[Any], Any]) -> Fault:
    """Return the fault that a profile's way to write masks is changed before reading."""

    def wrong(reply: Any, profile: Profile, *size: int) -> ParsedMask:
        return parse_mask(reply, replace(profile, mask=change(profile.mask)), *size)

    wrong.__name__ = name
    return parsers(wrong)


def with_space(change: Callable[[Space], Space]) -> Callable[[Any], Any]:
    return lambda mask: replace(mask, space=change(mask.space)) if mask.space else mask


def with_box(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda mask: replace(mask, box=change(mask.box)) if mask.box else mask


def as_xyxy(box: Any) -> Any:
    return replace(box, order=ORDERS["xyxy"]) if box.order is ORDERS["yxyx"] else box


CONVENTION_FAULTS = [
    conventions("polygons_are_pixels", with_space(lambda space: replace(space, extent="image"))),
    conventions("polygons_are_thousandths", with_space(lambda s: replace(s, extent=(1000, 1000)))),
    conventions("y_goes_by_the_width", with_space(
        lambda s: s if s.extent == "image" else replace(s, extent=(s.extent[0], s.extent[1] * 2))
    )),
    conventions("y_before_x_in_polygons", lambda mask: replace(mask, order="yx")),
    conventions("x_before_y_in_the_box_of_a_map", with_box(as_xyxy)),
    conventions("any_grid_of_16", lambda mask: replace(mask, grid=16 if mask.grid else 0)),
    conventions("no_tolerance", with_space(lambda space: replace(space, tolerance=0.0))),
    conventions("any_tolerance", with_space(lambda space: replace(space, tolerance=1e300))),
    conventions(
        "scores_below_a_half_are_left_out",
        lambda mask: replace(mask, score_threshold=0.5) if mask.with_scores else mask,
    ),
    conventions("no_threshold_at_all", lambda mask: replace(mask, score_threshold=None)),
    conventions("no_bare_lists", lambda mask: replace(mask, bare=False)),
    conventions("every_key_holds_masks", lambda mask: replace(mask, keys=(*mask.keys, "points"))),
]  # fmt: skip


# --- steps


def replacing(module: Any, name: str, wrong: Any) -> Fault:
    """Return the fault that a name of a module means something else."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(module, name, wrong)

    fault.__name__ = f"{name}_{getattr(wrong, '__name__', 'changed')}"
    return fault


def syntax(name: str, wrong: Any) -> Fault:
    """Return the fault that a syntax is read in another way."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(MASK_SYNTAXES, name, wrong(MASK_SYNTAXES[name]))

    fault.__name__ = f"{name}_{wrong.__name__}"
    return fault


def runs_along_the_rows(value: Any, size: Any) -> Rle:
    height, width = size
    pixels = geometry.array_from_rle(geometry.rle_from_coco(value, size)).ravel(order="F")
    return geometry.rle_from_array(pixels.reshape(height, width))


def resized(value: Any, size: Any) -> Rle:
    given = geometry.array_from_rle(geometry.rle_from_coco(value))
    rows, columns = (np.arange(n) * m // n for n, m in zip(size, given.shape, strict=True))
    return geometry.rle_from_array(given[rows][:, columns])


def any_size_is_a_size(value: Any) -> bool:
    return False


def sizes_are_resized(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mask_rle, "_is_size", any_size_is_a_size)
    patch.setattr(mask_rle, "rle_from_coco", resized)


def as_many_pixels_are_a_match(patch: pytest.MonkeyPatch) -> None:
    def counts_only(value: Any, size: Any) -> Rle:
        return geometry.rle_from_coco({"size": list(size), "counts": value["counts"]}, size)

    patch.setattr(mask_rle, "_is_size", any_size_is_a_size)
    patch.setattr(mask_rle, "rle_from_coco", counts_only)


def short_runs_are_padded(value: Any, size: Any) -> Rle:
    counts = value["counts"]
    if isinstance(counts, list) and all(type(run) is int and run >= 0 for run in counts):
        rest = size[0] * size[1] - sum(counts)
        if rest > 0:
            counts = [*counts, *([0] * (len(counts) % 2)), rest]
    return geometry.rle_from_coco({**value, "counts": counts}, size)


def long_runs_are_cut(value: Any, size: Any) -> Rle:
    counts = value["counts"]
    if isinstance(counts, list) and all(type(run) is int and run >= 0 for run in counts):
        ends = np.minimum(np.cumsum([float(run) for run in counts]), size[0] * size[1])
        counts = np.diff(ends, prepend=0).astype(int).tolist()
    return geometry.rle_from_coco({**value, "counts": counts}, size)


def printed_bytes_are_read(value: Any, size: Any) -> Rle:
    counts = value["counts"]
    if isinstance(counts, str) and counts[:2] == "b'":
        counts = counts[2:-1]
    return geometry.rle_from_coco({**value, "counts": counts}, size)


def bad_runs_are_an_empty_mask(value: Any, size: Any) -> Rle:
    try:
        return geometry.rle_from_coco(value, size)
    except MaskError:
        return empty(size[1], size[0])


def parts_that_overlap_cancel(rles: Any, size: Any) -> Rle:
    total = sum(geometry.array_from_rle(rle).astype(int) for rle in rles)
    return geometry.rle_from_array(total % 2 == 1)


def parts_are_intersected(rles: Any, size: Any) -> Rle:
    return geometry.rle_from_array(
        np.logical_and.reduce([geometry.array_from_rle(rle) for rle in rles])
    )


def the_first_part_counts(rles: Any, size: Any) -> Rle:
    first: Rle = rles[0]
    return first


def the_last_part_counts(rles: Any, size: Any) -> Rle:
    last: Rle = rles[-1]
    return last


def overlaps_of_polygons_cancel(outlines: Any, height: int, width: int) -> Rle:
    filled = [geometry.rle_from_polygons(outline, height, width) for outline in outlines]
    return parts_that_overlap_cancel(filled, (height, width))


def the_first_polygon_counts(outlines: Any, height: int, width: int) -> Rle:
    return geometry.rle_from_polygons(outlines[0], height, width)


def holes_are_filled(outlines: Any, height: int, width: int) -> Rle:
    """Fill by the non-zero rule: what a centre's winding number is not 0 for."""
    y, x = np.mgrid[:height, :width] + 0.5
    pixels = np.zeros((height, width), bool)
    for outline in outlines:
        vertices = np.array(outline).reshape(-1, 2)
        winding = np.zeros((height, width))
        for (x1, y1), (x2, y2) in zip(vertices, np.roll(vertices, -1, axis=0), strict=True):
            crosses = ((y1 <= y) & (y < y2)) | ((y2 <= y) & (y < y1))
            at = x1 + (y - y1) * (x2 - x1) / (y2 - y1) if y1 != y2 else x1
            winding += np.sign(y2 - y1) * (crosses & (at > x))
        pixels |= winding != 0
    return geometry.rle_from_array(pixels)


def polygons_without_pixels_are_empty(rle: Rle) -> int:
    return 1


def thresholded_at(threshold: int) -> Fault:
    return replacing(mask_maps, "THRESHOLD", threshold)


def bad_maps_are_zeros(data: bytes, box: Any, height: int, width: int, threshold: int) -> Rle:
    try:
        return geometry.rle_from_probability_map(data, box, height, width, threshold)
    except MaskError:
        return empty(width, height)


def cut_maps_are_padded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(png, "_check_complete", lambda data, height, width: None)
    patch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)


def maps_are_for_the_clipped_box(patch: pytest.MonkeyPatch) -> None:
    place = mask_maps.place

    def clipped(*args: Any) -> Any:
        placed = place(*args)
        return placed._replace(whole=placed.box)

    patch.setattr(mask_maps, "place", clipped)


def boxes_of_maps_are_rounded(data: bytes, box: Any, *args: Any) -> Rle:
    return geometry.rle_from_probability_map(data, [round(edge) for edge in box], *args)


def grids_column_by_column(cells: Any, height: int, width: int) -> Rle:
    return geometry.rle_from_grid(list(map(list, zip(*cells, strict=True))), height, width)


def cells_by_their_centres(cells: Any, height: int, width: int) -> Rle:
    side = len(cells)
    rows, columns = (((np.arange(n) * side - side / 2) / n).astype(int) for n in (height, width))
    return geometry.rle_from_array(np.array(cells)[rows][:, columns])


def runs_from_the_left(row: str) -> Any:
    for run in row.strip().split("|"):
        label, _, count = run.partition("*")
        digits = re.match(r"\s*(\d+)", count)
        yield (label.strip().casefold(), int(digits[1])) if digits and label.strip() else None


def grids_of_any_length(body: str, side: int, width: int, height: int) -> Part:
    """Fill a short grid with its last label, and cut a long one, as the official evaluation."""
    cells: list[str] = []
    for label, count in re.findall(r"\s*([^|\n]*?) ?\*(\d{1,6})", body):
        cells += [label.strip().casefold()] * min(int(count), side * side)
    if not cells:
        return NOTHING
    cells = (cells + cells[-1:] * side * side)[: side * side]
    is_set = [int(cell != "others") for cell in cells]
    rows = [is_set[i : i + side] for i in range(0, side * side, side)]
    return Part(rle=geometry.rle_from_grid(rows, height, width)) if any(is_set) else NOTHING


def labels_are_all_foreground(patch: pytest.MonkeyPatch) -> None:
    right = mask_tokens._runs

    def one_label(row: str) -> Any:
        for run in right(row):
            yield run and (run[0] if run[0] == "others" else "thing", run[1])

    patch.setattr(mask_tokens, "_runs", one_label)


def odd_numbers_are_dropped(numbers: list[float]) -> Row:
    return mask_polygons_row(numbers[: len(numbers) // 2 * 2])


mask_polygons_row = mask_polygons.polygon_row


def any_polygon_counts(numbers: list[float]) -> Row:
    return Row(tuple(numbers * 3)) if len(numbers) in (2, 4) else mask_polygons_row(numbers)


def parts_first_only(right: Any) -> Any:
    def first(*args: Any) -> MaskReading:
        reading = right(*args)
        return MaskReading(reading.parts[:1], reading.flags)

    return first


def not_read(right: Any) -> Any:
    return lambda *args: MaskReading([])


class Unclosed(list[Any]):
    """No list is one of these."""


STEP_FAULTS: list[Fault] = [
    replacing(mask_rle, "rle_from_coco", runs_along_the_rows),
    sizes_are_resized,
    as_many_pixels_are_a_match,
    replacing(mask_rle, "rle_from_coco", short_runs_are_padded),
    replacing(mask_rle, "rle_from_coco", long_runs_are_cut),
    replacing(mask_rle, "rle_from_coco", printed_bytes_are_read),
    replacing(mask_rle, "rle_from_coco", bad_runs_are_an_empty_mask),
    replacing(masks, "union", parts_that_overlap_cancel),
    replacing(masks, "union", parts_are_intersected),
    replacing(masks, "union", the_first_part_counts),
    replacing(masks, "union", the_last_part_counts),
    replacing(masks, "rle_from_polygons", overlaps_of_polygons_cancel),
    replacing(masks, "rle_from_polygons", the_first_polygon_counts),
    replacing(masks, "rle_from_polygons", holes_are_filled),
    replacing(masks, "area", polygons_without_pixels_are_empty),
    *(syntax(name, parts_first_only) for name in MASK_SYNTAXES if name != "decoder_tokens"),
    *(syntax(name, not_read) for name in MASK_SYNTAXES),
    thresholded_at(0),
    thresholded_at(126),
    thresholded_at(128),
    replacing(mask_maps, "rle_from_probability_map", bad_maps_are_zeros),
    replacing(mask_maps, "rle_from_probability_map", boxes_of_maps_are_rounded),
    cut_maps_are_padded,
    maps_are_for_the_clipped_box,
    replacing(mask_tokens, "rle_from_grid", grids_column_by_column),
    replacing(mask_tokens, "rle_from_grid", cells_by_their_centres),
    replacing(mask_tokens, "_runs", runs_from_the_left),
    replacing(mask_tokens, "_grid_part", grids_of_any_length),
    labels_are_all_foreground,
    replacing(mask_tokens, "BACKGROUND", "background"),
    replacing(mask_tokens, "polygon_row", odd_numbers_are_dropped),
    replacing(mask_polygons, "polygon_row", odd_numbers_are_dropped),
    replacing(mask_polygons, "polygon_row", any_polygon_counts),
    replacing(mask_polygons, "Unclosed", Unclosed),
    replacing(mask_polygons, "_is_line", lambda vertices: False),
    replacing(mask_polygons, "_reaches_into", lambda *args: True),
    replacing(mask_tokens, "_BIN_RUN", re.compile(r"(?P<polygons>(?:<[a-z_0-9]+>\s*)+)")),
    replacing(mask_tokens, "_CUT_TOKEN", re.compile(r"(?!)")),
    replacing(mask_tokens, "DECODER_TOKEN", re.compile(r"\[SEG\]")),
    replacing(answer, "_after_reasoning", lambda text: text),
    replacing(answer, "_FAILURE_TAGS", ("\0",)),
    replacing(answer.tolerant_json, "is_json", lambda text: False),
    replacing(masks, "says_none", lambda text, phrases: "no " in text.lower()),
    replacing(masks, "holds_nothing", lambda text, keys: text == "[]"),
    replacing(masks, "holds_nothing", lambda text, keys: True),
]

PARSER_FAULTS = [
    parsers(wrong)
    for wrong in (
        failure_is_an_empty_mask,
        failure_is_no_target,
        unparseable_is_no_target,
        size_mismatch_is_an_empty_mask,
        nothing_is_an_empty_mask,
        an_empty_mask_is_nothing,
        one_pixel_is_nothing,
        a_missing_decoder_is_no_target,
        a_missing_decoder_is_an_empty_mask,
        a_missing_decoder_is_prose,
        tags_are_stripped_before_json,
        brackets_are_cut_out_before_json,
        boxes_are_filled_where_no_mask_is,
        a_filled_box_is_not_flagged,
        left_out_parts_are_not_flagged,
        one_faulty_part_spoils_all,
        masks_are_transposed,
    )
]


@pytest.mark.parametrize(
    "fault", [*PARSER_FAULTS, *CONVENTION_FAULTS, *STEP_FAULTS], ids=lambda fault: fault.__name__
)
def test_fault_is_refused(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert any(map(refused, CASES))
