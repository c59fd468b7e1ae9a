import { describePlace, elementAt, type KernelArithmetic } from '../../src/audit/index.js';
import { encode, formats, smallestSubnormal, unitRoundoff } from '../../src/formats/index.js';
import { countKeys, keysOf, problemMask, type Problem } from '../../src/problem/index.js';
import { formatNumber } from '../../src/words/index.js';
import { compareRuns, describeDifference } from './compare-runs.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import { admittedArithmetic, storingError, worstCaseViolation } from './within-bound.js';
import { decodedRows, firstKeyRow, largestAddend } from './score-range.js';
import { replaceElements } from './replace-elements.js';
import { copyProblem } from './transform-problem.js';

function withOnes(problem: Problem): Problem {
  const copy = copyProblem(problem);
  const one = encode(formats[problem.v.format], 1);
  return { ...copy, v: replaceElements(copy.v, () => one) };
}

/** The index of the first element that differs from the first of its row, NaNs alike; −1 for none. */
function firstUneven({ out, shape: { vDim } }: KernelRun): number {
  return out.findIndex((value, i) => {
    const first = out[i - (i % vDim)];
    return value !== first && !(Number.isNaN(value) && Number.isNaN(first));
  });
}

/**
 * V replaced by 1 everywhere: exact attention is 1 in every row that sees a key. O is held to its worst-case
 * bound around that: roundings of weights that are alike in all rows do not average out here. To the last bit, all columns of a row must be alike too, since they are made by the
 * same operations on the same numbers, and the LSE that of the problem as it was: V is no part of it.
 */
export const weightsSumToOne: Law = {
  statement: 'With V = 1, every output is 1, the same in all columns, and the LSE is as before',
  reason:
    'The weights of a row sum to one whatever the scores are; where the row sum counts what the product with V does not, or the reverse, they do not. A column or an LSE that differs read what is none of its business.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: 1,
  without: ['sink', 'dropout', 'descale'],
  violation: async ({ problem }, { run, judge, strength }) => {
    const ones = await run(withOnes(problem));
    const judged = worstCaseViolation(judge(ones));
    if (judged !== null) return `with V = 1, ${judged}`;
    if (strength === 'bound') return null;
    const uneven = firstUneven(ones);
    if (uneven >= 0) {
      const first = uneven - (uneven % ones.shape.vDim);
      return `with V = 1, O at ${describePlace(elementAt(ones.shape, uneven))} is ${ones.out[uneven]} but ${ones.out[first]} in column 0`;
    }
    if (ones.lse === null) return null;
    const { difference } = compareRuns(await run(problem), ones, { elements: () => false });
    return difference && describeDifference(difference, '', 'with V = 1');
  },
};

/** Range of each column of V over some keys; NaN where one of them is infinite or a NaN. */
interface ColumnRanges {
  readonly lowest: Float64Array;
  readonly highest: Float64Array;
  /** The largest norm of their K; NaN where one holds an infinity or a NaN. */
  readonly longestKey: number;
}

/** Upper limit assumed for weights before they are divided by their sum. */
const largestWeight = 2 ** 24;

/**
 * The most that an element may lie beyond the range of its column's values, in units of the largest of their
 * magnitudes; ∞ where the sums over so many keys may be off altogether.
 *
 * Let p_j ≥ 0 be the weights as the row sum l takes them, right or wrong: Σ p_j v_j / Σ p_j lies within the range. Of n
 * keys, with u the rounding of P and f what it may lose to underflow, a the error of a product in a sum, r that of the
 * operations on sums, and M the largest |v|: the kernel's sum of products is off by at most (u + (1 + u)·n·a)·M·Σ p_j +
 * n·f·M, its l by n·a·l, their quotient by r, and partial results by the roundings of storing them. Since l ≥ 1, the largest
 * weight being about 1 or more, all that comes to at most M·((1 + u)(1 + n·a)(1 + r) / (1 − n·a) − 1 + n·f·(1 + r) / (1
 * − n·a)).
 */
function relativeSlack(
  { weightFormat, weightScale = 1, values, finish, underflow, maximum, partials }: KernelArithmetic,
  keys: number,
): number {
  // Nothing is known of l where the maximum is not the row's own.
  if (maximum.kind === 'unknown' && maximum.shared !== 'row') return Infinity;
  const perProduct = values.kind === 'any-order' ? values.perProduct : 0;
  const weights = formats[weightFormat];
  const sums = Math.expm1((keys + 2) * perProduct);
  if (sums >= 1) return Infinity;
  const grown = ((1 + finish.normalise) * (1 + partials)) / (1 - sums);
  const lost = smallestSubnormal(weights) / 2 / weightScale + 2 * underflow.weights;
  return (1 + unitRoundoff(weights)) * (1 + sums) * grown - 1 + keys * lost * grown;
}

/** Ranges over the keys that rows see, computed once for rows that see the same. */
function columnRanges({ problem, shape }: KernelRun) {
  const { vDim, queries } = shape;
  const k = decodedRows(problem.k);
  const v = decodedRows(problem.v).values;
  const known = new Map<string, ColumnRanges>();
  const mask = problemMask(problem, shape);
  const hasSink = problem.sink !== undefined;
  return (row: number) => {
    const visible = mask.ranges(Math.floor(row / queries), row % queries);
    const keys = countKeys(visible);
    const first = firstKeyRow(shape, row);
    const name = [first, ...visible.map(({ begin, end }) => `${begin} ${end}`)].join();
    const found = known.get(name);
    if (found !== undefined) return { keys, ranges: found };
    // A sink is a key whose value is 0.
    const lowest = new Float64Array(vDim).fill(hasSink ? 0 : Infinity);
    const highest = new Float64Array(vDim).fill(hasSink ? 0 : -Infinity);
    let longestKey = 0;
    for (const seen of keysOf(visible)) {
      const key = first + seen;
      longestKey = Math.max(longestKey, k.norms[key]);
      for (let c = 0; c < vDim; c++) {
        // An infinity takes part as a NaN, which stays.
        const finite = Number.isFinite(v[key * vDim + c]) ? v[key * vDim + c] : NaN;
        lowest[c] = Math.min(lowest[c], finite);
        highest[c] = Math.max(highest[c], finite);
      }
    }
    const ranges = { lowest, highest, longestKey };
    known.set(name, ranges);
    return { keys, ranges };
  };
}

/**
 * The first element beyond the range of its column's values and rounding, in a sentence; null for none.
 * @throws NotApplicable where no element's range is known
 */
function beyondRange(run: KernelRun, arithmetic: KernelArithmetic): string | null {
  const { problem, outputs, shape, out } = run;
  const { format } = outputs.out;
  const { largestScore, largestSum, underflow } = arithmetic;
  const { vDim, queries } = shape;
  const rangesOf = columnRanges(run);
  const q = decodedRows(problem.q);
  const slackOf = new Map<number, number>();
  const added = largestAddend(problem);
  let judged = 0;
  for (let row = 0; row < shape.batch * shape.heads * queries; row++) {
    const { keys, ranges } = rangesOf(row);
    const product = q.norms[row] * ranges.longestKey;
    const reach =
      Math.max(product, Math.abs(problem.scale) * product * Math.LOG2E) + added * Math.LOG2E;
    if (keys === 0 || !(reach < largestScore)) continue;
    const relative = slackOf.get(keys) ?? relativeSlack(arithmetic, keys);
    slackOf.set(keys, relative);
    if (relative === Infinity) continue;
    for (let c = 0; c < vDim; c++) {
      const lowest = ranges.lowest[c];
      const highest = ranges.highest[c];
      const largest = Math.max(Math.abs(lowest), Math.abs(highest));
      if (!(largest * keys * largestWeight < largestSum)) continue;
      const inner = relative * largest + (keys + 2) * underflow.sums;
      if (largest + inner >= formats[format].maxFinite) continue;
      judged++;
      const slack = inner + storingError(format, largest, inner, arithmetic.outputRounding);
      const value = out[row * vDim + c];
      if (value >= lowest - slack && value <= highest + slack) continue;
      return `O at ${describePlace(elementAt(shape, row * vDim + c))} is ${formatNumber(value)}, but its column of V lies between ${formatNumber(lowest)} and ${formatNumber(highest)} in the ${keys} keys that the row sees; rounding explains ${formatNumber(slack)} more`;
    }
  }
  if (judged === 0) throw new NotApplicable('no element has a range that is finite');
  return null;
}

/**
 * Every element of O lies within the range of its column of V over the keys that its row sees,
 * widened by the rounding allowed: see `relativeSlack`. No oracle takes part, nor do the scores
 * either: it holds for any weights that numerator and denominator share. Rows whose scores may
 * overflow and columns whose sums may, or with special values among those seen, are left to the
 * oracle.
 */
export const convexity: Law = {
  statement: 'Every output lies within the range of its column of V over the keys that it sees',
  reason:
    'O is a mean of rows of V with weights that are not negative. A key that is masked, or one beyond the end, a factor that O or the row sum missed take it out of their range.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  without: ['dropout', 'descale'],
  violation: async ({ problem }, { run, promises }) => {
    const ran = await run(problem);
    return beyondRange(ran, admittedArithmetic(ran, promises));
  },
};
