import type { AttentionReference, WeightVisitor } from '../../oracles/index.js';
import { decodeTensor } from '../formats/index.js';
import { countKeys, problemMask, rowPlaces, type Problem } from '../problem/index.js';
import { followMaximum, type MaximumRule } from './bounds/index.js';
import { walkRows } from './structure/structure-statistic.js';

/** Properties of the weights of each row, [batch, heads, queries]. */
export interface RowStatistics {
  /** Keys that the masks leave visible. */
  readonly visibleKeys: Int32Array;
  /**
   * −Σ w·log2 w in bits: 0 where one key has all the weight, log2 n where n keys share it evenly, a sink among them. NaN
   * for rows without weights: those without keys and those with infinities or NaNs.
   */
  readonly entropy: Float64Array;
  /**
   * The lag of the maximum in use behind the row's largest exponent after the last block (log2), since the
   * declared kernel skips rescales; NaN for rows without weights. Null for a kernel whose maximum never lags,
   * and where nothing is declared.
   */
  readonly lag: Float64Array | null;
}

/** A visitor of weights that collects statistics of the rows. */
interface RowStatisticsMeter {
  readonly visitor: WeightVisitor;
  readonly statistics: RowStatistics;
}

/** Largest exponents (log2) of each block of keys, in the order in which a kernel meets the blocks. */
class BlockMaxima {
  readonly #blockKeys: number;
  readonly #maxima: Float64Array[];

  constructor(keys: number, blockKeys: number) {
    this.#blockKeys = blockKeys;
    this.#maxima = Array.from({ length: Math.ceil(keys / blockKeys) }, () =>
      new Float64Array(walkRows).fill(-Infinity),
    );
  }

  clear(): void {
    for (const ofBlock of this.#maxima) ofBlock.fill(-Infinity);
  }

  /** @param key counted within the row's sequence */
  add(row: number, key: number, exponent: number): void {
    const ofBlock = this.#maxima[this.#maxima.length - 1 - Math.floor(key / this.#blockKeys)];
    if (exponent > ofBlock[row]) ofBlock[row] = exponent;
  }

  /** The distance of the maximum in use below the largest exponent in the end, for each row. */
  lags(rule: MaximumRule & { readonly kind: 'online' }): Float64Array {
    const path = followMaximum(rule, this.#maxima, new Float64Array(walkRows));
    const lags = new Float64Array(walkRows).fill(NaN);
    path.at(-1)?.low.forEach((used, row) => {
      if (used === -Infinity) return;
      lags[row] = this.#maxima.reduce((most, ofBlock) => Math.max(most, ofBlock[row]), used) - used;
    });
    return lags;
  }
}

/**
 * Measures rows while their weights are walked over (see `forEachWeightTile`, whose accuracy the
 * statistics have: some 2^-44 relative for a weight). Memory is two numbers a row, and one for each row of
 * a tile and each block of keys.
 *
 * @param maximum the rule of the kernel that is judged, null for none declared
 */
export function createRowStatistics(
  problem: Problem,
  { shape, denominator }: AttentionReference,
  maximum: MaximumRule | null,
): RowStatisticsMeter {
  const { batch, heads, queries, keys } = shape;
  const rows = batch * heads * queries;
  const rule = maximum?.kind === 'online' && maximum.threshold > 0 ? maximum : null;
  const longest = problem.sequences?.reduce((most, one) => Math.max(most, one.keys), 0) ?? keys;
  const blocks = rule === null ? null : new BlockMaxima(longest, rule.blockKeys);
  const placeOf = rowPlaces(problem, shape);
  const firstKeys = new Int32Array(walkRows);
  const mask = problemMask(problem, shape);
  const statistics: RowStatistics = {
    visibleKeys: Int32Array.from({ length: rows }, (_, row) =>
      countKeys(mask.ranges(Math.floor(row / queries), row % queries)),
    ),
    entropy: new Float64Array(rows).fill(NaN),
    lag: rule === null ? null : new Float64Array(rows).fill(NaN),
  };
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const entropy = new Float64Array(walkRows);
  const total = new Float64Array(walkRows);
  const visitor: WeightVisitor = {
    begin: (head, firstRow, count) => {
      entropy.fill(0);
      total.fill(0);
      blocks?.clear();
      for (let i = 0; i < count; i++) firstKeys[i] = placeOf(head, firstRow + i).firstKey;
    },
    visit: ({ rows: count, keys: width, firstKey, stride, weights }) => {
      for (let i = 0; i < count; i++)
        for (let j = 0; j < width; j++) {
          const weight = weights[i * stride + j];
          if (!(weight > 0)) continue;
          const exponent = Math.log2(weight);
          entropy[i] -= weight * exponent;
          total[i] += weight;
          blocks?.add(i, firstKey + j - firstKeys[i], exponent);
        }
    },
    end: (head, firstRow, count) => {
      const lags = rule === null ? null : blocks!.lags(rule);
      for (let i = 0; i < count; i++) {
        if (total[i] === 0) continue;
        const row = head * queries + firstRow + i;
        // A sink is one more key. The walk's roundings make a weight of one a little more than one.
        const sink = sinks?.[head % shape.heads] ?? -Infinity;
        const ofSink = Math.exp(sink - denominator[row]);
        const withSink = ofSink > 0 ? entropy[i] - ofSink * Math.log2(ofSink) : entropy[i];
        statistics.entropy[row] = Math.max(0, withSink);
        if (lags !== null) statistics.lag![row] = lags[i];
      }
    },
  };
  return { visitor, statistics };
}
