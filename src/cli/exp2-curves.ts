import { createFloat64Exp2 } from '../../oracles/index.js';
import {
  exp2Polynomial,
  fa4SettingsConfiguration,
  fragmentColumns,
  polynomialShare,
} from '../../kernels/index.js';
import { formatNumber } from '../audit/index.js';
import { exp2ApproxFtz } from '../hardware/index.js';
import type { Problem } from '../problem/index.js';
import type { Exp2Curve } from '../report/index.js';

/** Ranges of a curve, and inputs tried in each: an octave in steps of 2^-13. */
const [ranges, perRange] = [256, 32];

function float32Function(ofBits: (bits: number) => number): (x: number) => number {
  const float = new Float32Array(1);
  const word = new Uint32Array(float.buffer);
  return (x) => {
    float[0] = x;
    word[0] = ofBits(word[0]);
    return float[0];
  };
}

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

function fa4Curves(problem: Problem, settings: ReadonlyMap<string, string>): Exp2Curve[] {
  const { exp2, blockKeys } = fa4SettingsConfiguration(problem, settings);
  const share = polynomialShare(exp2, blockKeys / fragmentColumns);
  const percent = `${formatNumber(100 * (1 - share))} % of the columns`;
  const unit = curve(
    'ex2.approx.ftz.f32',
    `The special function unit; computes ${share === 0 ? 'all weights' : `the weights of ${percent}`}.`,
    float32Function(exp2ApproxFtz),
  );
  if (share === 0) return [unit];
  const polynomial = curve(
    `Polynomial of degree ${exp2.degree}`,
    `In software; computes the weights of ${formatNumber(100 * share)} % of the columns.`,
    (x) => exp2Polynomial(x, exp2.degree),
  );
  return [polynomial, unit];
}

/** The kernel models whose 2^x is modelled, by name. */
const curves: Readonly<
  Record<string, (problem: Problem, settings: ReadonlyMap<string, string>) => Exp2Curve[]>
> = { fa4: fa4Curves };

/**
 * The errors of a kernel model's implementations of 2^x, those that it uses in these settings; none for a
 * model whose exponential is taken as correctly rounded.
 * @throws RequestError for settings that the model does not take
 */
export function exp2Curves(
  model: string,
  problem: Problem,
  settings: ReadonlyMap<string, string>,
): readonly Exp2Curve[] {
  return Object.hasOwn(curves, model) ? curves[model](problem, settings) : [];
}
