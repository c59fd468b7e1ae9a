import { describe, expect } from 'vitest';
import {
  recurrentOperands,
  roundingTo,
  runRecurrence,
  type RecurrentArithmetic,
  type RecurrentRounding,
} from '../../../kernels/index.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import { recurrentShape, type RecurrentFamily } from '../../../src/problem/index.js';
import { recurrence, tame } from '../../oracles/recurrent/drawn-recurrences.js';
import { testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const words = new Uint32Array(1);
const number = new Float32Array(words.buffer);

/** A number cut to tf32 as tensor cores read fp32: the last 13 bits are dropped. */
function cut(x: number): number {
  number[0] = x;
  words[0] &= ~0x1fff;
  return number[0];
}

/** A kernel in chunks whose operands of products are cut where they are tf32, and so those of dots with decays by key dimension. */
function cutting(arithmetic: RecurrentArithmetic): RecurrentRounding {
  const nearest = roundingTo(arithmetic);
  return {
    ...nearest,
    value: (name, values, first, end) => {
      if (arithmetic.formats[name] === 'tf32' && recurrentOperands.includes(name))
        for (let i = first; i < end; i++) values[i] = cut(values[i]);
      else nearest.value(name, values, first, end);
    },
    // Each factor of these dots loses 2^-11 / 1.44 of itself on average.
    decayedDots: (dots, first, end) => {
      for (let i = first; i < end; i++) dots[i] *= 1 - 2 ** -10 / 1.44;
    },
  };
}

const problemOf = (family: RecurrentFamily, format: 'fp32' | 'bf16', tokens: number) =>
  recurrence(
    {
      family,
      format,
      lengths: [tokens],
      isPacked: false,
      keyHeads: 1,
      groupSize: 1,
      keyDim: 32,
      valueDim: 64,
      isNormalised: false,
      hasState: false,
      seed: testSeed,
    },
    { ...tame, gate: (uniform) => -uniform / 16 },
  );

describe('operands that tensor cores cut to tf32 err in one sense', () => {
  inTurn.each([
    ['kda', 'bf16', 4096],
    ['gla', 'bf16', 4096],
    ['kda', 'fp32', 256],
    ['gated-delta', 'fp32', 256],
    ['simple-gla', 'fp32', 256],
  ] as const)(
    '%s in %s raises no false alarm',
    (family, format, tokens) => {
      const problem = problemOf(family, format, tokens);
      const [arithmetic] = arithmeticsOf(problem, { form: 'chunked', chunk: 64 });
      const stored = { ...arithmetic, outputs: { out: format } };
      const values = runRecurrence(problem, stored, cutting(stored));
      const { keyDim, valueDim } = recurrentShape(problem);
      let at = 0;
      const out = tensor(format, problem.v.shape, () => values.out![at++]);
      let of = 0;
      const state = tensor('fp32', [1, 1, keyDim, valueDim], () => values.final_state![of++]);
      const { verdict } = auditRecurrent(
        problem,
        { results: { out, final_state: state }, gradientInputs: undefined },
        { declared: { form: 'chunked', chunk: 64 }, diagnose: false },
      );
      expect(verdict.findings).toEqual([]);
    },
    120_000,
  );
});
