import { createFloat64Exp2 } from '../../../oracles/index.js';
import type { KernelExponential, KernelModel } from '../../../kernels/index.js';
import { formatNumber } from '../../words/index.js';
import type { Problem } from '../../problem/index.js';
import type { Exp2Curve } from '../../report/html/index.js';

/** Ranges of a curve, and inputs tried in each: an octave in steps of 2^-13. */
const [ranges, perRange] = [256, 32];

/** Relative errors of a function from fp32 to fp32 for 2^x on [−1, 0), to about 2^-51. */
function curve(name: string, use: string, exp2: (x: number) => number): Exp2Curve {
  const exact = createFloat64Exp2();
  const step = 1 / (ranges * perRange);
  return {
    name,
    use,
    inputs: ranges * perRange,
    ranges: Array.from({ length: ranges }, (_, range) => {
      const errors = Array.from({ length: perRange }, (_, i) => {
        const x = -1 + (range * perRange + i) * step;
        return exp2(x) / exact(x) - 1;
      });
      const x = -1 + (range + 0.5) * perRange * step;
      return { x, low: Math.min(...errors), high: Math.max(...errors) };
    }),
  };
}

/** The use of an implementation of 2^x: its place, and its share of the columns. */
function useOf({ place, share }: KernelExponential, isOnly: boolean): string {
  const weights = isOnly
    ? 'all weights'
    : `the weights of ${formatNumber(100 * share)} % of the columns`;
  return `${place}; computes ${weights}.`;
}

/**
 * The errors of a kernel model's implementations of 2^x, those that it uses in these settings; none for a
 * model whose exponential is taken as correctly rounded.
 * @throws RequestError for settings that the model does not take
 */
export function exp2Curves(
  model: KernelModel,
  problem: Problem,
  settings: ReadonlyMap<string, string>,
): readonly Exp2Curve[] {
  const used = model.exponentials(problem, settings);
  return used.map((one) => curve(one.name, useOf(one, used.length === 1), one.exp2));
}
