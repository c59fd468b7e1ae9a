import type { RecurrentRegime, RegimeDraft } from './regime.js';
import { unitRows } from './draw-values.js';
import { sequenceRanges, type PlainRecurrence } from './plain-recurrence.js';

type Rows = readonly Float64Array[];

/** The keys of each sequence and key head, a row each. */
export function keysByHead({
  inputs,
  lengths,
  keyHeads,
  keyDim,
}: PlainRecurrence): readonly Rows[] {
  const { values } = inputs.k;
  return sequenceRanges(lengths).flatMap(({ first, end }) =>
    Array.from({ length: keyHeads }, (_, head) =>
      Array.from({ length: end - first }, (_, t) => {
        const at = ((first + t) * keyHeads + head) * keyDim;
        return values.subarray(at, at + keyDim);
      }),
    ),
  );
}

/** Σ a b. */
export function dot(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}

/** The keys of a draft, made one by one: `row` gives that of a token of a sequence and key head. */
function keysOf(
  { sizes, lengths }: RegimeDraft,
  row: (t: number, stream: number) => Float64Array,
): Float64Array {
  const { keyHead: heads, keyDim } = sizes;
  const keys = new Float64Array(sizes.token * heads * keyDim);
  sequenceRanges(lengths).forEach(({ first, end }, sequence) => {
    for (let t = first; t < end; t++)
      for (let head = 0; head < heads; head++)
        keys.set(row(t - first, sequence * heads + head), (t * heads + head) * keyDim);
  });
  return keys;
}

/** Directions of length 1, so many of each sequence and key head. */
function directions({ sizes, random }: RegimeDraft, count: number): readonly Rows[] {
  const direction = () =>
    unitRows(Float64Array.from({ length: sizes.keyDim }, random.normal), sizes.keyDim);
  return Array.from({ length: sizes.sequence * sizes.keyHead }, () =>
    Array.from({ length: count }, direction),
  );
}

/** How alike neighbouring keys are at least: the cosine. */
const leastCosine = 0.98;

function areParallel(keys: Rows): boolean {
  const lengths = keys.map((key) => Math.sqrt(dot(key, key)));
  return keys.every(
    (key, t) =>
      lengths[t] > 0 &&
      (t === 0 || dot(key, keys[t - 1]) >= leastCosine * lengths[t] * lengths[t - 1]),
  );
}

/** Regimes that are about keys. */
export const keyRegimes = {
  'parallel-keys': {
    description: 'keys that point almost the same way, token after token',
    provokes: 'an inverse within the chunk with large elements, and writes that cancel',
    draw: (draft) => {
      const { sizes, random } = draft;
      const [...common] = directions(draft, 1);
      const near = (_: number, stream: number) =>
        common[stream][0].map((x) => x + (0.02 / Math.sqrt(sizes.keyDim)) * random.normal());
      return { k: unitRows(keysOf(draft, near), sizes.keyDim) };
    },
    holds: (plain) => {
      const all = keysByHead(plain);
      return all.some((keys) => keys.length > 1) && all.every(areParallel);
    },
  },
  'orthonormal-keys': {
    description: 'no more tokens than key dimensions, and every key a unit vector of its own',
    provokes: 'keys that meet where they must not: every value can be read back',
    narrow: (constraints) => ({ ...constraints, normalisation: false }),
    lengths: (constraints, random) => {
      const { dims, packed } = constraints;
      const most = Math.min(32, ...(dims ?? [32]));
      const count = packed ? random.integer(1, 2) : 1;
      return Array.from({ length: count }, () => random.integer(1, most));
    },
    leastKeyDim: (lengths) => Math.max(1, ...lengths),
    draw: (draft) => {
      const { sizes, random } = draft;
      const turns = Array.from({ length: sizes.sequence * sizes.keyHead }, () => ({
        shift: random.integer(0, sizes.keyDim - 1),
        sign: random.sign(),
      }));
      return {
        k: keysOf(draft, (t, stream) => {
          const { shift, sign } = turns[stream];
          const key = new Float64Array(sizes.keyDim);
          key[(t + shift) % sizes.keyDim] = t % 2 === 0 ? sign : 1;
          return key;
        }),
      };
    },
    holds: (plain) =>
      keysByHead(plain).every((keys) =>
        keys.every((a, i) => keys.every((b, j) => j > i || dot(a, b) === (i === j ? 1 : 0))),
      ),
  },
  'repeated-keys': {
    description: 'one, two or three keys that come again and again',
    provokes: 'a write that adds to what the key holds already, in place of replacing it',
    draw: (draft) => {
      const count = draft.random.integer(1, 3);
      const all = directions(draft, count);
      return { k: keysOf(draft, (_, stream) => all[stream][draft.random.integer(0, count - 1)]) };
    },
    holds: (plain) =>
      keysByHead(plain).some((keys) =>
        keys.some(
          (key, t) =>
            t > 0 && key.some((x) => x !== 0) && key.every((x, i) => x === keys[t - 1][i]),
        ),
      ),
  },
} as const satisfies Readonly<Record<string, RecurrentRegime>>;
