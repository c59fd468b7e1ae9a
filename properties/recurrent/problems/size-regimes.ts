import type { RecurrentRegime, RegimeDraft } from './regime.js';
import type { DrawnValues } from './draw-values.js';
import { lengthAtEdge } from './draw-sizes.js';
import type { PlainRecurrence } from './plain-recurrence.js';

/** Values times a factor. */
function scaled(values: Float64Array | undefined, factor: number): Float64Array {
  return (values ?? new Float64Array(0)).map((x) => x * factor);
}

/** v, q and the initial state times powers of two; of additive writes, which no length of keys expands, k too. */
function scaledValues({ values, law, random }: RegimeDraft, exponent: () => number): DrawnValues {
  const names = [
    'q',
    'v',
    'initial_state',
    ...(law.write === 'additive' ? (['k'] as const) : []),
  ] as const;
  const shared = 2 ** exponent();
  const drawn = names.flatMap((name) =>
    values[name] === undefined || (name !== 'v' && random.uniform() < 0.5)
      ? []
      : [
          [
            name,
            scaled(
              values[name],
              name === 'v' || name === 'initial_state' ? shared : 2 ** exponent(),
            ),
          ] as const,
        ],
  );
  return Object.fromEntries(drawn);
}

/** The largest magnitude of v. */
function largestValue({ inputs }: PlainRecurrence): number {
  return inputs.v.values.reduce((largest, x) => Math.max(largest, Math.abs(x)), 0);
}

const zeroable = ['q', 'k', 'v', 'initial_state'] as const;

/** Regimes that are about lengths and magnitudes. */
export const sizeRegimes = {
  'chunk-edges': {
    description: 'a number of tokens that is 0, 1 or −1 modulo the chunk',
    provokes: 'a last chunk that is full, has one token or lacks one',
    lengths: ({ chunk }, random) => [lengthAtEdge(chunk, random)],
    holds: ({ lengths }, chunk) =>
      lengths.some((length) => length >= chunk - 1 && [0, 1, chunk - 1].includes(length % chunk)),
  },
  'one-token': {
    description: 'sequences of one token: a step of decoding',
    provokes: 'code of its own for one token, and the state that it is handed',
    lengths: (_, random) => Array.from({ length: random.integer(1, 3) }, () => 1),
    holds: ({ lengths }) => lengths.length > 0 && lengths.every((length) => length === 1),
  },
  'empty-sequences': {
    description: 'packed: sequences without tokens among others',
    provokes: 'a final state that nobody writes, and chunks that are counted for each sequence',
    narrow: (constraints) => (constraints.packed ? constraints : null),
    lengths: ({ chunk }, random) => {
      const some = Array.from({ length: random.integer(1, 2) }, () => random.integer(1, chunk + 1));
      const at = random.integer(0, some.length);
      return [...some.slice(0, at), 0, ...some.slice(at)];
    },
    holds: ({ lengths, isPacked }) =>
      isPacked && lengths.includes(0) && lengths.some((length) => length > 0),
  },
  zeros: {
    description: 'queries, keys, values or an initial state of zeros',
    provokes: 'a division by a length of 0, and states that do not begin at 0',
    draw: ({ values, random }) => {
      const given = zeroable.filter((name) => values[name] !== undefined);
      const name = given[random.integer(0, given.length - 1)];
      return { [name]: scaled(values[name], 0) };
    },
    holds: ({ inputs }) => zeroable.some((name) => inputs[name]?.values.every((x) => x === 0)),
  },
  'large-values': {
    description: 'values, and some of queries, states and keys, far above 1',
    provokes: 'overflow in products and in short formats',
    draw: (draft) => {
      const [least, most] = draft.format === 'fp16' ? [4, 6] : [8, 20];
      return scaledValues(draft, () => draft.random.integer(least, most));
    },
    holds: (plain) => largestValue(plain) >= 2 ** 4,
  },
  'small-values': {
    description: 'values, and some of queries, states and keys, far below 1',
    provokes: 'underflow in products and in short formats',
    draw: (draft) => {
      const [least, most] = draft.format === 'fp16' ? [5, 7] : [8, 20];
      return scaledValues(draft, () => -draft.random.integer(least, most));
    },
    holds: (plain) => largestValue(plain) <= 2 ** -2 && largestValue(plain) > 0,
  },
} as const satisfies Readonly<Record<string, RecurrentRegime>>;
