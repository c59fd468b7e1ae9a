import {
  addFloat64ToDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  negateDoubleDouble,
  type DoubleDouble,
} from '../../src/arith/index.js';
import {
  keysOf,
  problemMask,
  problemShape,
  type KeyRange,
  type Problem,
} from '../../src/problem/index.js';
import { exactExponents } from './double-double-exponents.js';
import { createHeadReader, type HeadOperands } from './head-operands.js';
import { log2eWords } from './logarithm-words.js';
import { operandRow } from './operand.js';
import { emptyRow } from './row.js';
import { rulesOf, type Rules } from './rules.js';
import type { Sink } from './sink.js';
import { resolveSpecialRow } from './special-values.js';
import { visibleRow } from './visible-row.js';

/** A sink of a row. */
interface ExponentSink {
  /** Natural units, finite. */
  readonly logit: number;
  /** (logit − origin) · log2 e, error 10u² of it. */
  readonly exponent: DoubleDouble;
  /** Whether the LSE includes it. */
  readonly inLse: boolean;
}

/** A row of queries as the exponents of its weights, exact dot products behind them, and the values that they weigh. */
export interface ExponentRow {
  /**
   * (score − origin) · log2 e of each key that has a weight: without a softcap the error is 10u² of it, u = 2^-53, and all
   * below −2000 are −2000; with one it is 2^-98 of the cap.
   */
  readonly exponents: readonly DoubleDouble[];
  /** The sink; null for none. */
  readonly sink: ExponentSink | null;
  /** The score that the exponents count from, natural units, relative error u². */
  readonly origin: DoubleDouble;
  /** 1 − the probability of dropout, which divides the kept weights. */
  readonly share: number;
  readonly vDim: number;
  /**
   * Row of V of the key that has exponent j, an infinity or a NaN as 0; null for one that dropout does not keep. A view,
   * valid until the next call.
   */
  readonly value: (j: number) => Float64Array | null;
  /** The columns of O that are infinite or NaN, by `special-values.ts`: 0 for all others. */
  readonly specialOut: Float64Array;
  /** An LSE that a score of +∞ or NaN decides; null for all others. */
  readonly specialLse: number | null;
}

/** The keys of a row that have a weight, and what infinities and NaNs decide. */
interface WeightedKeys extends Pick<ExponentRow, 'specialOut' | 'specialLse'> {
  readonly visible: Int32Array;
  /** Per key, as in `Row`. */
  readonly infinite: Int8Array;
}

function weightedKeys(
  operands: HeadOperands,
  query: number,
  ranges: readonly KeyRange[],
  { law, kept, sinkOf }: Rules,
): WeightedKeys {
  const vDim = operands.values.dim;
  const all = Int32Array.from(keysOf(ranges));
  const plain = { visible: all, infinite: new Int8Array(all.length) };
  const nothing = { specialOut: new Float64Array(vDim), specialLse: null };
  const specials = [operands.query, operands.keys, operands.values];
  if (!specials.some(({ anySpecial }) => anySpecial)) return { ...plain, ...nothing };
  let weighted: Pick<WeightedKeys, 'visible' | 'infinite'> = {
    visible: new Int32Array(0),
    infinite: new Int8Array(0),
  };
  const one = new Uint8Array(1);
  const resolved = resolveSpecialRow(operands, query, ranges, law, {
    sink: sinkOf(operands.head),
    isKept: (key) => {
      one[0] = 1;
      kept?.fill(operands.head, query, key, one);
      return one[0] === 1;
    },
    plain: () => {
      weighted = plain;
      return emptyRow(vDim, null);
    },
    solve: (visible, infinite) => {
      weighted = { visible, infinite };
      return emptyRow(vDim, null);
    },
  });
  if (resolved === null) return { ...plain, ...nothing };
  // Only rows that a score decides have a maximum here.
  const specialLse = resolved.maximum === -Infinity ? null : resolved.lse;
  return { ...weighted, specialOut: resolved.out, specialLse };
}

function exponentSink({ logit, inLse }: Sink, origin: DoubleDouble): ExponentSink {
  const above = addFloat64ToDoubleDouble(negateDoubleDouble(origin), logit);
  return { logit, exponent: multiplyDoubleDouble(above, log2eWords()), inLse };
}

/**
 * A function for the rows of a problem as exponents, of a head, which is counted over [batch, heads], and a query.
 * Rows of one head after the other decode each head once.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function exponentRows(problem: Problem): (head: number, query: number) => ExponentRow {
  const shape = problemShape(problem);
  const rules = rulesOf(problem, shape);
  const mask = problemMask(problem, shape);
  const read = createHeadReader(problem, shape);
  let operands: HeadOperands | null = null;
  return (head, query) => {
    if (operands?.head !== head) operands = read(head);
    const ranges = mask.ranges(head, query);
    const { visible, infinite, ...special } = weightedKeys(operands, query, ranges, rules);
    const { values } = operands;
    const row = visibleRow(operands, query, rules, visible, infinite);
    const { y, origin } =
      visible.length === 0
        ? { y: [], origin: doubleDouble(0) }
        : exactExponents(row, rules.law, rules.constants);
    const { sink, share, kept } = row;
    return {
      exponents: y,
      sink: sink === null ? null : exponentSink(sink, origin),
      origin,
      share,
      vDim: values.dim,
      value: (j) => (kept?.[j] === 0 ? null : operandRow(values, visible[j])),
      ...special,
    };
  };
}
