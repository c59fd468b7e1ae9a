import { describePlace } from '../../src/audit/index.js';
import { formatNumber } from '../../src/words/index.js';
import { problemShape } from '../../src/problem/index.js';
import { alignedUp } from '../problems/index.js';
import type { KernelRun, Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { placeOfRow } from './compare-runs.js';
import { isPromised } from './promised-problem.js';
import { storingError } from './run-bounds.js';
import { scoreRanges, type ScoreRange } from './score-range.js';
import { arrangeProblem, indices } from './transform-problem.js';

/** Shares of the keys that are left, of one part more. */
const shares = 8;

/** An LSE and how far from it the exact one may be. */
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
