import type { AttentionReference } from '../../oracles/index.js';
import { describePlace } from '../../src/audit/index.js';
import { encode, formats, type NumberFormat } from '../../src/formats/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { formatNumber } from '../../src/words/index.js';
import { alignedUp } from '../problems/index.js';
import { placeOfRow } from './compare-runs.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import { isPromised, requirePromised } from './promised-problem.js';
import { exactAttention, judgedViolation, storingError } from './within-bound.js';
import { scoreRanges, type ScoreRange } from './score-range.js';
import { replaceElements } from './replace-elements.js';
import { arrangeProblem, copyProblem, indices } from './transform-problem.js';

/** Shares of the keys that are left, of one part more. */
const shares = 8;

/** The most that the exact LSE may differ from one that the kernel stored. */
function withError({ outputs }: KernelRun, lse: number, { lseError }: ScoreRange): number {
  const stored = Number.isFinite(lse) ? storingError(outputs.lse!.format, lse, lseError) : 0;
  return lseError + stored;
}

/** The first LSE outside [largest score, largest score + ln of the keys], in a sentence. */
function outsideRange(run: KernelRun, ranges: readonly (ScoreRange | null)[]): string | null {
  for (const [row, range] of ranges.entries()) {
    if (range === null) continue;
    const lse = run.lse![row];
    const error = withError(run, lse, range);
    const highest = range.largest + Math.log(range.keys);
    if (lse >= range.largest - error && lse <= highest + error) continue;
    return `the LSE at ${describePlace(placeOfRow(run.shape, row))} is ${formatNumber(lse)}, but the row's largest of ${range.keys} scores is ${formatNumber(range.largest)}, which with ± ${formatNumber(error)} for rounding leaves ${formatNumber(range.largest - error)} to ${formatNumber(highest + error)}`;
  }
  return null;
}

/** The first LSE that more keys have lowered, in a sentence. */
function lowered(
  fewer: KernelRun,
  ofFewer: readonly (ScoreRange | null)[],
  more: KernelRun,
  ofMore: readonly (ScoreRange | null)[],
): string | null {
  for (const [row, range] of ofMore.entries()) {
    const before = ofFewer[row] ?? null;
    if (range === null || before === null) continue;
    const [first, second] = [fewer.lse![row], more.lse![row]];
    const error = withError(fewer, first, before) + withError(more, second, range);
    if (second < first - error)
      return `the LSE at ${describePlace(placeOfRow(more.shape, row))} is ${formatNumber(first)} of the first ${before.keys} keys but ${formatNumber(second)} of all ${range.keys}; rounding explains ${formatNumber(error)}`;
  }
  return null;
}

/**
 * Each row's LSE lies between its largest score and ln n more, n the keys it sees, and without a mask
 * does not fall when the last keys are put back. Scores are computed in fp64 and error bounds from the
 * premises of any correct kernel (see `scoreRanges`): no oracle takes part.
 */
export const lseMonotone: Law = {
  statement: 'The LSE lies between the largest score and ln n more, and grows with the keys',
  reason:
    'A sum of n positive terms is at least its largest, at most n times that, and more with every term. A base or a scale that is wrong, keys that are left out or come in from beyond the end break it.',
  strengths: ['bound'],
  usual: 'bound',
  choices: shares,
  without: ['sink', 'bias', 'alibi', 'prefix', 'descale'],
  violation: async ({ problem, choice }, { run, promises }) => {
    const whole = await run(problem);
    if (whole.lse === null) throw new NotApplicable('the kernel gives no LSE, which it needs');
    const ranges = scoreRanges(whole, promises);
    if (ranges.every((range) => range === null))
      throw new NotApplicable('no row has scores of which something is known');
    const outside = outsideRange(whole, ranges);
    if (outside !== null || problem.causal || problem.window !== null) return outside;
    const { keys } = problemShape(problem);
    const kept = alignedUp((keys * (choice + 1)) / (shares + 1), promises.multiples.keys);
    const part = arrangeProblem(problem, { keys: indices(kept) });
    if (kept < 1 || kept >= keys || !isPromised(part, promises)) return null;
    const fewer = await run(part);
    if (fewer.lse === null) return null;
    return lowered(fewer, scoreRanges(fewer, promises), whole, ranges);
  },
};

/** The difference between the exact attention of two problems with the same O, in natural-log units. */
interface ReferenceShift {
  /** Shift of the LSE, and the most that it may be off by. */
  readonly lse: number;
  readonly lseError: number;
  /** Shift of each row's largest score. */
  readonly maximum: number;
}

/**
 * The exact attention of a problem from that of another with the same O, whose LSEs all differ by the
 * same. The roundings of the sums, fp64 to nearest, are added to the radii.
 * @param shifted the problem whose exact attention it is
 */
function shiftReference(
  reference: AttentionReference,
  shift: ReferenceShift,
  shifted: Problem,
): AttentionReference {
  const { out, lse } = reference.quantities;
  const values = lse.values.map((value) => value + shift.lse);
  const radius = lse.radius.map((radius, row) =>
    Number.isFinite(values[row])
      ? radius + shift.lseError + 2 ** -52 * Math.abs(values[row])
      : radius,
  );
  return {
    ...reference,
    shape: problemShape(shifted),
    quantities: { out, lse: { values, radius, magnitude: null } },
    maximum: reference.maximum.map((value) => value + shift.maximum),
    denominator: reference.denominator.map((value) => value + shift.lse),
  };
}

/** Approximate shifts of the scores, in nats. */
const shifts: readonly number[] = [1, -1, 8, -8, 64, -64, 512, -512];

/** The problem with the last columns of Q and K constant, numbers that the formats hold. */
export function withColumns(problem: Problem, ofQ: number, ofK: number): Problem {
  const copy = copyProblem(problem);
  const constant = (name: 'q' | 'k', value: number) => {
    const bits = encode(formats[copy[name].format], value);
    const last = copy[name].shape.at(-1)! - 1;
    return replaceElements(copy[name], ({ column }) => (column === last ? bits : null));
  };
  return { ...copy, q: constant('q', ofQ), k: constant('k', ofK) };
}

/** Powers of two whose product with the scale is about `nats`, as near as the formats allow. */
export function factors({ q, k, scale }: Problem, nats: number): readonly [number, number] {
  const exponent = scale === 0 ? 0 : Math.round(Math.log2(Math.abs(nats / scale)));
  const power = (wanted: number, { minExponent, maxExponent }: NumberFormat) =>
    2 ** Math.min(Math.max(wanted, minExponent), maxExponent);
  return [
    power(Math.ceil(exponent / 2), formats[q.format]),
    Math.sign(nats) * power(Math.floor(exponent / 2), formats[k.format]),
  ];
}

/**
 * The last column of Q is a, that of K c, both powers of two, for all queries and keys: every score is
 * scale·a·c more than with c = 0, exactly. Exact attention with c = 0 is therefore that with c, its
 * LSE moved by scale·a·c, a product that fp64 has exactly; O and LSE of the problem with c are judged
 * by it.
 */
export const scoreShift: Law = {
  statement: 'Scores that are all shifted alike leave O and shift the LSE as much',
  reason:
    'A softmax sees differences of scores only. A running maximum that begins at a number, or a score that loses low bits when it is large, sees more.',
  strengths: ['bound'],
  usual: 'bound',
  choices: shifts.length,
  without: ['sink', 'descale'],
  constraints: { softcap: false },
  violation: async ({ problem, choice }, { run, judge, promises }) => {
    if (problem.softcap !== null) throw new NotApplicable('the problem has a softcap');
    const [a, c] = factors(problem, shifts[choice]);
    const shift = problem.scale * a * c;
    const shifted = withColumns(problem, a, c);
    requirePromised(shifted, promises);
    const reference = shiftReference(
      exactAttention(withColumns(problem, a, 0)),
      { lse: shift, lseError: 0, maximum: shift },
      shifted,
    );
    const judged = judgedViolation(judge(await run(shifted), reference));
    const words = `${formatNumber(Math.abs(shift))} ${shift < 0 ? 'lower' : 'higher'}`;
    return judged && `with all scores ${words}, ${judged}`;
  },
};

/** The number of copies of each key, and whether copies are adjacent or come after all other keys. */
const forms = [
  { copies: 2, adjacent: false },
  { copies: 2, adjacent: true },
  { copies: 3, adjacent: false },
  { copies: 3, adjacent: true },
] as const;

/**
 * Every key with its value r times, unmasked: numerator and denominator of O grow r times, the LSE by
 * ln r. O and LSE are judged by the exact attention of the problem with each key once, ln r added to
 * its LSE, which fp64 has to within an ulp.
 */
export const repeatedKeys: Law = {
  statement: 'Keys given r times leave O and add ln r to the LSE',
  reason:
    'All sums over keys grow r times. Repeated maxima are equal to the bit, and blocks are where there were none: sums that miss a key, a lane or a block do not grow alike.',
  strengths: ['bound'],
  usual: 'bound',
  choices: forms.length,
  without: ['sink', 'alibi', 'block-mask', 'packed', 'prefix'],
  constraints: { causal: false, window: false },
  violation: async ({ problem, choice }, { run, judge, promises }) => {
    if (problem.causal || problem.window !== null)
      throw new NotApplicable('the problem has a mask');
    const { keys } = problemShape(problem);
    const { copies, adjacent } = forms[choice];
    const order = indices(keys * copies).map((j) => (adjacent ? Math.floor(j / copies) : j % keys));
    const repeated = arrangeProblem(problem, { keys: order });
    if (keys === 0) throw new NotApplicable('the problem has no keys');
    requirePromised(repeated, promises);
    const added = Math.log(copies);
    const reference = shiftReference(
      exactAttention(problem),
      { lse: added, lseError: 2 ** -52, maximum: 0 },
      repeated,
    );
    const judged = judgedViolation(judge(await run(repeated), reference));
    const where = adjacent ? 'one after the other' : 'all keys after one another';
    return judged && `with every key ${copies} times, ${where}, ${judged}`;
  },
};
