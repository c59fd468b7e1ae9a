import {
  countKeys,
  keysOf,
  problemMask,
  problemShape,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { arbitraryLevel } from './arbitrary-level.js';
import { dotProducts, doubleDoubleLevel } from './double-double-level.js';
import { headOperands } from './head-operands.js';
import { tileRows } from './operand.js';
import { checkAccuracy, isAccurate, type Accuracy, type Row, type RowResult } from './row.js';
import { rulesOf, type Rules } from './rules.js';
import { resolveSpecialRow } from './special-values.js';
import { withTileEngine } from './tile-engine.js';
import { WorkingMemories } from '../../src/reuse.js';
import { largestExponent, tileLevel } from './tile-level.js';
import { visibleRow } from './visible-row.js';
import { exponentIntervals, weightyRow, withDroppedKeys } from './weighty-keys.js';

/** The arithmetic that settled a row; `special` rows hold an infinity or a NaN among their inputs. */
export const levels = ['empty', 'fp64', 'double-double', 'arbitrary', 'special'] as const;
/** One of {@link levels}. */
export type Level = (typeof levels)[number];

/** One quantity of an exact result, with a proven radius; its shape is that of `quantities` by this name. */
export interface ReferenceQuantity {
  readonly values: Float64Array;
  /** |value − exact| ≤ radius, element by element; 0 where the value is NaN or infinite. */
  readonly radius: Float64Array;
  /** The scale of an element's rounding errors; null where errors are absolute. */
  readonly magnitude: Float64Array | null;
}

/** A quantity whose elements have a scale for their errors. */
export interface ScaledReferenceQuantity extends ReferenceQuantity {
  readonly magnitude: Float64Array;
}

/** Exact quantities by name: those of the forward pass, and others that an oracle computed. */
export interface ReferenceQuantities {
  /** O, [batch, heads, queries, vDim]; its magnitude is Σ p|v| / Σ p, with the weights that O has. */
  readonly out: ScaledReferenceQuantity;
  /** [batch, heads, queries]: natural log of Σ exp(score), with the sink if it is included; −∞ for an empty sum. */
  readonly lse: ReferenceQuantity;
  readonly [name: string]: ReferenceQuantity | undefined;
}

/** Exact attention of a whole problem, each value with a proven radius. */
export interface AttentionReference {
  readonly shape: ProblemShape;
  readonly quantities: ReferenceQuantities;
  /**
   * [batch, heads, queries]: the largest score of the keys that the row sees, natural units, about fp64 accuracy; −∞
   * for a row without keys. A sink is not among them.
   */
  readonly maximum: Float64Array;
  /**
   * [batch, heads, queries]: natural log of the row sum that O is divided by, with the sink where there is one, about
   * fp64 accuracy. Bit for bit the LSE where there is no sink and where the LSE has it too.
   */
  readonly denominator: Float64Array;
  /** [batch, heads, queries]: index into `levels`. */
  readonly level: Uint8Array;
}

/** Called now and then with the share of the work done, 0 to 1. */
export type Progress = (done: number) => void;

/** The accuracy wanted of the oracle, and the receiver of its progress. */
export interface AttentionOracleOptions {
  /** Default: 1/1024 ulp of fp32, and no allowance relative to Σ p|v|. */
  readonly accuracy?: Accuracy;
  readonly progress?: Progress;
  /** The keys that each query sees, in place of the problem's own mask. */
  readonly mask?: Mask;
  /** Working memory for its loops; default: memories of this call's own. */
  readonly memories?: WorkingMemories | undefined;
}

const defaultAccuracy: Accuracy = {
  outputFormat: 'fp32',
  ulpFraction: 2 ** -10,
  magnitudeFraction: 0,
};

/** First precision of the arbitrary level, in fraction bits; doubled until the row is accurate. */
const firstPrecision = 192;

/** Weights below 2^-1000 of the largest are below the precision of the double-double level. */
const keptOctaves = 1000;

/**
 * The slower levels, in order, until one reaches the wanted accuracy, each on the keys whose weights it can
 * distinguish from 0.
 */
function escalate(
  row: Row,
  { law, constants }: Rules,
  accuracy: Accuracy,
): { readonly result: RowResult; readonly level: Level } {
  const { columnLargest } = row.values;
  const intervals = exponentIntervals(row, law, constants);
  const weighty = weightyRow(row, intervals, keptOctaves);
  const beyondCompensated = Math.abs(intervals?.largest ?? 0) > largestExponent;
  for (const dots of beyondCompensated ? (['exact'] as const) : dotProducts) {
    const kept = doubleDoubleLevel(weighty.row, law, constants, dots);
    const result = withDroppedKeys(kept, weighty, columnLargest);
    if (isAccurate(result, accuracy)) return { result, level: 'double-double' };
  }
  for (let bits = firstPrecision; ; bits *= 2) {
    const weighty = weightyRow(row, intervals, bits);
    const kept = arbitraryLevel(weighty.row, law, bits);
    const result = withDroppedKeys(kept, weighty, columnLargest);
    if (isAccurate(result, accuracy)) return { result, level: 'arbitrary' };
  }
}

/**
 * O and LSE of an attention problem, inputs taken as exact, each value with a proven radius:
 * O = Σ p v / Σ p with p = exp(score), LSE = ln Σ p, score = scale · q·k (softcap: cap · tanh(score / cap)) + the addends of the score law,
 * sums over the keys that the mask leaves visible. A sink joins Σ p, and that of the LSE where `inLse` says so; under
 * dropout, kept weights multiply v by 1 / (1 − probability), the others by 0.
 *
 * Rows go through fp64 with a running error bound, double-double (the second time from exact dot products), and
 * fixed-point arithmetic of growing precision until `accuracy` is met. The slower levels leave out keys of provably
 * negligible weight, and the radii include the most that those can amount to. Memory beside the result is O(tile) and
 * some numbers a row: long heads are decoded tile by tile.
 *
 * Rows without keys give O = 0, and LSE = −∞ or that of the sink. The law for infinities and NaNs is in
 * special-values.ts.
 * @throws RequestError when the problem's shapes do not fit together or the accuracy is not finite.
 */
export function attentionOracle(
  problem: Problem,
  options: AttentionOracleOptions = {},
): AttentionReference {
  const accuracy = options.accuracy ?? defaultAccuracy;
  checkAccuracy(accuracy);
  const shape = problemShape(problem);
  const { batch, heads, queries, vDim } = shape;
  const rows = batch * heads * queries;
  const numbers = (length: number) => new Float64Array(length);
  const out = {
    values: numbers(rows * vDim),
    radius: numbers(rows * vDim),
    magnitude: numbers(rows * vDim),
  };
  const lse = { values: numbers(rows), radius: numbers(rows), magnitude: null };
  const maximum = numbers(rows);
  const denominator = numbers(rows);
  const level = new Uint8Array(rows);
  const store = (at: number, result: RowResult, settled: Level) => {
    out.values.set(result.out, at * vDim);
    out.radius.set(result.outRadius, at * vDim);
    out.magnitude.set(result.magnitude, at * vDim);
    const shift = problem.lseShift;
    lse.values[at] = result.lse + (shift?.values[at] ?? 0);
    // The sum is rounded once.
    lse.radius[at] =
      shift === undefined
        ? result.lseRadius
        : result.lseRadius + shift.errors[at] + 2 ** -52 * Math.abs(lse.values[at]);
    maximum[at] = result.maximum;
    denominator[at] = result.denominator;
    level[at] = levels.indexOf(settled);
  };
  const rules = rulesOf(problem, shape);
  const mask = options.mask ?? problemMask(problem, shape);
  const isKept = (head: number, row: number, key: number) => {
    const one = new Uint8Array([1]);
    rules.kept?.fill(head, row, key, one);
    return one[0] === 1;
  };
  withTileEngine(options.memories ?? new WorkingMemories(), shape, (engine) => {
    for (const operands of headOperands(problem, shape, options.memories)) {
      const { head, query, keys, values } = operands;
      for (let first = 0; first < queries; first += tileRows) {
        const count = Math.min(tileRows, queries - first);
        const ranges = Array.from({ length: count }, (_, i) => mask.ranges(head, first + i));
        const results = tileLevel(engine, { operands, firstRow: first, ranges }, rules);
        // Asked for behind the walk, which measures the tiles of long operands that it decodes.
        const anySpecial = query.anySpecial || keys.anySpecial || values.anySpecial;
        results.forEach((result, i) => {
          const row = first + i;
          const at = head * queries + row;
          if (ranges[i].length === 0) return store(at, result, 'empty');
          const solve = (visible: Int32Array, infinite: Int8Array) =>
            escalate(visibleRow(operands, row, rules, visible, infinite), rules, accuracy);
          const plain = () =>
            isAccurate(result, accuracy)
              ? { result, level: 'fp64' as const }
              : solve(Int32Array.from(keysOf(ranges[i])), new Int8Array(countKeys(ranges[i])));
          const special = anySpecial
            ? resolveSpecialRow(operands, row, ranges[i], rules.law, {
                sink: rules.sinkOf(head),
                isKept: (key) => isKept(head, row, key),
                plain: () => plain().result,
                solve: (visible, infinite) => solve(visible, infinite).result,
              })
            : null;
          if (special) return store(at, special, 'special');
          const finite = plain();
          store(at, finite.result, finite.level);
        });
        options.progress?.((head + (first + count) / queries) / (batch * heads));
      }
    }
  });
  return { shape, quantities: { out, lse }, maximum, denominator, level };
}
