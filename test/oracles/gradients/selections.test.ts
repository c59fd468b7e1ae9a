import { expect, it } from 'vitest';
import {
  attentionGradients,
  gradientOracle,
  type Gradient,
  type GroupGradients,
} from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';

const random = randomValues(testSeed);
const frame = { batch: 2, heads: 2, kvHeads: 1, queries: 70, keys: 150, dim: 5, vDim: 3 };
const problem = filledProblem(frame, random.normal, { causal: true });
const dout = tensor('bf16', [2, 2, 70, 3], random.normal);
const whole = attentionGradients(problem, dout);

function sameRows(
  part: Gradient,
  all: Gradient,
  dim: number,
  rowAt: (row: number) => number,
): void {
  for (const name of ['values', 'magnitude'] as const)
    part[name].forEach((x, at) => {
      const row = rowAt(Math.floor(at / dim));
      // The same sums, but for what other tiles add to the roundings.
      const wanted = all[name][row * dim + (at % dim)];
      const allowed = 2 ** -44 * all.magnitude[row * dim + (at % dim)];
      if (!(Math.abs(x - wanted) <= allowed)) expect(x, `${name} ${at}`).toBe(wanted);
    });
}

/** The groups of a generator, and what it returns. */
function groupsOf(...given: Parameters<typeof gradientOracle>): GroupGradients[] {
  return [...gradientOracle(...given)];
}

it('gives dK and dV of chosen keys as those of all', () => {
  const chosen = [0, 3, 64, 149];
  const groups = groupsOf(problem, dout, { keys: () => chosen, wanted: ['dk', 'dv'] });
  expect(groups.map(({ kvHead }) => kvHead)).toEqual([0, 1]);
  for (const { kvHead, keys, dk, dv, heads } of groups) {
    expect([...keys]).toEqual(chosen);
    expect(heads.every(({ dq }) => dq === null)).toBe(true);
    expect(dk!.values.length).toBe(chosen.length * frame.dim);
    sameRows(dk!, whole.dk!, frame.dim, (row) => kvHead * frame.keys + chosen[row]);
    sameRows(dv!, whole.dv!, frame.vDim, (row) => kvHead * frame.keys + chosen[row]);
  }
});

it('gives chosen keys the infinities and NaNs that they have among all', () => {
  const small = { queries: 3, keys: 5, dim: 2, vDim: 3 };
  // Key 2 has no weight in any row, and an infinity in dO makes all keys infinite or NaN.
  const planted = filledProblem(small, {
    q: () => 1 + Math.abs(random.normal()),
    k: (at) => (at === 4 ? -Infinity : random.normal()),
    v: random.normal,
  });
  const special = tensor('bf16', [1, 1, 3, 3], (at) => (at === 4 ? Infinity : random.normal()));
  const all = attentionGradients(planted, special);
  for (const chosen of [[0, 1, 4], [1, 2], [0], [2, 3]]) {
    const [{ dk, dv }] = groupsOf(planted, special, { keys: () => chosen });
    for (const [part, of, dim] of [
      [dk!, all.dk!, 2],
      [dv!, all.dv!, 3],
    ] as const) {
      const wanted = chosen.flatMap((key) => [...of.values.subarray(key * dim, (key + 1) * dim)]);
      const kinds = (values: readonly number[]) => values.map((x) => (Number.isFinite(x) ? 0 : x));
      expect(kinds([...part.values])).toEqual(kinds(wanted));
      expect(wanted.some((x) => !Number.isFinite(x))).toBe(true);
      sameRows(part, of, dim, (row) => chosen[row]);
    }
  }
});

it('gives dQ of chosen rows as those of all', () => {
  const rows = [1, 5, 69];
  const queries = Int32Array.from({ length: 4 * rows.length }, (_, i) => rows[i % rows.length]);
  const pick = (of: { data: ArrayLike<number> }, dim: number) =>
    Uint16Array.from({ length: queries.length * dim }, (_, at) => {
      const row = Math.floor(at / dim);
      return of.data[
        (Math.floor(row / rows.length) * frame.queries + queries[row]) * dim + (at % dim)
      ];
    });
  const selected: Problem = {
    ...problem,
    q: { format: 'bf16', shape: [2, 2, rows.length, 5], data: pick(problem.q, 5) },
    rows: { queries, of: frame.queries },
  };
  const ofRows = { format: 'bf16', shape: [2, 2, rows.length, 3], data: pick(dout, 3) } as const;
  const { dq, dk, dv } = attentionGradients(selected, ofRows);
  expect([dk, dv]).toEqual([null, null]);
  sameRows(dq!, whole.dq!, frame.dim, (row) => Math.floor(row / 3) * frame.queries + queries[row]);
  expect(() => attentionGradients(selected, ofRows, { wanted: ['dk'] })).toThrow(RequestError);
});

it('refuses what does not fit', () => {
  const refused = (...given: Parameters<typeof gradientOracle>) =>
    expect(() => groupsOf(...given)).toThrow(RequestError);
  refused(problem, tensor('bf16', [2, 2, 70, 5], random.normal));
  refused(problem, dout, { wanted: ['dbias'] });
  refused(problem, dout, { keys: () => [3, 3] });
  refused(problem, dout, { keys: () => [150] });
  refused(problem, dout, {
    accuracy: { outputFormat: 'bf16', ulpFraction: NaN, magnitudeFraction: 0 },
  });
});

/** Masks that a boolean tensor says, too, which the reference in MPFR knows. */
const masks: readonly (readonly [
  string,
  Partial<Problem>,
  (query: number, key: number) => boolean,
])[] = [
  [
    'documents',
    {
      segments: {
        queries: { shape: [70], data: Int32Array.from({ length: 70 }, (_, i) => i >> 5) },
        keys: { shape: [150], data: Int32Array.from({ length: 150 }, (_, j) => j % 3) },
      },
    },
    (query, key) => query >> 5 === key % 3,
  ],
  ['a prefix', { prefix: 40, causal: true }, (query, key) => key < 40 || key <= query + 80],
  [
    'blocks',
    {
      blockMask: {
        counts: { shape: [3], data: Int32Array.of(1, 0, 2) },
        indices: { shape: [3, 2], data: Int32Array.of(1, 0, 0, 0, 2, 0) },
        blockQueries: 32,
        blockKeys: 64,
      },
    },
    (query, key) => [[1], [], [0, 2]][query >> 5].includes(key >> 6),
  ],
  [
    'ranges of keys',
    {
      keyRanges: [
        { begin: 10, end: 90 },
        { begin: 10, end: 90 },
      ],
    },
    (_, key) => key >= 10 && key < 90,
  ],
];

it.each(masks)('takes %s as the same boolean mask, bit for bit', (_, feature, sees) => {
  const plain = { ...problem, causal: false };
  const data = Uint8Array.from({ length: 70 * 150 }, (_, at) =>
    sees(Math.floor(at / 150), at % 150) ? 1 : 0,
  );
  expect(attentionGradients({ ...plain, ...feature }, dout)).toEqual(
    attentionGradients({ ...plain, mask: { shape: [70, 150], data } }, dout),
  );
});
