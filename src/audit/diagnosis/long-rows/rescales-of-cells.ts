import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { cellKeys, predictWeighted } from '../prediction.js';
import { createRowShares } from '../row-shares.js';
import {
  blockSizes,
  onlineHypothesis,
  orders,
  rescaleFaults,
  type OnlineSoftmax,
} from '../hypotheses/online-softmax-faults.js';

/** The largest score and the sum of the shares of each stretch of 16 keys. */
interface CellScores {
  readonly largest: Float64Array;
  readonly shares: Float64Array;
}

function cellScores(scores: Float64Array, shares: Float64Array): CellScores {
  const count = Math.ceil(scores.length / cellKeys);
  const cells = {
    largest: new Float64Array(count).fill(-Infinity),
    shares: new Float64Array(count),
  };
  for (let j = 0; j < scores.length; j++) {
    const cell = Math.floor(j / cellKeys);
    if (scores[j] > cells.largest[cell]) cells.largest[cell] = scores[j];
    cells.shares[cell] += shares[j];
  }
  return cells;
}

/** A kernel that rescales wrongly as `runOnlineSoftmax` has it, by stretches of keys: factors of their shares, and its LSE. */
function runRescales(
  { largest, shares }: CellScores,
  denominator: number,
  { block, order, rescaled, lateRescale }: OnlineSoftmax,
) {
  const factors = new Float64Array(largest.length);
  const perBlock = block / cellKeys;
  const blocks = Math.ceil(largest.length / perBlock);
  const isForward = order === 'first to last';
  let [maximum, sum, previous] = [-Infinity, 0, 1];
  for (let i = 0; i < blocks; i++) {
    const first = (isForward ? i : blocks - 1 - i) * perBlock;
    const end = Math.min(first + perBlock, largest.length);
    let next = maximum;
    let mass = 0;
    for (let cell = first; cell < end; cell++) {
      next = Math.max(next, largest[cell]);
      mass += shares[cell];
    }
    if (next === -Infinity || mass === 0) continue;
    const factor = maximum === -Infinity ? 1 : Math.exp(maximum - next);
    const isKept = rescaled === 'sum' || rescaled === 'neither';
    const ofOutput = isKept ? 1 : lateRescale === true ? previous : factor;
    // The blocks before lie side by side.
    const [from, to] = isForward ? [0, first] : [end, factors.length];
    if (ofOutput !== 1) for (let cell = from; cell < to; cell++) factors[cell] *= ofOutput;
    const own = Math.exp(denominator - next);
    sum = sum * (rescaled === 'output' || rescaled === 'neither' ? 1 : factor) + own * mass;
    factors.fill(own, first, end);
    previous = factor;
    maximum = next;
  }
  return { factors: factors.map((x) => x / sum), lse: maximum + Math.log(sum) };
}

/** The faults of the rescales alone, of rows of many keys without a sink, by block size and order. */
export const rescaleHypotheses: HypothesisFamily = function* (context) {
  const { reader } = context;
  if (reader.problem.sink !== undefined) return;
  const sharesOf = createRowShares(reader);
  const known = new Map<number, CellScores>();
  const cellsOf = (row: SampleRow) => {
    const cells = known.get(row.row) ?? cellScores(reader.scores(row.row), sharesOf(row));
    known.set(row.row, cells);
    return cells;
  };
  for (const fault of rescaleFaults)
    for (const block of blockSizes)
      for (const order of orders) {
        const law = { block, order, ...fault.law };
        const predict = (row: SampleRow) => {
          const shares = sharesOf(row);
          const { factors, lse } = runRescales(cellsOf(row), row.denominator, law);
          return predictWeighted(row, {
            weights: new Float64Array(0),
            relative: { shares, cells: factors, range: null },
            values: reader.valuesOf(row.row, row.kv),
            lse,
          });
        };
        yield {
          ...onlineHypothesis(context, fault, block, order, ` (blocks of ${block} keys, ${order})`),
          predict,
        };
      }
};
