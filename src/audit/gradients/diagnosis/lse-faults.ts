import { gradientsOf, withRowFactors } from './changed-gradients.js';
import type { FailedGradients } from './failed-gradients.js';
import type { Prediction } from './prediction.js';

/** LSEs that a backward pass may take for its own. */
const wrongLses = [
  {
    id: 'lse-base-2',
    words: 'the LSE is in base 2 and taken for a natural logarithm',
    of: (lse: number) => lse * Math.LOG2E,
  },
  {
    id: 'lse-natural-for-base-2',
    words: 'the LSE is a natural logarithm and taken for one in base 2',
    of: (lse: number) => lse * Math.LN2,
  },
  { id: 'lse-missing', words: 'the LSE is taken as 0', of: () => 0 },
] as const;

/** The largest exponent of a row's factor that gradients are predicted for. */
const largestExponent = 80;

/** A wrong LSE multiplies the P of a row, and so all that the row adds, by e^(LSE − wrong LSE). */
export function* lseFaults({ problem, dout, measured }: FailedGradients): Generator<Prediction> {
  const { lse } = measured.reference.quantities;
  for (const { id, words, of } of wrongLses) {
    const exponents = lse.values.map((x) => (x === -Infinity ? 0 : x - of(x)));
    if (!exponents.every((x) => Math.abs(x) <= largestExponent)) continue;
    if (exponents.every((x) => Math.abs(x) < 2 ** -10)) continue;
    yield {
      id,
      sentence: `${words} in the backward pass, so that P is off by a factor in every row`,
      predicted: gradientsOf(problem, withRowFactors(dout, exponents.map(Math.exp)), [
        'dq',
        'dk',
        'dv',
      ]),
      shrinks: true,
    };
  }
}
