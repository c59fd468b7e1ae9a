import { randomValues } from '../../properties/problems/values.js';
import type { FormatName } from '../../src/formats/index.js';
import {
  usualStepLimit,
  type Mamba2Inputs,
  type RecurrentProblem,
} from '../../src/problem/index.js';
import { tensor } from './problems.js';

/** What a Mamba-2 problem is drawn from. */
export interface DrawnMamba2 {
  readonly seed: number;
  /** Default one sequence of 7. */
  readonly lengths?: readonly number[];
  /** Default 1 group of 2 heads. */
  readonly groups?: number;
  readonly groupSize?: number;
  /** Default 4 and 3. */
  readonly stateDim?: number;
  readonly headDim?: number;
  /** Of x, B, C, z; default bf16. */
  readonly format?: FormatName;
  /** Of dt; default that of x. */
  readonly dtFormat?: FormatName;
  /** Which of the optional inputs there are; default all. */
  readonly has?: Partial<Record<'d' | 'z' | 'dtBias' | 'softplus' | 'state', boolean>>;
  /** Whether D is [heads, head dimension]; default false. */
  readonly hasWideD?: boolean;
  readonly dtLimit?: readonly [number, number];
  /** About what dt_bias lies; default −3. */
  readonly bias?: number;
}

/** A Mamba-2 problem as its layers have them: Δ from 0.001 to 0.3 or so, A from −16 to −1. */
export function mamba2Problem(drawn: DrawnMamba2): RecurrentProblem {
  const { seed, lengths = [7], groups = 1, groupSize = 2, stateDim = 4, headDim = 3 } = drawn;
  const { format = 'bf16', dtFormat = format, has = {}, dtLimit = usualStepLimit } = drawn;
  const { bias = -3 } = drawn;
  const random = randomValues(seed);
  const tokens = lengths.reduce((a, b) => a + b, 0);
  const heads = groups * groupSize;
  const isGiven = (name: keyof NonNullable<DrawnMamba2['has']>) => has[name] ?? true;
  const vectors = () => tensor(format, [1, tokens, groups, stateDim], random.normal);
  const ofHeads = (draw: () => number) => tensor('fp32', [heads], draw);
  const inputs: Mamba2Inputs = {
    dt: tensor(dtFormat, [1, tokens, heads], () =>
      isGiven('softplus') ? random.normal() : 0.2 * random.uniform(),
    ),
    a: ofHeads(() => -1 - 15 * random.uniform()),
    ...(isGiven('d') && {
      d: tensor('fp32', drawn.hasWideD ? [heads, headDim] : [heads], random.normal),
    }),
    ...(isGiven('z') && { z: tensor(format, [1, tokens, heads, headDim], random.normal) }),
    ...(isGiven('dtBias') && { dtBias: ofHeads(() => bias + random.normal()) }),
    dtSoftplus: isGiven('softplus'),
    dtLimit,
  };
  const states = [lengths.length, heads, stateDim, headDim];
  return {
    family: 'mamba2',
    q: vectors(),
    k: vectors(),
    v: tensor(format, [1, tokens, heads, headDim], random.normal),
    mamba2: inputs,
    ...(isGiven('state') && { initialState: tensor('fp32', states, random.normal) }),
    ...(lengths.length > 1 && {
      cuSeqlens: [0, ...lengths.map((_, i) => lengths.slice(0, i + 1).reduce((a, b) => a + b))],
    }),
  };
}
