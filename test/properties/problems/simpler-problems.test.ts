import { describe, expect, it } from 'vitest';
import type { ProblemConstraints } from '../../../properties/index.js';
import type { PlainProblem } from '../../../properties/problems/plain-problem.js';
import { searchStart, simplerProblems } from '../../../properties/problems/problem-shrinker.js';
import { resolveConstraints } from '../../../properties/problems/resolve-constraints.js';
import { smallerShapes } from '../../../properties/problems/shape-shrinker.js';
import type { Sizes } from '../../../properties/problems/sizes.js';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

/** A problem whose elements are numbered, of these sizes and 1 of all others. */
function numbered(sizes: Partial<Sizes>): PlainProblem {
  const all = {
    batch: 1,
    kvHeads: 1,
    groupSize: 1,
    queries: 1,
    keys: 1,
    qkDim: 1,
    vDim: 1,
    ...sizes,
  };
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = all;
  const count = (length: number) => Float64Array.from(upTo(length));
  return {
    sizes: all,
    formats: { q: 'fp32', k: 'fp32', v: 'fp32' },
    values: {
      q: count(batch * kvHeads * groupSize * queries * qkDim),
      k: count(batch * kvHeads * keys * qkDim),
      v: count(batch * kvHeads * keys * vDim),
    },
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
  };
}

const shapes = (sizes: Partial<Sizes>, constraints: ProblemConstraints = {}) => [
  ...smallerShapes(numbered(sizes), resolveConstraints(constraints)),
];

describe('smaller shapes', () => {
  /** Which keys are left of a problem that has many of nothing else. */
  const keysLeft = (keys: number, constraints: ProblemConstraints = {}) =>
    shapes({ keys }, constraints).map(({ values }) => values.k.join(''));

  it('keep first and last keys, ever more, whole blocks, and all but one of few', () => {
    const tiling = { blockKeys: 4, threshold: 8 };
    const singles = ['02345', '01345', '01245', '01235'];
    expect(keysLeft(6)).toEqual(['0', '5', '0123', '2345', '01234', '12345', ...singles]);
    expect(keysLeft(6, { tiling })).toEqual([
      '0',
      '5',
      '0123',
      '2345',
      '01234',
      '12345',
      '01',
      '45',
      ...singles,
    ]);
    expect(keysLeft(6, { keys: { min: 2 }, tiling })).toEqual([
      '01',
      '45',
      '0123',
      '2345',
      '01234',
      '12345',
      ...singles,
    ]);
    expect(keysLeft(5, { tiling })).toEqual([
      '0',
      '4',
      '012',
      '234',
      '0123',
      '1234',
      '0234',
      '0134',
      '0124',
    ]);
    expect(keysLeft(9).filter((keys) => keys.length === 8)).toEqual(['01234567', '12345678']);
    expect(keysLeft(8).filter((keys) => keys.length === 7)).toHaveLength(8);
    expect(keysLeft(6, { multiples: { keys: 2 } })).toEqual(['01', '45', '0123', '2345']);
    expect(keysLeft(3, { keys: { min: 3 } })).toEqual([]);
    expect(keysLeft(2, { keys: { min: 3 } })).toEqual([]);
    expect(keysLeft(1)).toEqual([]);
  });

  it('are of one query as it was, with the keys up to its diagonal', () => {
    const alone = (queries: number, keys: number, constraints: ProblemConstraints = {}) =>
      shapes({ queries, keys }, constraints)
        .filter(({ sizes }, i) => sizes.queries === 1 && i > 1)
        .map(({ values }) => `${values.q.join('')}:${values.k.join('')}`);
    for (const one of ['0:012', '1:0123', '2:01234']) expect(alone(3, 5)).toContain(one);
    // As many keys as there must be.
    expect(alone(3, 2).filter((text) => text.startsWith('1:'))).toContain('1:0');
    expect(alone(3, 2, { keys: { min: 0 } })).toContain('0:');
    const pairs = alone(4, 6, { multiples: { keys: 2 }, keys: { min: 2 } });
    expect(pairs.filter((text) => /^[12]:/.test(text))).toEqual(['1:0123']);
    expect(alone(3, 5, { queries: { min: 2 } })).toEqual([]);
    const many = shapes({ queries: 32, keys: 40 }).filter(
      ({ sizes, values }) => sizes.queries === 1 && values.k.length > 8,
    );
    const queries = new Set(
      many
        .filter(({ values }) => values.k.length === values.q[0] + 9 && values.k.length < 40)
        .map(({ values }) => values.q[0]),
    );
    expect([...queries]).toEqual(upTo(16).map((i) => 2 * i));
  });

  it('are the least of all sizes at first, then of all but one or some', () => {
    const sizes = { batch: 2, kvHeads: 2, queries: 2, keys: 2, qkDim: 2, vDim: 2 };
    const all = shapes(sizes).map((plain) => plain.sizes);
    const names = Object.keys(sizes) as (keyof Sizes)[];
    const least = Object.fromEntries(names.map((name) => [name, 1]));
    const but = (...kept: readonly (keyof Sizes)[]) => ({
      ...least,
      groupSize: 1,
      ...Object.fromEntries(kept.map((name) => [name, 2])),
    });
    const wanted = [
      [],
      ...names.map((name) => [name]),
      ['queries', 'keys'],
      ['queries', 'keys', 'qkDim', 'vDim'],
    ] as (keyof Sizes)[][];
    expect(all.slice(0, 2 * wanted.length)).toEqual(
      wanted.flatMap((kept) => [but(...kept), but(...kept)]),
    );
    const [front, back] = shapes(sizes);
    expect([front.values.q[0], back.values.q[0], front.values.v[0], back.values.v[0]]).toEqual([
      0, 15, 0, 15,
    ]);
  });

  it('are of listed groups and dimensions where these are listed', () => {
    const groups = shapes({ groupSize: 6 }, { groupSizes: [2, 3, 6] });
    expect(groups.map(({ values }) => values.q.join(''))).toEqual(['01', '45', '012', '345']);
    const dims = shapes({ qkDim: 4, vDim: 4 }, { dims: [2, 3, 4, 8] });
    expect(dims.map(({ values }) => [values.q.join(''), values.v.join('')])).toEqual(
      ['01', '23', '012', '123'].map((text) => [text, text]),
    );
    const uneven = shapes({ qkDim: 2, vDim: 4 }, { dims: [2, 4] });
    expect(uneven.map(({ sizes: { qkDim, vDim } }) => [qkDim, vDim])).toEqual([
      [2, 2],
      [2, 2],
    ]);
  });
});

describe('simpler problems', () => {
  const simpler = (
    changes: Partial<PlainProblem>,
    constraints: ProblemConstraints = {},
    at = searchStart,
  ) =>
    [...simplerProblems({ ...numbered({}), ...changes }, resolveConstraints(constraints), at)].map(
      ({ plain }) => plain,
    );
  const masks = (changes: Partial<PlainProblem>, constraints: ProblemConstraints = {}) =>
    simpler(changes, constraints)
      .filter(
        ({ causal, window, softcap }) =>
          causal !== (changes.causal ?? false) ||
          window !== (changes.window ?? null) ||
          softcap !== (changes.softcap ?? null),
      )
      .map(({ causal, window, softcap }) => [
        causal,
        window === null ? null : [window.left, window.right],
        softcap,
      ]);

  it('have fewer and narrower masks, as far as these may be left out', () => {
    const window = { left: 5, right: 3 };
    const narrower = [
      [5, -1],
      [-1, 3],
      [2, 3],
      [5, 1],
    ].map((one) => [false, one, null]);
    expect(masks({ window })).toEqual([[false, null, null], ...narrower]);
    expect(masks({ window }, { window: true })).toEqual(narrower);
    expect(masks({ window: { left: 0, right: -1 } }, { window: true })).toEqual([]);
    expect(masks({ window: { left: 0, right: 0 } }, { window: true })).toEqual([
      [false, [0, -1], null],
      [false, [-1, 0], null],
    ]);
    expect(masks({ causal: true })).toEqual([[false, null, null]]);
    expect(masks({ causal: true }, { causal: true })).toEqual([]);
    expect(masks({ softcap: 30 })).toEqual([
      [false, null, null],
      [false, null, 1],
    ]);
    expect(masks({ softcap: 30 }, { softcap: true })).toEqual([[false, null, 1]]);
    expect(masks({ softcap: 1 }, { softcap: true })).toEqual([]);
  });

  it('have plainer scales of the kinds that may be, and keep a usual one with other dimensions', () => {
    const scales = (scale: number, kinds: NonNullable<ProblemConstraints['scales']>, qkDim = 4) =>
      simpler({ ...numbered({ qkDim }), scale }, { scales: kinds })
        .filter((plain) => plain.scale !== scale && plain.sizes.qkDim === qkDim)
        .map((plain) => plain.scale);
    expect(scales(0.3, ['default'])).toEqual([0.5]);
    expect(scales(0.3, ['odd'])).toEqual([1]);
    expect(scales(0.3, ['default', 'odd', 'negative'])).toEqual([0.5, 1]);
    expect(scales(-0.3, ['negative'])).toEqual([-1, -0.5]);
    expect(scales(-0.5, ['negative'])).toEqual([-1]);
    expect(scales(0.5, ['default', 'odd'])).toEqual([]);
    expect(scales(1, ['odd'])).toEqual([]);
    expect(scales(1, ['default', 'odd'])).toEqual([0.5]);
    const ofFour = (scale: number) =>
      simpler({ ...numbered({ qkDim: 4 }), scale })
        .filter(({ sizes }) => sizes.qkDim === 1)
        .map((plain) => plain.scale);
    expect(new Set(ofFour(0.5))).toEqual(new Set([1]));
    expect(new Set(ofFour(0.3))).toEqual(new Set([0.3]));
  });

  it('are looked for from where the last was found, everything once', () => {
    const plain = { ...numbered({ keys: 3 }), causal: true };
    const resolved = resolveConstraints({});
    const all = [...simplerProblems(plain, resolved)];
    const texts = (list: typeof all) =>
      list.map(({ plain: one }) =>
        JSON.stringify([
          one.sizes,
          [...one.values.q],
          [...one.values.k],
          [...one.values.v],
          one.causal,
        ]),
      );
    for (const { resume } of all) {
      const again = texts([...simplerProblems(plain, resolved, resume)]);
      expect([...again].sort()).toEqual(texts(all).sort());
    }
    // Shapes, masks and whole tensors start the search again; single elements go on from where they are.
    const resumed = all.map(({ resume }) => resume);
    expect(resumed[0]).toEqual(searchStart);
    const last = resumed[resumed.length - 1];
    expect(last.pass).toBeGreaterThan(0);
    const [first] = texts([...simplerProblems(plain, resolved, last)]);
    const begin = resumed.findIndex(
      ({ pass, position }) => pass === last.pass && position === last.position,
    );
    expect(first).toBe(texts(all)[begin]);
  });
});
