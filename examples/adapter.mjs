// An evaluator of RSVG behind `lmms-eval-grounding conformance --command 'node adapter.mjs'`.
import { createInterface } from "node:readline";

const iou = ({ intersection, union }) => (union > 0 ? intersection / union : 0);
const mean = (numbers) => // over no samples it is undefined; JSON has no NaN
  numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : "nan";

const functions = {
  "metrics/rsvg/precision_at": (records, { threshold, strict = false }) => {
    const hits = records.map(iou).map((x) => (x > threshold || (x === threshold && !strict) ? 100 : 0));
    return mean(hits);
  },
  "metrics/rsvg/mean_iou": (records) => mean(records.map(iou)),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, spec, input } = JSON.parse(line);
  let answer = { skip: "not done here" };
  if (spec in functions) {
    const text = (record) => JSON.stringify(record, Object.keys(record).sort());
    const given = input.records.sort((a, b) => (text(a) < text(b) ? 1 : -1)); // the first text stays
    const once = new Map(given.map((record) => [record.id, record]));
    const records = [...once.values()].sort((a, b) => (a.id < b.id ? -1 : 1)); // sums in one order
    answer = { result: functions[spec](records, input) };
  }
  process.stdout.write(JSON.stringify({ id, ...answer }) + "\n");
}
