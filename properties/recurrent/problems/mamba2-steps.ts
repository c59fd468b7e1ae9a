import { softplusThreshold, usualStepLimit } from '../../../src/problem/index.js';
import type { RandomValues } from '../../problems/index.js';
import { axisSizes, withoutInputs, withValues, type PlainRecurrence } from './plain-recurrence.js';

/** Limits of Δ that layers have: none as a rule. */
const limits = [usualStepLimit, usualStepLimit, [0.01, 0.5]] as const;

/** How Δ is made of dt, drawn. */
export function drawSteps(random: RandomValues): NonNullable<PlainRecurrence['steps']> {
  const dtLimit = limits[random.integer(0, limits.length - 1)];
  return { dtSoftplus: random.uniform() < 0.7, dtLimit };
}

/** The Δ of every token and value head of a mamba2 problem, in fp64. */
function stepsOf({ inputs: { dt, dt_bias: bias }, steps, valueHeads }: PlainRecurrence) {
  const { dtSoftplus = false, dtLimit: [least, most] = usualStepLimit } = steps ?? {};
  return (dt?.values ?? new Float64Array(0)).map((x, i) => {
    const sum = x + (bias?.values[i % valueHeads] ?? 0);
    const step = dtSoftplus && sum <= softplusThreshold ? Math.log1p(Math.exp(sum)) : sum;
    return Math.min(most, Math.max(least, step));
  });
}

/** The gates of a problem, token by token: those that it has, and of mamba2 Δ A; none where the family has none. */
export function gatesOf(plain: PlainRecurrence): Float64Array | undefined {
  const { inputs, valueHeads } = plain;
  const a = inputs.A?.values;
  if (a === undefined) return inputs.g?.values;
  return stepsOf(plain).map((step, i) => step * a[i % valueHeads]);
}

/** The same problem, its Δ as dt itself without a softplus, a bias or limits; `step` gives Δ by token and value head. */
export function withPlainSteps(
  plain: PlainRecurrence,
  step: (token: number, head: number) => number,
): PlainRecurrence {
  const { dt } = plain.inputs;
  if (dt === undefined) return plain;
  const { token, valueHead } = axisSizes(plain);
  const values = Float64Array.from({ length: token * valueHead }, (_, i) =>
    step(Math.floor(i / valueHead), i % valueHead),
  );
  const unbiased = withoutInputs(plain, ['dt_bias']);
  return {
    ...withValues(unbiased, { dt: values }),
    steps: { dtSoftplus: false, dtLimit: usualStepLimit },
  };
}
