import { describe, expect, it } from 'vitest';
import { laws, type KernelPromises, type LawId } from '../../../properties/index.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { askedBy, definedKernel, rowOrigins, rowTexts, tryLaw, variedProblem } from './try-law.js';

const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);
const ascending = (numbers: Iterable<number>) => [...new Set(numbers)].sort((a, b) => a - b);

/** One group of two heads. */
const narrow = { batch: 1, heads: 2, kvHeads: 1, queries: 4, keys: 6 } as const;
const plain = variedProblem({}, narrow);
/** One row, of laws that an audit judges. */
const single = variedProblem({}, { ...narrow, heads: 1, queries: 1 });
const { queries, keys } = problemShape(plain);

/** What a law asks of the kernel, of forms that it says something of; null else. */
async function posed(
  law: LawId,
  problem: Problem,
  choice: number,
  promises: KernelPromises = {},
): Promise<readonly Problem[] | null> {
  const { result, problems } = await askedBy(law, { problem, choice }, { promises });
  if (result.status === 'violated') expect.fail(`${law} ${choice}: ${result.statement}`);
  return result.status === 'held' ? problems : null;
}

/** The keys of the first kv head of a posed problem, in numbers of the given one; K and V go together. */
function keysOf(problem: Problem, given: Problem): number[] {
  const ofKeys = rowOrigins(problem.k, given.k);
  expect(rowOrigins(problem.v, given.v)).toEqual(ofKeys);
  return ofKeys.slice(0, problemShape(problem).keys);
}

describe('keys in another order', () => {
  it('are permuted altogether, within blocks, and block by block', async () => {
    const orders: number[][][] = [[], [], []];
    for (const choice of upTo(12)) {
      const [permuted] = (await posed('key-permutation', single, choice, { blockKeys: 4 }))!;
      orders[choice % 3].push(keysOf(permuted, single));
    }
    expect(orders.map(([first]) => first)).toEqual([
      [5, 4, 3, 2, 1, 0],
      [3, 2, 1, 0, 5, 4],
      [4, 5, 0, 1, 2, 3],
    ]);
    for (const all of orders) for (const order of all) expect(ascending(order)).toEqual(upTo(keys));
    for (const order of orders[1]) expect(order.map((key) => key >> 2)).toEqual([0, 0, 0, 0, 1, 1]);
    expect(new Set(orders[0].map(String)).size).toBeGreaterThan(2);
  });

  it('say nothing of masks that go by places', async () => {
    for (const law of [
      'key-permutation',
      'repeated-keys',
      'key-splitting',
      'gradients-key-permutation',
    ] as const)
      for (const mask of [{ causal: true }, { window: { left: 3, right: 3 } }]) {
        const dout = plain.q;
        const problem = variedProblem(mask, narrow);
        const result = await tryLaw(law, { problem, dout, choice: 0 });
        expect(result).toEqual({ status: 'inapplicable', reason: 'the problem has a mask' });
      }
  });
});

it('keys are repeated twice and three times, side by side and one after the other', async () => {
  const orders = [];
  for (const choice of upTo(4))
    orders.push(keysOf((await posed('repeated-keys', single, choice))![0], single));
  const all = upTo(keys);
  expect(orders).toEqual([
    [...all, ...all],
    all.flatMap((key) => [key, key]),
    [...all, ...all, ...all],
    all.flatMap((key) => [key, key, key]),
  ]);
});

describe('keys cut in parts', () => {
  it('are two or three, one behind the other, none empty, at many places', async () => {
    const ends = new Set<number>();
    for (const choice of upTo(laws['key-splitting'].choices)) {
      const [whole, ...parts] = (await posed('key-splitting', single, choice))!;
      expect(whole).toBe(single);
      expect(parts).toHaveLength(2 + (choice % 2));
      expect(parts.flatMap((part) => keysOf(part, single))).toEqual(upTo(keys));
      const lengths = parts.map((part) => problemShape(part).keys);
      expect(Math.min(...lengths)).toBeGreaterThan(0);
      if (parts.length === 2) ends.add(lengths[0]);
      // What is left is halved.
      else expect(lengths[1]).toBe(Math.max(1, (keys - lengths[0]) >> 1));
    }
    expect(ascending(ends)).toEqual(upTo(keys - 1, 1));
  });

  it('are multiples where these are promised, and are not made of two keys', async () => {
    const promises = { multiples: { keys: 2 } };
    for (const choice of [0, 1, 22, 23]) {
      const [, ...parts] = (await posed('key-splitting', single, choice, promises))!;
      for (const part of parts) expect(problemShape(part).keys % 2).toBe(0);
    }
    expect(
      await posed('key-splitting', variedProblem({}, { ...narrow, heads: 1, keys: 2 }), 0),
    ).toBeNull();
    expect(
      await posed('key-splitting', variedProblem({}, { ...narrow, keys: 3 }), 1),
    ).not.toBeNull();
    expect(await posed('key-splitting', single, 0, { multiples: { keys: 3 } })).toBeNull();
  });
});

it('the LSE is compared with that of the first keys, as many ninths as the form says and one more', async () => {
  const nine = variedProblem({}, { ...narrow, keys: 9 });
  for (const choice of upTo(laws['lse-monotone'].choices)) {
    const [whole, fewer] = (await posed('lse-monotone', nine, choice))!;
    expect(whole).toBe(nine);
    expect(keysOf(fewer, nine)).toEqual(upTo(choice + 1));
  }
  const aligned = (await posed('lse-monotone', variedProblem({}, { ...narrow, keys: 8 }), 0, {
    multiples: { keys: 4 },
  }))!;
  expect(problemShape(aligned[1]).keys).toBe(4);
  expect(await posed('lse-monotone', variedProblem({}, { ...narrow, keys: 1 }), 3)).toHaveLength(1);
  expect(await posed('lse-monotone', variedProblem({ causal: true }, narrow), 0)).toHaveLength(1);
  expect(
    await posed('lse-monotone', variedProblem({ window: { left: 4, right: 4 } }, narrow), 0),
  ).toHaveLength(1);
});

describe('hidden keys', () => {
  const windowed = variedProblem({ window: { left: 1, right: 1 } }, { ...narrow, keys: 4 });
  const { visible } = definedAttention(windowed);
  const hiddenOf = (query: number) => upTo(4).filter((key) => !visible[query].includes(key));
  /** Which rows of a tensor of one head are others than before. */
  const changedRows = (now: Tensor, before: Tensor) => {
    const [a, b] = [rowTexts(now), rowTexts(before)];
    return upTo(a.length).filter((row) => a[row] !== b[row]);
  };

  it('have other numbers, usual ones and huge ones by turns, for every query', async () => {
    const asked: number[][] = [];
    for (const choice of upTo(laws['masked-keys'].choices)) {
      const [, other] = (await posed('masked-keys', windowed, choice))!;
      const query = Math.floor((choice * queries) / 32);
      const hidden = hiddenOf(query);
      asked.push(hidden);
      expect(other.q).toBe(windowed.q);
      for (const name of ['k', 'v'] as const) {
        expect(changedRows(other[name], windowed[name])).toEqual(hidden);
        const width = other[name].shape[3];
        const values = decodeTensor(other[name]).filter((_, i) =>
          hidden.includes(Math.floor(i / width)),
        );
        for (const x of values)
          if (choice % 2 === 0) expect(Math.abs(x)).toBeLessThan(6);
          else expect(Math.abs(x)).toBeGreaterThan(2 ** 90);
        for (const x of values) expect(Math.abs(x)).toBeLessThanOrEqual(2 ** 100);
        if (choice % 2 === 1) expect(new Set(values.map(Math.sign)).size).toBeGreaterThan(0);
      }
    }
    expect(new Set(asked.map(String)).size).toBe(4);
  });

  it.each([
    ['masked-nan-keys', 'k', 'v'],
    ['masked-nan-values', 'v', 'k'],
  ] as const)('of %s are NaN, ∞ and −∞ in %s alone', async (law, name, other) => {
    for (const choice of upTo(9)) {
      const promises = { laws: { [law]: 'bits' } } as const;
      const [, changed] = (await posed(law, windowed, choice, promises))!;
      const hidden = hiddenOf(Math.floor((choice * queries) / 32));
      expect(changedRows(changed[name], windowed[name])).toEqual(hidden);
      expect(changed[other]).toBe(windowed[other]);
      const [width] = changed[name].shape.slice(-1);
      const planted = decodeTensor(changed[name])[hidden[0] * width];
      expect(planted).toBe([NaN, Infinity, -Infinity][choice % 3]);
    }
  });

  it('are none where the query sees every key', async () => {
    const law = 'masked-keys';
    const inOneHead = {
      mask: { shape: [2, 1, 6], data: Uint8Array.of(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0) },
    };
    const promises = { features: ['mask'] } as const;
    expect(await posed(law, plain, 0)).toBeNull();
    // Keys that one head alone hides are seen by the query.
    expect(await posed(law, variedProblem(inOneHead, narrow), 0, promises)).toBeNull();
  });

  it('do harm in the rows that see none of them, and in no other', async () => {
    // Of query 0 keys 2 and 3 are hidden; rows 1 to 3 see them.
    const spoil = (row: number) => {
      let runs = 0;
      return tryLaw(
        'masked-keys',
        { problem: windowed, choice: 0 },
        {
          kernel: async (problem) => {
            const { out, lse } = await definedKernel(problem);
            if (runs++ === 1) out.data.fill(9, row * 2, row * 2 + 1);
            return { out, lse };
          },
        },
      );
    };
    expect(visible.slice(0, 4).map((list) => list.some((key) => key >= 2))).toEqual([
      false,
      true,
      true,
      true,
    ]);
    expect((await spoil(0)).status).toBe('violated');
    for (const row of [1, 2, 3, 5]) expect((await spoil(row)).status).toBe('held');
    expect((await spoil(4)).status).toBe('violated');
  });
});
