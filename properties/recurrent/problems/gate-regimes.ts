import type { RecurrentLaw } from '../../../src/problem/index.js';
import type { DrawnValues } from './draw-values.js';
import { gatesOf } from './mamba2-steps.js';
import type { RecurrentRegime, RegimeDraft } from './regime.js';
import { sequenceRanges, type PlainRecurrence } from './plain-recurrence.js';

const isGated = ({ decay }: RecurrentLaw): boolean =>
  decay === 'by-head' || decay === 'by-key-dimension';
const isDelta = ({ write }: RecurrentLaw): boolean => write === 'delta';

/** Gates of a draft, drawn one by one; of mamba2 A is `ofHead` times what is drawn, which Δ makes gates of. */
function gates({ values }: RegimeDraft, draw: () => number, ofHead = 1): DrawnValues {
  return {
    ...(values.g && { g: values.g.map(draw) }),
    ...(values.A && { A: values.A.map(() => ofHead * draw()) }),
  };
}

/** Write strengths of a draft, drawn one by one. */
function strengths({ values }: RegimeDraft, draw: () => number): DrawnValues {
  return values.beta === undefined ? {} : { beta: values.beta.map(draw) };
}

/** Whether a problem has write strengths, all of which pass. */
function allStrengths(
  { inputs: { beta } }: PlainRecurrence,
  passes: (strength: number) => boolean,
): boolean {
  return beta !== undefined && beta.values.length > 0 && beta.values.every(passes);
}

/** The sum of gates that fp32 has no number for: e^-300. */
const steepSum = -300;

/** So many steps of mamba2's ordinary Δ come to one: A is as many times as steep as gates are. */
const stepsInOne = 50;

/** The lowest finite sum of a run of gates within a chunk of tokens, over all heads and key dimensions. */
function lowestSum(plain: PlainRecurrence, chunk: number): number {
  const { lengths } = plain;
  const g = gatesOf(plain);
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  if (g === undefined || tokens === 0) return 0;
  const width = g.length / tokens;
  let lowest = 0;
  for (const { first, end } of sequenceRanges(lengths))
    for (let start = first; start < end; start += chunk)
      for (let column = 0; column < width; column++) {
        let sum = 0;
        for (let t = start; t < Math.min(end, start + chunk); t++) sum += g[t * width + column];
        if (Number.isFinite(sum)) lowest = Math.min(lowest, sum);
      }
  return lowest;
}

/** What dt of long steps is longer than 1 by at most. */
const longestStep = 23;

/** Tokens over which a slow decay shows. */
const longTokens = 129;

/** Regimes that are about gates and write strengths. */
export const gateRegimes = {
  'slow-decay': {
    description:
      'sequences of three chunks and more, whose states decay by a hundredth a token at most',
    provokes: 'a state that lives long: errors that add up from chunk to chunk',
    suits: ({ decay }) => decay !== 'none',
    lengths: ({ chunk }, random) => [
      random.integer(Math.max(longTokens, 3 * chunk), Math.max(2 * longTokens, 4 * chunk)),
    ],
    draw: (draft) => gates(draft, () => -0.01 * draft.random.uniform()),
    holds: (plain) =>
      Math.max(0, ...plain.lengths) >= longTokens &&
      (gatesOf(plain)?.every((gate) => gate <= 0 && gate >= -0.02) ?? true),
  },
  'steep-gates': {
    description: 'gates that sum to −300 and less within a chunk',
    provokes: 'e^−G apart from e^G: overflow, or 0 · ∞',
    suits: isGated,
    lengths: ({ chunk }, random) => [random.integer(2, 2 * chunk + 1)],
    draw: (draft) => {
      const { lengths, random } = draft;
      const each = steepSum / Math.min(64, Math.max(1, ...lengths) / 2);
      return gates(draft, () => each * (0.5 + 2 * random.uniform()), stepsInOne);
    },
    holds: (plain, chunk) => lowestSum(plain, chunk) <= steepSum,
  },
  forgetting: {
    description: 'gates of −∞, which forget all that came before',
    provokes: '−∞ − −∞ where differences of sums of gates are taken',
    // Its gates are products, and no format of dt and A has one that is −∞ by itself.
    suits: (law, family) => isGated(law) && family !== 'mamba2',
    narrow: (constraints) => (constraints.infiniteGates ? constraints : null),
    lengths: ({ chunk }, random) => [random.integer(1, 2 * chunk + 1)],
    draw: ({ values, sizes, random }) => {
      const g = values.g?.slice() ?? new Float64Array(0);
      const width = g.length / sizes.token;
      const count = random.integer(1, 3);
      for (let i = 0; i < count; i++) {
        const token = random.integer(0, sizes.token - 1);
        g.fill(-Infinity, token * width, (token + 1) * width);
      }
      return { g };
    },
    holds: ({ inputs: { g } }) => g?.values.includes(-Infinity) === true,
  },
  'long-steps': {
    description: 'of mamba2: dt from 1 to 24; a softplus is its argument from 20 on',
    provokes: 'a softplus with another threshold or none, and limits of Δ that are left out',
    suits: (_law, family) => family === 'mamba2',
    draw: ({ values: { dt }, random }) =>
      dt === undefined ? {} : { dt: dt.map(() => longestStep * random.uniform() + 1) },
    holds: ({ inputs: { dt } }) =>
      dt !== undefined &&
      dt.values.length > 0 &&
      dt.values.every((x) => x >= 1 && x <= longestStep + 1),
  },
  'no-strength': {
    description: 'write strengths of 0 and near it',
    provokes: 'writes that are not there: a state that only decays',
    suits: isDelta,
    draw: (draft) => strengths(draft, () => [0, 0, 2 ** -20, 2 ** -9][draft.random.integer(0, 3)]),
    holds: (plain) => allStrengths(plain, (strength) => strength <= 2 ** -8),
  },
  'full-strength': {
    description: 'write strengths of 1 and beside it',
    provokes: 'what a key holds is replaced: a rest that stays, or is taken twice',
    suits: isDelta,
    draw: (draft) =>
      strengths(draft, () => [1, 1, 1 - 2 ** -8, 1 + 2 ** -7][draft.random.integer(0, 3)]),
    holds: (plain) => allStrengths(plain, (strength) => Math.abs(strength - 1) <= 2 ** -6),
  },
  'double-strength': {
    description:
      'write strengths of 2 and little less, where a write turns the sign of what the key holds',
    provokes: 'a state that nothing damps, and strengths that are taken to be 1 at most',
    suits: isDelta,
    draw: (draft) => strengths(draft, () => (draft.random.integer(0, 1) === 0 ? 2 : 2 - 2 ** -6)),
    holds: (plain) => allStrengths(plain, (strength) => strength >= 1.9),
  },
} as const satisfies Readonly<Record<string, RecurrentRegime>>;
