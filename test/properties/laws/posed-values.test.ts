import { describe, expect, it } from 'vitest';
import {
  laws,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
} from '../../../properties/index.js';
import { describePlace } from '../../../src/audit/index.js';
import { decodeTensor, type FormatName, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { tensor } from '../../setup/problems.js';
import { apart, askedBy, definedKernel, tryLaw, variedProblem, type Trial } from './try-law.js';

const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);
const small = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 4, dim: 3, vDim: 2 } as const;
const plain = variedProblem({}, small);
const single = variedProblem({}, { ...small, batch: 1, heads: 1, kvHeads: 1 });

async function asked(
  law: LawId,
  problem: Problem,
  choice: number,
  promises: KernelPromises = {},
  kernel = definedKernel,
) {
  const { result, problems } = await askedBy(law, { problem, choice }, { promises, kernel });
  return result.status === 'held' ? problems : null;
}

/** Nothing but zeros: for laws that are asked for their problems alone. */
const zeros: AttentionKernel = (problem) => {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const shape = [batch, heads, queries];
  return { out: tensor('fp32', [...shape, vDim], () => 0), lse: tensor('fp32', shape, () => 0) };
};

/** What the kernel gives, with one element of O or the LSE changed where a problem is not the first. */
function changedLater(name: 'out' | 'lse', at: number, x: number): AttentionKernel {
  let runs = 0;
  return async (problem) => {
    const { out, lse } = await definedKernel(problem);
    if (runs++ > 0) (name === 'out' ? out : lse!).data[at] = x;
    return { out, lse };
  };
}

describe('a special value in one place', () => {
  const law = 'nan-containment';
  const { batch, heads, kvHeads, groupSize, queries, keys } = problemShape(plain);
  const names = ['q', 'k', 'v'] as const;

  /** The one element that a choice changes. */
  async function planted(problem: Problem, choice: number) {
    const [, changed] = (await asked(law, problem, choice, {}, zeros))!;
    const all = names.flatMap((name) => {
      const [a, b] = [decodeTensor(changed[name]), decodeTensor(problem[name])];
      return [...a].flatMap((x, at) => (Object.is(x, b[at]) ? [] : [{ name, at, x }]));
    });
    expect(all).toHaveLength(1);
    return all[0];
  }

  it('is NaN half of the time, ∞ and −∞, first in the first place of each tensor, then anywhere', async () => {
    const drawn = [];
    for (const choice of upTo(laws[law].choices)) drawn.push(await planted(plain, choice));
    drawn.forEach(({ name, at, x }, choice) => {
      expect(name).toBe(names[choice % 3]);
      expect(x).toBe([NaN, NaN, Infinity, -Infinity][Math.floor(choice / 3) % 4]);
      if (choice < 12) expect(at).toBe(0);
    });
    for (const [index, name] of names.entries()) {
      const places = drawn.filter((_, choice) => choice % 3 === index && choice >= 12);
      const length = plain[name].data.length;
      expect(new Set(places.map(({ at }) => at)).size).toBeGreaterThan(length / 3);
      expect(Math.max(...places.map(({ at }) => at))).toBeGreaterThan(length * 0.8);
      expect(Math.min(...places.map(({ at }) => at))).toBeLessThan(length * 0.2);
    }
    const noInfinity = variedProblem({}, { ...small, format: 'e4m3' });
    for (const choice of upTo(12)) expect((await planted(noInfinity, choice)).x).toBeNaN();
  });

  /** Whether a result may depend on a value, by definition: a change of it is a change of the result. */
  function depends(name: 'q' | 'k' | 'v', at: number, row: number, column: number | null): boolean {
    const [b, h, query] = apart(row, heads, queries);
    const width = plain[name].shape[3];
    const [place, c] = [Math.floor(at / width), at % width];
    if (name === 'q') return place === row;
    const [ofBatch, kvHead] = apart(place, kvHeads, keys);
    if (ofBatch !== b || kvHead !== Math.floor(h / groupSize)) return false;
    return name === 'k' || column === c ? query >= 0 && column !== undefined : false;
  }

  it.each([12, 13, 14, 15, 16, 17, 40, 41])(
    'of form %i changes what depends on it and nothing else',
    async (choice) => {
      const { name, at } = await planted(plain, choice);
      const rows = upTo(batch * heads * queries);
      for (const row of rows.filter((_, i) => i % 5 === choice % 5)) {
        for (const column of [null, 0, 1]) {
          const isReached =
            name === 'v' && column === null ? false : depends(name, at, row, column);
          const index = column === null ? row : row * 2 + column;
          const kernel = changedLater(column === null ? 'lse' : 'out', index, 77);
          const result = await tryLaw(law, { problem: plain, choice }, { kernel });
          if (isReached) expect(result.status).toBe('held');
          else {
            const [b, head, query] = apart(row, heads, queries);
            const ofColumn = column === null ? {} : { column };
            const where = `${column === null ? 'the LSE' : 'O'} at ${describePlace({ batch: b, head, query, ...ofColumn })} is `;
            expect(result.status === 'violated' && result.statement).toContain(where);
          }
        }
      }
    },
  );

  it('is not swallowed where special values are promised', async () => {
    const promises = { specialValues: true };
    for (const choice of upTo(12)) {
      const { name, at, x } = await planted(plain, choice);
      expect((await tryLaw(law, { problem: plain, choice }, { promises })).status).toBe('held');
      const mustShow = Number.isNaN(x) || name === 'v';
      for (const column of [null, 0, 1]) {
        if (column !== null && (name !== 'v' || column !== at)) continue;
        if (name === 'v' && column === null) continue;
        const kernel = changedLater(column === null ? 'lse' : 'out', column ?? 0, 0.5);
        const swallowed = await tryLaw(law, { problem: plain, choice }, { promises, kernel });
        const text = swallowed.status === 'violated' ? swallowed.statement : '';
        expect(/ is 0.5, finite with /.test(text)).toBe(mustShow);
        const unasked = await tryLaw(law, { problem: plain, choice }, { kernel });
        expect(unasked.status).toBe('held');
      }
    }
  });

  it('says nothing where all results depend on it, unless they must show it', async () => {
    const alone = variedProblem({}, { ...small, batch: 1, heads: 1, kvHeads: 1, queries: 1 });
    expect((await tryLaw(law, { problem: alone, choice: 1 })).status).toBe('inapplicable');
    const promises = { specialValues: true };
    expect((await tryLaw(law, { problem: alone, choice: 1 }, { promises })).status).toBe('held');
    expect((await tryLaw(law, { problem: alone, choice: 7 }, { promises })).status).toBe(
      'inapplicable',
    );
  });
});

describe('V times a power of two', () => {
  const law = 'value-scaling';
  const exponents = [1, -1, 2, -2, 3, -3, 5, -5, 9, -9, 20, -20];

  it('has every factor in turn, each element with it', async () => {
    expect(laws[law].choices).toBe(exponents.length);
    for (const [choice, exponent] of exponents.entries()) {
      const [first, second] = (await asked(law, plain, choice, {}, zeros))!;
      expect(decodeTensor(first.v)).toEqual(decodeTensor(plain.v));
      expect(decodeTensor(second.v)).toEqual(decodeTensor(plain.v).map((x) => x * 2 ** exponent));
      expect([first.q, first.k, second.q, second.k]).toEqual([plain.q, plain.k, plain.q, plain.k]);
    }
  });

  /** Which elements of V are left, of some in a format. */
  async function left(format: FormatName, values: readonly number[], choice: number) {
    const frame = { batch: 1, heads: 1, kvHeads: 1, queries: 1, keys: values.length, vDim: 1 };
    const v = tensor(format, [1, 1, values.length, 1], (i) => values[i]);
    const problem = variedProblem({ v }, { ...frame, format });
    const { problems } = await askedBy(law, { problem, choice });
    return [...decodeTensor(problems[0].v)].map((x) => x !== 0);
  }

  it('leaves out what the factor takes out of the format, or beyond 2^90', async () => {
    // Normal numbers of fp16: 2^-14 to 65504.
    const ends = [2 ** -14, 2 ** -13, 2 ** -15, 32752, 32768, 65504, 1];
    expect(await left('fp16', ends, 0)).toEqual([true, true, false, true, false, false, true]);
    expect(await left('fp16', ends, 1)).toEqual([false, true, false, true, true, true, true]);
    expect(await left('fp32', [2 ** 89, 2 ** 90, 2 ** 91, NaN, Infinity], 0)).toEqual([
      true,
      false,
      false,
      false,
      false,
    ]);
    expect(await left('fp32', [2 ** 89, 2 ** 90, 2 ** 91], 1)).toEqual([true, true, false]);
  });
});

describe('empty rows', () => {
  const law = 'empty-rows';
  const empty = variedProblem({ causal: true }, { ...small, queries: 4, keys: 2 });
  const wrongAt = (name: 'out' | 'lse', at: number, x: number): Trial => ({
    kernel: async (posed) => {
      const { out, lse } = await definedKernel(posed);
      (name === 'out' ? out : lse!).data[at] = x;
      return { out, lse };
    },
  });

  it.each([0, 5, 12])('must be 0 and −∞, in row %i too', async (first) => {
    // Rows 0 and 1 of each head of four see no key.
    for (const [name, x, words] of [
      ['out', 2 ** -20, 'O at'],
      ['out', NaN, 'O at'],
      ['lse', 0, 'the LSE at'],
      ['lse', NaN, 'the LSE at'],
      ['lse', Infinity, 'the LSE at'],
    ] as const) {
      const at = name === 'out' ? first * 2 + 1 : first;
      const found = await tryLaw(law, { problem: empty, choice: 0 }, wrongAt(name, at, x));
      const [batch, head, query] = apart(first, 4, 4);
      const place = { batch, head, query, ...(name === 'out' ? { column: 1 } : {}) };
      const text = found.status === 'violated' ? found.statement : '';
      expect(text).toContain(`${words} ${describePlace(place)} is ${x}, not `);
    }
  });

  it('are made with fewer keys and a mask where there are none, as many as there may be', async () => {
    const counts = [];
    for (const choice of upTo(16)) {
      const asks = (await asked(law, single, choice, { laws: { [law]: 'bits' } }))!;
      const [made, alone] = [asks[0], asks[asks.length - 1]];
      const shape = problemShape(made);
      expect([made.causal, made.window]).toEqual([true, null]);
      // The rows that see a key, without the others.
      expect(problemShape(alone).queries).toBe(shape.keys);
      counts.push(shape.keys);
    }
    expect(new Set(counts)).toEqual(new Set([1, 2]));
    const windows = (await asked(law, single, 0, { causal: false }))![0];
    expect([windows.causal, windows.window]).toEqual([false, { left: -1, right: 0 }]);
    expect(await asked(law, variedProblem({}, { ...small, queries: 1 }), 0)).toBeNull();
    expect(
      await asked(law, plain, 0, { causal: false, window: false, features: ['mask'] }),
    ).toBeNull();
    expect((await asked(law, empty, 0))![0]).toBe(empty);
  });
});

describe('masks said in two ways', () => {
  const law = 'causal-is-window';

  it('are a causal one and a window, none of the last query, and none as wide as all', async () => {
    const windowed = variedProblem({ window: { left: 2, right: 1 } }, small);
    const pairs = [];
    for (const [problem, choice] of [
      [plain, 0],
      [windowed, 0],
      [windowed, 1],
      [windowed, 2],
    ] as const) {
      const { problems } = await askedBy(law, { problem, choice }, { strength: 'bits' });
      pairs.push(
        problems.map(({ causal, window, ...posed }) => [
          causal,
          window,
          problemShape({ causal, window, ...posed }).queries,
        ]),
      );
      const [first, second] = problems.map((posed) => definedAttention(posed).visible);
      expect(first).toEqual(second);
    }
    expect(pairs).toEqual([
      [
        [true, null, 3],
        [false, { left: -1, right: 0 }, 3],
      ],
      [
        [true, { left: 2, right: 1 }, 3],
        [false, { left: 2, right: 0 }, 3],
      ],
      [
        [false, null, 1],
        [true, null, 1],
      ],
      [
        [false, null, 3],
        [false, { left: 3, right: 2 }, 3],
      ],
    ]);
  });
});

describe('scores that are shifted', () => {
  const law = 'score-shift';

  it('are so by the last columns of Q and K, which are powers of two, by about what the form says', async () => {
    const nats = [1, -1, 8, -8, 64, -64, 512, -512];
    for (const [choice, wanted] of nats.entries()) {
      const [shifted] = (await asked(law, single, choice))!;
      const last = (of: Tensor) => new Set([...decodeTensor(of)].filter((_, i) => i % 3 === 2));
      const [[a, ...more], [c, ...others]] = [[...last(shifted.q)], [...last(shifted.k)]];
      expect([...more, ...others]).toEqual([]);
      for (const x of [a, Math.abs(c)]) expect(Math.log2(x) % 1).toBe(0);
      const ratio = (single.scale * a * c) / wanted;
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.42);
      expect(Math.abs(Math.log2(a) - Math.log2(Math.abs(c)))).toBeLessThanOrEqual(1);
      for (const name of ['q', 'k'] as const)
        decodeTensor(shifted[name]).forEach((x, i) => {
          if (i % 3 < 2) expect(x).toBe(decodeTensor(single[name])[i]);
        });
    }
    const capped = variedProblem({ softcap: 2 }, small);
    expect(await asked(law, capped, 0, { softcap: true })).toBeNull();
  });

  it('shift the LSE by as much', async () => {
    const kernel =
      (change: number): AttentionKernel =>
      async (problem) => {
        const { out, lse } = await definedKernel(problem);
        return {
          out,
          lse: { ...lse!, data: Float32Array.from(decodeTensor(lse!), (x) => x + change) },
        };
      };
    for (const choice of [0, 1, 4]) {
      const trial = (change: number) =>
        tryLaw(law, { problem: single, choice }, { kernel: kernel(change) });
      expect((await trial(0)).status).toBe('held');
      for (const change of [0.001, -0.001]) expect((await trial(change)).status).toBe('violated');
    }
  });
});
