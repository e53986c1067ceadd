// An evaluator of RSVG behind `lmms-eval-grounding conformance --command 'node adapter.mjs'`.
import { createInterface } from "node:readline";

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const samples = (records) => [...new Map(records.map((r) => [r.id, r])).values()]
  .sort((a, b) => (a.id < b.id ? -1 : 1)); // sums in one order, whatever order they came in
const iou = ({ intersection, union }) => (union > 0 ? intersection / union : 0);
const ratio = (part, whole) => (whole > 0 ? part / whole : "nan"); // JSON has no NaN
const area = ([x1, y1, x2, y2]) => (x2 - x1) * (y2 - y1);
const overlap = (a, b, axis) =>
  Math.max(0, Math.min(a[axis + 2], b[axis + 2]) - Math.max(a[axis], b[axis]));

const functions = {
  "metrics/rsvg/precision_at": ({ records, threshold, strict = false }) => {
    const ious = samples(records).map(iou);
    return ratio(100 * ious.filter((x) => (strict ? x > threshold : x >= threshold)).length, ious.length);
  },
  "metrics/rsvg/mean_iou": ({ records }) =>
    ratio(sum(samples(records).map(iou)), samples(records).length),
  "metrics/rsvg/cumulative_iou": ({ records }) =>
    ratio(sum(samples(records).map((r) => r.intersection)), sum(samples(records).map((r) => r.union))),
  "metrics/rsvg/sample_record": ({ id, status, pred, target }) => {
    const intersection = pred ? overlap(pred, target, 0) * overlap(pred, target, 1) : 0;
    return { id, status, intersection, union: area(target) + (pred ? area(pred) - intersection : 0) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, spec, input } = JSON.parse(line);
  const said = spec in functions ? { result: functions[spec](input) } : { skip: "not done here" };
  process.stdout.write(JSON.stringify({ id, ...said }) + "\n");
}
