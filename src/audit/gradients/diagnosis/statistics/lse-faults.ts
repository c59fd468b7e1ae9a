import type { FailedGradients } from '../failed-gradients.js';
import type { ReplayedFault } from '../replayed/replayed-fault.js';

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

/** A wrong LSE multiplies the P of a row by e^(LSE − wrong LSE). */
export function* lseFaults({ measured }: FailedGradients): Generator<ReplayedFault> {
  const { denominator, quantities } = measured.reference;
  const lse = quantities.lse.values;
  for (const { id, words, of } of wrongLses) {
    const moves = lse.map((x) => (Number.isFinite(x) ? of(x) - x : 0));
    if (!moves.every((x) => Math.abs(x) <= largestExponent)) continue;
    if (moves.every((x) => Math.abs(x) < 2 ** -10)) continue;
    yield {
      id,
      sentence: `${words} in the backward pass, so that P is off by a factor in every row`,
      change: { logarithm: moves.map((x, row) => denominator[row] + x) },
    };
  }
}
