import * as fc from 'fast-check';
import {
  plainRecurrentFamilies,
  recurrentFamilies,
  recurrentShape,
  type RecurrentFamily,
  type RecurrentGradientInputs,
  type RecurrentProblem,
} from '../../../src/problem/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { FormatName } from '../../../src/formats/index.js';
import { tensor } from '../../setup/problems.js';

/** What a problem of a family is drawn from. */
export interface DrawnRecurrence {
  readonly family: RecurrentFamily;
  /** Lengths of its sequences. */
  readonly lengths: readonly number[];
  /** Whether they are packed; else all have the first's length. */
  readonly isPacked: boolean;
  readonly keyHeads: number;
  readonly groupSize: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly format: FormatName;
  readonly isNormalised: boolean;
  readonly hasState: boolean;
  readonly seed: number;
}

/** The names of the families of q, k and v. */
export const families = plainRecurrentFamilies;

/** What small problems of any family, or of one, are drawn from. */
export const drawnRecurrence = (family?: RecurrentFamily): fc.Arbitrary<DrawnRecurrence> =>
  fc.record({
    family: family === undefined ? fc.constantFrom(...families) : fc.constant(family),
    lengths: fc.array(fc.nat(6), { minLength: 1, maxLength: 3 }),
    isPacked: fc.boolean(),
    keyHeads: fc.integer({ min: 1, max: 2 }),
    groupSize: fc.integer({ min: 1, max: 2 }),
    keyDim: fc.integer({ min: 1, max: 9 }),
    valueDim: fc.integer({ min: 1, max: 3 }),
    format: fc.constantFrom<FormatName>('bf16', 'fp32', 'fp64'),
    isNormalised: fc.boolean(),
    hasState: fc.boolean(),
    seed: fc.nat(2 ** 31),
  });

/** Where gates and write strengths lie. */
export interface Range {
  readonly gate: (uniform: number) => number;
  readonly strength: (uniform: number) => number;
  /** Size of an element of a key that is not normalised. */
  readonly keySize: (keyDim: number) => number;
}

const chosen = <T>(list: readonly T[], uniform: number): T | undefined =>
  list[Math.floor(uniform * list.length)];

/** Everything that is allowed: gates of 0 and −∞ and beyond fp64's range, strengths of 0, 1, 2 and beyond, long keys. */
export const wild: Range = {
  gate: (uniform) =>
    chosen([0, -Infinity, -800, -690, -40, 0.5], uniform * 2) ?? -((2 * uniform - 1) ** 4) * 5,
  strength: (uniform) => chosen([0, 1, 2, -1, 2.5], uniform * 2) ?? (2 * uniform - 1) * 2,
  keySize: () => 2,
};

/** What models have: gates from −5 to 0 and −∞, strengths from 0 to 2, keys of length 1 or so. */
export const tame: Range = {
  gate: (uniform) => chosen([0, -Infinity], uniform * 8) ?? -(uniform ** 4) * 5,
  strength: (uniform) => chosen([0, 1, 2], uniform * 4) ?? uniform * 2,
  keySize: (keyDim) => 1 / Math.sqrt(3 * keyDim),
};

/** The problem, with elements from its seed. */
export function recurrence(drawn: DrawnRecurrence, range: Range): RecurrentProblem {
  const { family, lengths, isPacked, keyHeads, groupSize, keyDim, valueDim, format } = drawn;
  const random = randomValues(drawn.seed);
  const law = recurrentFamilies[family];
  const batch = isPacked ? 1 : lengths.length;
  const tokens = isPacked ? lengths.reduce((a, b) => a + b, 0) : lengths[0];
  const heads = keyHeads * groupSize;
  const size = range.keySize(keyDim);
  const element = () => (2 * random.uniform() - 1) * size * Math.sqrt(3);
  const vectors = () => tensor(format, [batch, tokens, keyHeads, keyDim], element);
  const byHead = [batch, tokens, heads];
  const gates = law.decay === 'by-head' ? byHead : [...byHead, keyDim];
  const hasGate = law.decay === 'by-head' || law.decay === 'by-key-dimension';
  return {
    family,
    q: vectors(),
    k: vectors(),
    v: tensor(format, [batch, tokens, heads, valueDim], random.normal),
    ...(hasGate && { g: tensor('fp32', gates, () => range.gate(random.uniform())) }),
    ...(law.write === 'delta' && {
      beta: tensor(format, byHead, () => range.strength(random.uniform())),
    }),
    ...(drawn.hasState && {
      initialState: tensor('fp32', [lengths.length, heads, keyDim, valueDim], random.normal),
    }),
    ...(isPacked && {
      cuSeqlens: [0, ...lengths.map((_, i) => lengths.slice(0, i + 1).reduce((a, b) => a + b))],
    }),
    ...(drawn.isNormalised && { normalisation: { epsilon: 1e-6 } }),
  };
}

/** Gradients of the output and, by chance, of the final state. */
export function drawnInputs(problem: RecurrentProblem, seed: number): RecurrentGradientInputs {
  const random = randomValues(seed);
  const { batch, tokens, valueHeads, keyDim, valueDim, sequences } = recurrentShape(problem);
  const { format } = problem.v;
  const states = [sequences.length, valueHeads, keyDim, valueDim];
  const dout = tensor(format, [batch, tokens, valueHeads, valueDim], random.normal);
  return random.uniform() < 0.5
    ? { dout }
    : { dout, dfinalState: tensor('fp32', states, random.normal) };
}
