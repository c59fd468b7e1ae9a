import { describe, expect, it } from 'vitest';
import { laws, type KernelPromises, type LawId } from '../../../properties/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { apart, askedBy, rowOrigins, rowTexts, variedProblem } from './try-law.js';

const plain = variedProblem();
const causal = variedProblem({ causal: true });
const { batch, heads, kvHeads, groupSize, queries, keys } = problemShape(plain);
/** One group of two heads. */
const narrow = { batch: 1, heads: 2, kvHeads: 1 } as const;
const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);
const ascending = (numbers: Iterable<number>) => [...new Set(numbers)].sort((a, b) => a - b);

/** What a law asks of the kernel to the last bit, form by form; null where it says nothing. */
async function forms(
  law: LawId,
  problem: Problem,
  promises: KernelPromises = {},
  count = laws[law].choices,
) {
  const all: (readonly Problem[] | null)[] = [];
  for (let choice = 0; choice < count; choice++) {
    const { result, problems } = await askedBy(
      law,
      { problem, choice },
      { strength: 'bits', promises },
    );
    if (result.status !== 'held' && result.status !== 'inapplicable')
      expect.fail(`${law} ${choice}: ${JSON.stringify(result)}`);
    all.push(result.status === 'held' ? problems : null);
  }
  return all;
}

/** For each row of Q of a posed problem its batch, head and query in the given one. */
const queryOrigins = (posed: Problem, given: Problem) => {
  const shape = problemShape(given);
  return rowOrigins(posed.q, given.q).map((row) => apart(row, shape.heads, shape.queries));
};

/** The same of K, and that V goes with it. */
const keyOrigins = (posed: Problem, given: Problem) => {
  const shape = problemShape(given);
  const ofKeys = rowOrigins(posed.k, given.k);
  expect(rowOrigins(posed.v, given.v)).toEqual(ofKeys);
  return ofKeys.map((row) => apart(row, shape.kvHeads, shape.keys));
};

describe('heads in another order', () => {
  it('are permuted with their kv heads, all backwards at first', async () => {
    const orders = (await forms('heads-independent', plain)).map((problems) => {
      const [first, second] = problems ?? [];
      expect(rowTexts(first.q)).toEqual(rowTexts(plain.q));
      const ofQueries = queryOrigins(second, plain);
      const ofKeys = keyOrigins(second, plain);
      expect(new Set(ofQueries.map(String)).size).toBe(batch * heads * queries);
      expect(new Set(ofKeys.map(String)).size).toBe(batch * kvHeads * keys);
      ofQueries.forEach(([b, h, query], row) => {
        const [newBatch, newHead, newQuery] = apart(row, heads, queries);
        expect(query).toBe(newQuery);
        const [ofBatch, ofHead, key] =
          ofKeys[(newBatch * kvHeads + Math.floor(newHead / groupSize)) * keys];
        expect([ofBatch, ofHead, key]).toEqual([b, Math.floor(h / groupSize), 0]);
      });
      return ofQueries.filter(([, , query]) => query === 0).map(([b, h]) => b * heads + h);
    });
    expect(orders[0]).toEqual(upTo(batch * heads).reverse());
    expect(new Set(orders.map(String)).size).toBeGreaterThan(1);
  });

  it('say nothing of one head', async () => {
    const single = variedProblem({}, { ...narrow, heads: 1 });
    const twice = variedProblem({}, { ...narrow, batch: 2, heads: 1 });
    expect((await forms('heads-independent', single)).every((form) => form === null)).toBe(true);
    expect((await forms('heads-independent', twice)).every((form) => form !== null)).toBe(true);
  });
});

describe('queries in another order', () => {
  it('are permuted in every head alike, backwards at first', async () => {
    const orders = (await forms('query-order', plain)).map((problems) => {
      const [, second] = problems ?? [];
      expect(rowTexts(second.k)).toEqual(rowTexts(plain.k));
      const origins = queryOrigins(second, plain);
      const order = origins.slice(0, queries).map(([, , query]) => query);
      expect(ascending(order)).toEqual(upTo(queries));
      origins.forEach(([b, h, query], row) => {
        const [newBatch, newHead, newQuery] = apart(row, heads, queries);
        expect([b, h, query]).toEqual([newBatch, newHead, order[newQuery]]);
      });
      return order;
    });
    expect(orders[0]).toEqual(upTo(queries).reverse());
    expect(new Set(orders.map(String)).size).toBeGreaterThan(8);
    expect((await forms('query-order', variedProblem({}, { queries: 1 }), {}, 1))[0]).toBeNull();
    expect(
      (await forms('query-order', variedProblem({}, { queries: 2 }), {}, 1))[0],
    ).not.toBeNull();
  });

  it('and keys stand between two runs of one problem', async () => {
    const [two, three] = await forms('determinism', causal);
    expect(two).toHaveLength(2);
    expect(three).toHaveLength(3);
    for (const same of [...two!, three![0], three![2]]) {
      expect(same).toEqual(causal);
      expect(same.q.data).not.toBe(causal.q.data);
    }
    const between = three![1];
    expect(
      queryOrigins(between, causal)
        .map(([, , query]) => query)
        .slice(0, queries),
    ).toEqual(upTo(queries).reverse());
    expect(
      keyOrigins(between, causal)
        .map(([, , key]) => key)
        .slice(0, keys),
    ).toEqual(upTo(keys).reverse());
    expect(between.causal).toBe(true);
  });
});

describe('rows computed alone', () => {
  it('are any number of the last ones, or one with the keys up to its diagonal', async () => {
    const all = await forms('decode-equals-prefill', causal);
    const counts: number[] = [];
    const rows: number[] = [];
    all.forEach((problems, choice) => {
      const [first, second] = problems ?? [];
      expect(first).toBe(causal);
      const shape = problemShape(second);
      const origins = queryOrigins(second, causal).slice(0, shape.queries);
      if (choice % 2 === 0) {
        expect(origins.map(([, , query]) => query)).toEqual(
          upTo(shape.queries, queries - shape.queries),
        );
        expect(shape.keys).toBe(keys);
        counts.push(shape.queries);
      } else {
        expect(shape.queries).toBe(1);
        const [, , query] = origins[0];
        expect(
          keyOrigins(second, causal)
            .slice(0, shape.keys)
            .map(([, , key]) => key),
        ).toEqual(upTo(query + keys - queries + 1));
        rows.push(query);
      }
      expect(second.causal).toBe(true);
    });
    expect(counts[0]).toBe(1);
    expect(ascending(counts)).toEqual(upTo(queries - 1, 1));
    expect(ascending(rows)).toEqual(upTo(queries));
  });

  it('are none of one row, none that sees no key, and no row alone without a causal mask', async () => {
    const isTried = async (problem: Problem) => {
      const all = await forms('decode-equals-prefill', problem, {}, 4);
      return [0, 1].map((odd) => all.some((form, choice) => choice % 2 === odd && form !== null));
    };
    expect(await isTried(variedProblem({}, { queries: 1 }))).toEqual([false, false]);
    expect(await isTried(variedProblem({ causal: true }, { queries: 1 }))).toEqual([false, false]);
    expect(await isTried(plain)).toEqual([true, false]);
    // More queries than keys: the first ones see none.
    const empty = variedProblem({ causal: true }, { ...narrow, queries: 4, keys: 2 });
    const alone = (await forms('decode-equals-prefill', empty)).filter((_, i) => i % 2 === 1);
    expect(alone.map((form) => form !== null)).toEqual(upTo(16).map((i) => i >= 8));
  });

  it('come in multiples', async () => {
    const six = variedProblem({}, { ...narrow, queries: 6 });
    const promises = { multiples: { queries: 2 } };
    const all = (await forms('decode-equals-prefill', six, promises)).filter((_, i) => i % 2 === 0);
    expect(ascending(all.map((form) => problemShape(form![1]).queries))).toEqual([2, 4]);
    const two = variedProblem({}, { queries: 2 });
    expect((await forms('decode-equals-prefill', two, promises))[0]).toBeNull();
  });
});

describe('queries and keys that no row sees', () => {
  /** That the last rows of a problem see what rows of the other see, in numbers of its keys. */
  function expectSameKeys(posed: Problem, given: Problem, rows: number) {
    const [now, before] = [definedAttention(posed), definedAttention(given)];
    const keysBefore = rowTexts(given.k);
    const [after, old] = [problemShape(posed), problemShape(given)];
    const kvOf = (row: number, { queries: own }: typeof after) =>
      Math.floor(Math.floor(row / own) / groupSize);
    const texts = rowTexts(posed.k);
    queryOrigins(posed, given).forEach(([b, h, query], row) => {
      if (row % after.queries < after.queries - rows) return;
      const origin = (b * old.heads + h) * old.queries + query;
      expect(now.visible[row].map((key) => texts[kvOf(row, after) * after.keys + key])).toEqual(
        before.visible[origin].map((key) => keysBefore[kvOf(origin, old) * old.keys + key]),
      );
    });
  }

  it('are cut off at the end, as many of both', async () => {
    const all = (await forms('padding', causal)).filter((_, choice) => choice % 2 === 0);
    const counts = all.map((form) => {
      const shape = problemShape(form![1]);
      expect(keys - shape.keys).toBe(queries - shape.queries);
      expectSameKeys(form![1], causal, shape.queries);
      return keys - shape.keys;
    });
    expect(counts[0]).toBe(1);
    expect(ascending(counts)).toEqual(upTo(queries - 1, 1));
    const multiples = { queries: 2, keys: 4 };
    const units = (
      await forms('padding', variedProblem({ causal: true }, { ...narrow, queries: 8, keys: 12 }), {
        multiples,
      })
    ).filter((_, choice) => choice % 2 === 0);
    expect(ascending(units.map((form) => 12 - problemShape(form![1]).keys))).toEqual([4]);
  });

  it('are cut off under a window that ends at the diagonal too, and under no other', async () => {
    const isCut = async (changes: Partial<Problem>, frame = {}) =>
      (await forms('padding', variedProblem(changes, { ...narrow, ...frame }), {}, 1))[0] !== null;
    expect(await isCut({ window: { left: -1, right: 0 } })).toBe(true);
    expect(await isCut({ window: { left: 1, right: 1 } })).toBe(false);
    expect(await isCut({})).toBe(false);
    expect(await isCut({ causal: true }, { queries: 1 })).toBe(false);
    expect(await isCut({ causal: true }, { keys: 1 })).toBe(false);
    expect(await isCut({ causal: true }, { queries: 2, keys: 2 })).toBe(true);
  });

  it('are put in front of a window, whole blocks of keys and some queries for bits', async () => {
    const windowed = variedProblem({ window: { left: 3, right: 1 } }, narrow);
    const all = await forms('padding', windowed, { blockKeys: 4 });
    const left = 3;
    // Rows before see the first key or would see one before it.
    const kept = queries - Math.max(0, left - (keys - queries));
    const added = all.flatMap((form, choice) => {
      if (choice % 2 === 0) return [];
      const [, second] = form!;
      const shape = problemShape(second);
      expectSameKeys(second, windowed, kept);
      expect((shape.keys - keys) % 4).toBe(0);
      return [[shape.queries - kept, (shape.keys - keys) / 4] as const];
    });
    expect(new Set(added.map(([, blocks]) => blocks))).toEqual(new Set([1, 2]));
    expect(added.map(([count]) => count)).toEqual([0, 1, 0, 5, 0, 127, 0, 128]);
    const isPut = async (left: number, right: number) =>
      (await forms('padding', variedProblem({ window: { left, right } }, narrow), {}, 2))[1] !==
      null;
    expect(await isPut(keys, -1)).toBe(false);
    expect(await isPut(keys - 1, -1)).toBe(true);
    expect(await isPut(0, -1)).toBe(true);
    expect(await isPut(-1, 2)).toBe(false);
  });
});

it('K and V are given to every query head of a group', async () => {
  const [form] = await forms('grouped-heads', plain);
  const [apartHeads, grouped] = form!;
  expect(grouped).toBe(plain);
  expect(problemShape(apartHeads)).toMatchObject({ kvHeads: heads, groupSize: 1 });
  keyOrigins(apartHeads, plain).forEach(([b, kvHead, key], row) => {
    const [newBatch, head, newKey] = apart(row, heads, keys);
    expect([b, kvHead, key]).toEqual([newBatch, Math.floor(head / groupSize), newKey]);
  });
  expect((await forms('grouped-heads', variedProblem({}, { kvHeads: 4 })))[0]).toBeNull();
});
