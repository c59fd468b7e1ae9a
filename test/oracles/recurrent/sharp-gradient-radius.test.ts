import { describe, expect, it } from 'vitest';
import { recurrentGradients } from '../../../oracles/index.js';
import type {
  RecurrentFamily,
  RecurrentGradientInputs,
  RecurrentProblem,
} from '../../../src/problem/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { loadMpfr } from '../mpfr.js';
import { referenceGradients, type ReferenceGradients } from './reference-gradients.js';

const mpfr = await loadMpfr();

type Random = ReturnType<typeof randomValues>;

/** A problem of one value head by its numbers; what is left out is 0, and β is 1. */
interface Numbers {
  readonly family: RecurrentFamily;
  readonly tokens?: number;
  readonly keyDim?: number;
  readonly valueDim?: number;
  readonly valueHeads?: number;
  readonly q?: (i: number) => number;
  readonly k?: (i: number) => number;
  readonly v?: (i: number) => number;
  readonly gate?: (i: number) => number;
  readonly beta?: (i: number) => number;
  readonly state?: (i: number) => number;
  readonly dout?: (i: number) => number;
  readonly dstate?: (i: number) => number;
  readonly scale?: number;
  readonly isNormalised?: boolean;
}

const none = () => 0;

function posed(numbers: Numbers): [RecurrentProblem, RecurrentGradientInputs] {
  const { family, tokens = 1, keyDim = 1, valueDim = 1, valueHeads = 1, scale = 1 } = numbers;
  const { q = none, k = none, v = none, gate, state = none, dout = none, dstate = none } = numbers;
  const keys = [1, tokens, 1, keyDim];
  const values = [1, tokens, valueHeads, valueDim];
  const byHead = [1, tokens, valueHeads];
  const states = [1, valueHeads, keyDim, valueDim];
  const problem = {
    family,
    scale,
    q: tensor('fp64', keys, q),
    k: tensor('fp64', keys, k),
    v: tensor('fp64', values, v),
    initialState: tensor('fp64', states, state),
    ...(gate && { g: tensor('fp64', byHead, gate) }),
    ...(family.includes('delta') && { beta: tensor('fp64', byHead, numbers.beta ?? (() => 1)) }),
    ...(numbers.isNormalised && { normalisation: { epsilon: 0.3 } }),
  };
  const dfinalState = tensor('fp64', states, dstate);
  return [problem, { dout: tensor('fp64', values, dout), dfinalState }];
}

/** The share of its radius that the error of an element takes; above 1 is a refutation. */
function shareOfRadius(numbers: Numbers, name: keyof ReferenceGradients, index: number): number {
  const [problem, inputs] = posed(numbers);
  const found = recurrentGradients(problem, inputs).quantities[name];
  return mpfr.withPrecision(400, (arena) => {
    const exact = referenceGradients(problem, inputs, arena)[name];
    if (!exact || !found) return NaN;
    return arena.distance(exact[index], found.values[index]) / found.radius[index];
  });
}

/** A term of a radius, and problems in which an element errs by that, and by little else. */
interface Term {
  readonly name: string;
  readonly quantity: keyof ReferenceGradients;
  readonly index?: number;
  /** What errors take of the radius at least; without the term the radius would be less than this share of itself. */
  readonly share: number;
  readonly runs: number;
  readonly numbers: (random: Random) => Numbers;
}

const many = 4096;
const gateOf = (random: Random) => -690 * random.uniform();

/** Errors of a decay are up to a thousand roundings: they show where they go. */
const ofDecays: readonly Omit<Term, 'share' | 'runs'>[] = [
  {
    name: 'a gradient that decays, in that of the initial state',
    quantity: 'dinitial_state',
    numbers: (random) => {
      const gate = gateOf(random);
      return { family: 'simple-gla', gate: () => gate, dstate: random.normal };
    },
  },
  {
    name: 'a gradient that decayed before, in that of the initial state',
    quantity: 'dinitial_state',
    numbers: (random) => ({
      family: 'simple-gla',
      tokens: 2,
      gate: (i) => i * gateOf(random),
      dstate: random.normal,
    }),
  },
  {
    name: 'a state, in dq',
    quantity: 'dq',
    numbers: (random) => ({
      family: 'simple-gla',
      gate: () => gateOf(random),
      state: random.normal,
      dout: random.normal,
    }),
  },
  {
    name: 'a state of the first of two value heads, in dq',
    quantity: 'dq',
    numbers: (random) => ({
      family: 'simple-gla',
      valueHeads: 2,
      gate: (head) => (1 - head) * gateOf(random),
      state: (head) => (1 - head) * random.normal(),
      dout: () => 1,
    }),
  },
  {
    name: 'a state, in dq of a normalised query',
    quantity: 'dq',
    numbers: (random) => ({
      family: 'simple-gla',
      keyDim: 2,
      isNormalised: true,
      q: random.normal,
      gate: () => gateOf(random),
      state: random.normal,
      dout: () => 1,
    }),
  },
  {
    name: 'a gradient, in dk of what is written',
    quantity: 'dk',
    numbers: (random) => ({
      family: 'simple-gla',
      tokens: 2,
      v: random.normal,
      gate: (i) => i * gateOf(random),
      dstate: random.normal,
    }),
  },
  {
    name: 'what is written, in dk',
    quantity: 'dk',
    index: 1,
    numbers: (random) => ({
      family: 'gated-delta',
      keyDim: 2,
      k: (i) => 1 - i,
      gate: () => gateOf(random),
      state: (i) => (1 - i) * random.normal(),
      dstate: (i) => i * random.normal(),
    }),
  },
  {
    name: 'the gradient of what is read, in dk',
    quantity: 'dk',
    numbers: (random) => {
      const value = random.normal();
      return {
        family: 'gated-delta',
        tokens: 2,
        k: (i) => 1 - i,
        v: () => value,
        beta: (i) => 1 - i,
        gate: (i) => i * gateOf(random),
        state: () => value,
        dstate: random.normal,
      };
    },
  },
  {
    name: 'a gradient, in dβ',
    quantity: 'dbeta',
    numbers: (random) => ({
      family: 'gated-delta',
      tokens: 2,
      k: (i) => 1 - i,
      v: random.normal,
      beta: (i) => 1 - i,
      gate: (i) => i * gateOf(random),
      dstate: random.normal,
    }),
  },
  {
    name: 'what the state lacks, in dβ',
    quantity: 'dbeta',
    numbers: (random) => ({
      family: 'gated-delta',
      k: () => 1,
      gate: () => gateOf(random),
      state: random.normal,
      dstate: random.normal,
    }),
  },
  {
    name: 'a state, in dg',
    quantity: 'dg',
    numbers: (random) => ({
      family: 'simple-gla',
      gate: () => gateOf(random),
      state: random.normal,
      dstate: random.normal,
    }),
  },
  {
    name: 'a gradient, in dg',
    quantity: 'dg',
    numbers: (random) => ({
      family: 'simple-gla',
      tokens: 2,
      gate: (i) => i * gateOf(random),
      state: random.normal,
      dstate: random.normal,
    }),
  },
];

/** Sums of many terms that round the same way. */
const ofSums: readonly Omit<Term, 'runs'>[] = [
  {
    name: 'a sum of dv',
    quantity: 'dv',
    share: 0.01,
    numbers: (random) => {
      const [k, state] = [random.uniform() / 64, random.uniform()];
      return { family: 'linear', keyDim: many, k: () => k, dstate: () => state };
    },
  },
  {
    name: 'a sum of dq',
    quantity: 'dq',
    share: 0.01,
    numbers: (random) => {
      const [state, dout] = [random.uniform(), random.uniform()];
      return { family: 'linear', valueDim: many, state: () => state, dout: () => dout };
    },
  },
  {
    name: 'a sum of dk over what is written',
    quantity: 'dk',
    share: 0.01,
    numbers: (random) => {
      const [v, state] = [random.uniform(), random.uniform()];
      return { family: 'linear', valueDim: many, v: () => v, dstate: () => state };
    },
  },
  {
    name: 'a sum of dk over what is read',
    quantity: 'dk',
    share: 0.01,
    numbers: (random) => {
      const [before, after] = [random.uniform(), random.uniform()];
      return {
        family: 'delta',
        keyDim: 2,
        valueDim: many,
        k: (i) => i,
        state: (i) => (i < many ? before : 0),
        dstate: (i) => (i < many ? 0 : after),
      };
    },
  },
  {
    name: 'a sum of dβ',
    quantity: 'dbeta',
    share: 0.01,
    numbers: (random) => {
      const [v, state] = [random.uniform(), random.uniform()];
      return { family: 'delta', valueDim: many, k: () => 1, v: () => v, dstate: () => state };
    },
  },
  {
    name: 'a sum of dg',
    quantity: 'dg',
    share: 0.01,
    numbers: (random) => {
      const [before, after] = [random.uniform(), random.uniform()];
      return {
        family: 'simple-gla',
        valueDim: many,
        gate: none,
        state: () => before,
        dstate: () => after,
      };
    },
  },
  {
    name: 'a sum that a delta write spreads',
    quantity: 'dinitial_state',
    share: 0.01,
    numbers: (random) => {
      const [k, state] = [random.uniform() / 64, random.uniform()];
      return {
        family: 'delta',
        keyDim: many,
        k: (i) => (i === 0 ? 1 : k),
        dstate: (i) => (i === 0 ? 0 : state),
      };
    },
  },
];

/** A gradient of the final state that what an output adds cancels, or is small beside. */
const ofOutputs: readonly Omit<Term, 'runs'>[] = [
  {
    name: 'the sum with the share of an output',
    quantity: 'dinitial_state',
    share: 0.5,
    numbers: (random) => ({
      family: 'linear',
      q: () => 1,
      dout: () => random.normal() * 2 ** -30,
      dstate: random.normal,
    }),
  },
  ...(['dinitial_state', 'dv'] as const).map((quantity): Omit<Term, 'runs'> => ({
    name: `the share of an output, in ${quantity}`,
    quantity,
    share: 0.6,
    numbers: (random) => {
      const [q, scale, dout] = [random.normal(), random.normal(), random.normal()];
      const dstate = -(q * (scale * dout));
      return {
        family: 'linear',
        q: () => q,
        k: () => 1,
        scale,
        dout: () => dout,
        dstate: () => dstate,
      };
    },
  })),
];

const terms: readonly Term[] = [
  ...ofDecays.map((term) => ({ ...term, share: 0.05, runs: 50 })),
  ...ofSums.map((term) => ({ ...term, runs: 5 })),
  ...ofOutputs.map((term) => ({ ...term, runs: 500 })),
];

describe('a term of the radius alone holds', () => {
  it.each(terms)('$name', ({ quantity, index = 0, share, runs, numbers }) => {
    const random = randomValues(testSeed);
    let largest = 0;
    for (let run = 0; run < scaled(runs); run++) {
      const found = shareOfRadius(numbers(random), quantity, index);
      expect(found).toBeLessThanOrEqual(1);
      largest = Math.max(largest, found);
    }
    // A radius that errors never come near might as well be a number that is too large.
    expect(largest).toBeGreaterThan(share);
  });
});
