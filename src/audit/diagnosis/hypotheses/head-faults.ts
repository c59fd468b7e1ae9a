import type { ProblemShape } from '../../../problem/index.js';
import type { Hypothesis, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

/** The flat kv heads that a row reads K and V from instead of its own. */
interface HeadFault {
  readonly id: string;
  readonly what: string;
  /** Index over [batch, kv heads] for one batch entry and query head. */
  readonly kv: (batch: number, head: number) => number;
}

function modulo(a: number, b: number): number {
  return ((a % b) + b) % b;
}

function headFaults(shape: ProblemShape): HeadFault[] {
  const { batch: batches, kvHeads, groupSize } = shape;
  const own = (head: number) => Math.floor(head / groupSize);
  const faults: HeadFault[] = [];
  if (groupSize > 1 && kvHeads > 1)
    faults.push({
      id: 'wrong-kv-head',
      what: 'kv head h mod the number of kv heads instead of ⌊h / group size⌋',
      kv: (batch, head) => batch * kvHeads + (head % kvHeads),
    });
  const offsets = kvHeads > 2 ? [1, -1] : kvHeads === 2 ? [1] : [];
  for (const offset of offsets)
    faults.push({
      id: 'neighbouring-kv-head',
      what:
        kvHeads === 2
          ? 'the other kv head'
          : offset > 0
            ? 'the next kv head'
            : 'the kv head before',
      kv: (batch, head) => batch * kvHeads + modulo(own(head) + offset, kvHeads),
    });
  if (kvHeads > 1)
    faults.push({
      id: 'first-kv-head',
      what: 'kv head 0 whatever its own head',
      kv: (batch) => batch * kvHeads,
    });
  for (const offset of batches > 2 ? [1, -1] : batches === 2 ? [1] : [])
    faults.push({
      id: 'neighbouring-batch',
      what:
        batches === 2
          ? 'the other batch entry'
          : offset > 0
            ? 'the next batch entry'
            : 'the batch entry before',
      kv: (batch, head) => modulo(batch + offset, batches) * kvHeads + own(head),
    });
  return faults;
}

const operands = [
  { names: 'K and V', keys: true, values: true },
  { names: 'K', keys: true, values: false },
  { names: 'V', keys: false, values: true },
] as const;

/** Queries that read K, V or both from another head or batch entry. */
export const headHypotheses: HypothesisFamily = function* ({ reader, shape }) {
  for (const { id, what, kv } of headFaults(shape))
    for (const { names, keys, values } of operands) {
      const predict: Hypothesis['predict'] = (row: SampleRow) => {
        const other = kv(Math.floor(row.head / shape.heads), row.head % shape.heads);
        if (other === row.kv) return row.correct;
        const dots = reader.dots(row.row, keys ? other : row.kv);
        const scores = reader.maskedScores(row.row, row.ranges, (key) =>
          reader.score(dots[key], row.row, key),
        );
        return predictWeighted(
          row,
          softmaxRow(scores, reader.valuesOf(row.row, values ? other : row.kv)),
        );
      };
      yield { id, technique: null, statement: `${names} are read from ${what}`, predict };
    }
};
