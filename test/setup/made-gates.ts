import { randomValues } from '../../properties/problems/values.js';
import type { FormatName } from '../../src/formats/index.js';
import type { RecurrentProblem } from '../../src/problem/index.js';
import { tensor } from './problems.js';

/** What a problem whose kernel makes gates and write strengths is drawn from. */
export interface DrawnGates {
  readonly seed: number;
  readonly family: 'simple-gla' | 'gla' | 'gated-delta' | 'kda';
  readonly lengths: readonly number[];
  /** Default 1 key head of 2 value heads, 4 and 3. */
  readonly keyHeads?: number;
  readonly groupSize?: number;
  readonly keyDim?: number;
  readonly valueDim?: number;
  /** Default bf16. */
  readonly format?: FormatName;
  /** About what a + dt_bias lies, and how far from it; default 0 and 1. */
  readonly bias?: number;
  readonly spread?: number;
  /** Default: there is one. */
  readonly hasBias?: boolean;
}

/** A problem as serving layers pose it: normalised keys, an initial state, A_log from 0 to 1. */
export function madeGateProblem(drawn: DrawnGates): RecurrentProblem {
  const { seed, family, lengths, keyHeads = 1, groupSize = 2, keyDim = 4, valueDim = 3 } = drawn;
  const { format = 'bf16', bias = 0, spread = 1, hasBias = true } = drawn;
  const random = randomValues(seed);
  const tokens = lengths.reduce((a, b) => a + b, 0);
  const heads = keyHeads * groupSize;
  const isDelta = family === 'gated-delta' || family === 'kda';
  const wide = family === 'gla' || family === 'kda' ? [heads, keyDim] : [heads];
  const near = () => bias + spread * random.normal();
  return {
    family,
    q: tensor(format, [1, tokens, keyHeads, keyDim], random.normal),
    k: tensor(format, [1, tokens, keyHeads, keyDim], random.normal),
    v: tensor(format, [1, tokens, heads, valueDim], random.normal),
    gateInputs: {
      aLog: tensor('fp32', [heads], random.uniform),
      a: tensor(format, [1, tokens, ...wide], hasBias ? random.normal : near),
      ...(hasBias && { dtBias: tensor('fp32', wide, near) }),
    },
    ...(isDelta && {
      strengthLogits: tensor(format, [1, tokens, heads], () => 2 * random.normal()),
    }),
    initialState: tensor('fp32', [lengths.length, heads, keyDim, valueDim], random.normal),
    cuSeqlens: [0, ...lengths.map((_, i) => lengths.slice(0, i + 1).reduce((a, b) => a + b))],
    normalisation: { epsilon: 1e-6 },
  };
}
