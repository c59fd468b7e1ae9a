import { techniques, type Technique } from '../../../kernels/index.js';
import { testSpread } from '../../../src/audit/spread-test.js';
import type { Problem } from '../../../src/problem/index.js';
import { judgedFa4 } from './judged-kernels.js';
import { keepBounds } from './kept-bounds.js';
import { falseAlarmRate, preciseOracle, runKernel } from './violations.js';
import { compared } from '../hand-made.js';

export const tightnessParts = [...techniques, 'total'] as const;
export type TightnessPart = Technique | 'total';

/** How far the bounds of one problem are from what FlashAttention-4's forward errs by. */
export interface Tightness {
  /** The largest bound over the largest error; NaN where a technique is absent or says nothing. */
  readonly ratios: Readonly<Record<TightnessPart, number>>;
  /** Root mean square of the predicted deviations over that of the errors. */
  readonly spread: number;
  /** The largest share of a limit of the spread test that the errors use. */
  readonly used: number;
}

/** Errors this small, relative to Σ p|v|, are the attribution's own. */
const ownError = 1e-13;

/** Measures on the kernel's own configuration for the problem. */
export function measureTightness(problem: Problem): Tightness {
  const judged = judgedFa4(problem);
  const reference = preciseOracle(problem);
  const { out, lse, unit } = keepBounds(problem, reference, judged.arithmetic);
  const [whole, ...alone] = runKernel(judged, reference, [
    judged.kernel.techniques,
    ...techniques.map((name) => judged.parts[name]),
  ]);
  const ratioOf = (values: Float64Array, bound: Float64Array): number => {
    let largestError = 0;
    let largestBound = 0;
    for (let i = 0; i < values.length; i++) {
      const error = Math.abs(values[i] - reference.quantities.out.values[i]);
      if (!Number.isFinite(bound[i])) return NaN;
      largestBound = Math.max(largestBound, bound[i]);
      if (error > ownError * reference.quantities.out.magnitude[i])
        largestError = Math.max(largestError, error);
    }
    return largestError > 0 ? largestBound / largestError : NaN;
  };
  const spread = testSpread(
    compared(reference, 'out', whole.out, 'fp32'),
    { quantities: { out, lse }, unit },
    falseAlarmRate,
  );
  return {
    ratios: Object.fromEntries([
      ...techniques.map((name, t) => [name, ratioOf(alone[t].out, out.techniques[name])]),
      ['total', ratioOf(whole.out, out.total)],
    ]) as Record<TightnessPart, number>,
    spread: spread.expected / spread.measured,
    used: Math.max(...spread.results.map(({ measured, limit }) => measured / limit)),
  };
}

/** A quantile of what is a number, NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.filter((x) => !Number.isNaN(x)).sort((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}
