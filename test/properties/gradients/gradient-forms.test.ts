import { describe, expect, it } from 'vitest';
import { laws, type LawId } from '../../../properties/index.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { sequencesOf, tensor } from '../../setup/problems.js';
import { apart, rowOrigins, rowTexts, variedProblem } from '../laws/try-law.js';
import { tryGradients, type Asked, type GradientTrial } from './defined-backward.js';

const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);
const small = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 4, dim: 3, vDim: 2 } as const;
const narrow = { ...small, batch: 1, heads: 2, kvHeads: 1 } as const;

/** A problem with a gradient of its output, of numbers that are all different. */
function caseOf(problem: Problem): Asked {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const dout = tensor('fp32', [batch, heads, queries, vDim], (i) => ((i * 7919) % 101) / 64 - 0.75);
  return { problem, dout };
}

const plain = caseOf(variedProblem({}, small));
const few = caseOf(variedProblem({}, narrow));
const causal = caseOf(variedProblem({ causal: true }, narrow));

/** What a law asks for, form by form; null where it says nothing. */
async function forms(
  id: LawId,
  given: Asked,
  trial: GradientTrial = {},
  choices = upTo(laws[id].choices),
) {
  const all: (readonly Asked[] | null)[] = [];
  // To the bit, where a law has that, nothing is measured.
  const strength = laws[id].strengths.some((one) => one === 'bits') ? 'bits' : 'bound';
  for (const choice of choices) {
    const { result, asked, statement } = await tryGradients(
      id,
      { ...given, choice },
      { strength, ...trial },
    );
    expect(statement, `${id} ${choice}`).toBeNull();
    all.push(result.status === 'held' ? asked : null);
  }
  return all;
}

const numbers = (of: Tensor) => [...decodeTensor(of)];
const places = (of: Tensor, among: Tensor, heads: number, rows: number) =>
  rowOrigins(of, among).map((row) => apart(row, heads, rows));

describe('another gradient of the output', () => {
  it('is the same twice, with its opposite in between', async () => {
    const [two, three] = await forms('gradients-determinism', plain);
    expect([two!.length, three!.length]).toEqual([2, 3]);
    for (const { problem, dout } of [...two!, three![0], three![2]]) {
      expect(problem).toEqual(plain.problem);
      expect(dout).toEqual(plain.dout);
      expect(dout).not.toBe(plain.dout);
    }
    expect(numbers(three![1].dout)).toEqual(numbers(plain.dout).map((x) => -x));
  });

  it('is times 2, 8 and 32 and their reciprocals by turns, and cut in two', async () => {
    const choices = [0, 1, 2, 3, 4, 6, 8, 10];
    const all = await forms('gradients-linear', few, {}, choices);
    const factors = [2, 1 / 2, 8, 1 / 8, 32, 1 / 32];
    const parts: string[] = [];
    all.forEach((form, at) => {
      const choice = choices[at];
      const [first, second, third] = form!.map(({ dout }) => numbers(dout));
      if (choice % 2 === 0) {
        expect(third).toBeUndefined();
        expect(second).toEqual(first.map((x) => x * factors[choice / 2]));
        expect(first).toEqual(numbers(few.dout));
      } else {
        expect(first).toEqual(numbers(few.dout));
        expect(second.map((x, i) => x + third[i])).toEqual(first);
        second.forEach((x, i) => expect(x * third[i]).toBe(0 * x * third[i]));
        expect(second.every((x) => x === 0) || third.every((x) => x === 0)).toBe(false);
        parts.push(second.join());
      }
    });
    expect(new Set(parts).size).toBe(2);
  });

  it('is 0, or NaN in one row', async () => {
    const [form] = await forms('gradients-of-zero', plain);
    expect(new Set(numbers(form![0].dout))).toEqual(new Set([0]));
    const rows = (await forms('gradients-nan-row', few)).map((pair) => {
      const planted = numbers(pair![1].dout);
      expect(pair![0].dout).toBe(few.dout);
      const changed = planted.flatMap((x, i) => (Object.is(x, numbers(few.dout)[i]) ? [] : [i]));
      expect(changed).toHaveLength(1);
      expect(planted[changed[0]]).toBeNaN();
      expect(changed[0] % 2).toBe(0);
      return changed[0] / 2;
    });
    expect(rows).toEqual(upTo(16).map((choice) => Math.floor((choice * 6) / 16)));
    const last = (await forms('gradients-nan-row', plain, {}, [15]))[0]!;
    expect(numbers(last[1].dout).findIndex(Number.isNaN)).toBe(2 * Math.floor((15 * 24) / 16));
  });

  it('is 0 but for the last rows, as these alone have it', async () => {
    const counts = (await forms('gradients-decode', few, {}, [0, 7, 8, 15])).map((pair) => {
      const [among, alone] = pair!;
      const { queries } = problemShape(alone.problem);
      const wanted = numbers(few.dout).map((x, i) => (Math.floor(i / 2) % 3 < 3 - queries ? 0 : x));
      expect(numbers(among.dout)).toEqual(wanted);
      expect(among.problem).toBe(few.problem);
      expect(rowTexts(alone.dout)).toEqual(
        rowTexts(few.dout).filter((_, row) => row % 3 >= 3 - queries),
      );
      expect(rowTexts(alone.problem.q)).toEqual(
        rowTexts(few.problem.q).filter((_, row) => row % 3 >= 3 - queries),
      );
      return queries;
    });
    expect([counts[0], new Set(counts)]).toEqual([1, new Set([1, 2])]);
    const single = caseOf(variedProblem({}, { ...narrow, queries: 1 }));
    expect(await forms('gradients-decode', single, {}, [0])).toEqual([null]);
    const four = caseOf(variedProblem({}, { ...narrow, queries: 4 }));
    for (const pair of await forms(
      'gradients-decode',
      four,
      { promises: { multiples: { queries: 2 } } },
      [0, 15],
    ))
      expect(problemShape(pair![1].problem).queries).toBe(2);
    expect(
      await forms('gradients-decode', four, { promises: { multiples: { queries: 4 } } }, [0]),
    ).toEqual([null]);
  });
});

describe('other values and keys', () => {
  it('are one value for all keys, each in turn', async () => {
    const two = caseOf(variedProblem({}, { ...narrow, heads: 2, kvHeads: 2, queries: 1 }));
    const keys = (await forms('gradients-of-level-values', two, {}, [0, 2, 5, 7])).map((form) => {
      const origins = places(form![0].problem.v, two.problem.v, 2, 4);
      const [[, , key]] = origins;
      expect(origins).toEqual(upTo(8).map((row) => [0, row >> 2, key]));
      expect(form![0].problem.k).toBe(two.problem.k);
      return key;
    });
    expect(keys).toEqual([0, 1, 2, 3]);
  });

  it('are one key, the last of several', async () => {
    const [form] = await forms('gradients-of-one-key', plain);
    expect(places(form![0].problem.k, plain.problem.k, 2, 4)).toEqual([
      [0, 0, 3],
      [0, 1, 3],
      [1, 0, 3],
      [1, 1, 3],
    ]);
    const single = caseOf(variedProblem({}, { ...narrow, keys: 1 }));
    expect((await forms('gradients-of-one-key', single))[0]![0].problem).toBe(single.problem);
  });

  it('are those with one vector more, about as many nats as the form says', async () => {
    for (const [choice, nats] of [
      [0, 1],
      [3, -8],
      [4, 64],
    ] as const) {
      const [pair] = await forms('gradients-key-shift', few, {}, [choice]);
      const last = pair!.map(({ problem: { q, k } }) =>
        [q, k].map((of) => new Set(numbers(of).filter((_, i) => i % 3 === 2))),
      );
      const [[[a], [zero]], [[same], [c]]] = last.map((sets) => sets.map((set) => [...set]));
      expect([zero, same, ...last.flat().map((set) => set.size)]).toEqual([0, a, 1, 1, 1, 1]);
      const ratio = (few.problem.scale * a * c) / nats;
      expect(ratio > 0.7 && ratio < 1.42).toBe(true);
    }
    const capped = caseOf(variedProblem({ softcap: 5 }, narrow));
    const { result } = await tryGradients(
      'gradients-key-shift',
      { ...capped, choice: 0 },
      { promises: { softcap: true } },
    );
    expect(result.status).toBe('inapplicable');
  });

  it('are in other orders, all, within blocks and block by block', async () => {
    const orders = (
      await forms('gradients-key-permutation', few, { promises: { blockKeys: 3 } }, upTo(6))
    ).map((pair) => places(pair![1].problem.k, few.problem.k, 1, 4).map(([, , key]) => key));
    expect(orders.slice(0, 3)).toEqual([
      [3, 2, 1, 0],
      [2, 1, 0, 3],
      [3, 0, 1, 2],
    ]);
    for (const order of orders) expect([...order].sort()).toEqual(upTo(4));
  });

  it('are NaN where no query sees them, in K and in V', async () => {
    const hidden = caseOf(variedProblem({ window: { left: 0, right: 0 } }, { ...narrow, keys: 5 }));
    for (const [choice, name] of (['k', 'v'] as const).entries()) {
      const [pair] = await forms('gradients-hidden-nan', hidden, {}, [choice]);
      const width = name === 'k' ? 3 : 2;
      const rows = new Set(
        numbers(pair![1].problem[name]).flatMap((x, i) =>
          Number.isNaN(x) ? [Math.floor(i / width)] : [],
        ),
      );
      expect(rows).toEqual(new Set([0, 1]));
      const other = name === 'k' ? 'v' : 'k';
      expect(pair![1].problem[other]).toBe(hidden.problem[other]);
    }
    expect(await forms('gradients-hidden-nan', causal, {}, [0])).toEqual([null]);
  });
});

describe('other batches and heads', () => {
  it('are in another order, those of a group in theirs', async () => {
    const orders = (await forms('gradients-heads', plain)).map((pair) => {
      const [first, second] = pair!;
      expect(first.problem).toBe(plain.problem);
      const ofQueries = places(second.problem.q, plain.problem.q, 4, 3);
      expect(rowOrigins(second.dout, plain.dout)).toEqual(
        rowOrigins(second.problem.q, plain.problem.q),
      );
      const ofKeys = places(second.problem.k, plain.problem.k, 2, 4);
      ofQueries.forEach(([b, h], row) => {
        const [newBatch, newHead] = apart(row, 4, 3);
        expect(h % 2).toBe(newHead % 2);
        expect(ofKeys[(newBatch * 2 + (newHead >> 1)) * 4].slice(0, 2)).toEqual([b, h >> 1]);
      });
      return ofQueries.filter((_, row) => row % 3 === 0).map(([b, h]) => 4 * b + h);
    });
    expect(orders[0]).toEqual([6, 7, 4, 5, 2, 3, 0, 1]);
    const single = caseOf(variedProblem({}, { ...narrow, heads: 1 }));
    expect(await forms('gradients-heads', single, {}, [0])).toEqual([null]);
  });

  it('are heads with keys of their own, which add up', async () => {
    const [pair] = await forms('gradients-grouped', plain);
    expect(pair![0].problem).toBe(plain.problem);
    expect(places(pair![1].problem.v, plain.problem.v, 2, 4)).toEqual(
      upTo(32).map((row) => [row >> 4, (row >> 3) % 2, row % 4]),
    );
    const single = caseOf(variedProblem({}, { ...narrow, kvHeads: 2 }));
    expect(await forms('gradients-grouped', single)).toEqual([null]);
  });

  it('are a batch or a sequence alone', async () => {
    const batches = (await forms('gradients-alone', plain)).map((pair) => {
      const origins = places(pair![1].problem.q, plain.problem.q, 4, 3);
      expect(rowOrigins(pair![1].dout, plain.dout)).toEqual(
        rowOrigins(pair![1].problem.q, plain.problem.q),
      );
      expect(new Set(origins.map(([b]) => b)).size).toBe(1);
      return origins[0][0];
    });
    expect(batches).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
    const sequences = sequencesOf([
      [1, 2],
      [0, 1],
      [2, 1],
    ]);
    const packed = caseOf(variedProblem({ sequences }, narrow));
    const alone = await forms('gradients-alone', packed, {
      strength: 'bits',
      promises: { features: ['packed'] },
    });
    expect(alone.map((pair) => problemShape(pair![1].problem).queries)).toEqual([
      1, 1, 1, 1, 2, 2, 2, 2,
    ]);
    expect(alone.map((pair) => problemShape(pair![1].problem).keys)).toEqual([
      2, 2, 2, 2, 1, 1, 1, 1,
    ]);
    expect(await forms('gradients-alone', few, {}, [0])).toEqual([null]);
  });
});
