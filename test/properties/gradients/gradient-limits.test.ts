import { describe, expect, it } from 'vitest';
import { laws, type KernelPromises, type LawId } from '../../../properties/index.js';
import { describePlace } from '../../../src/audit/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';
import { apart, rowOrigins, variedProblem } from '../laws/try-law.js';
import { boundsOf, tryGradients, type Asked, type Gradients } from './defined-backward.js';

const sizes = { batch: 2, heads: 2, kvHeads: 1, queries: 2, keys: 3, dim: 2, vDim: 2 } as const;

function caseOf(problem: Problem): Asked {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const dout = tensor('fp32', [batch, heads, queries, vDim], (i) => ((i * 7919) % 101) / 64 - 0.75);
  return { problem, dout };
}

const plain = caseOf(variedProblem({}, sizes));
const hidden = caseOf(variedProblem({ window: { left: 0, right: 0 } }, { ...sizes, keys: 4 }));

type Name = keyof Gradients;

/** An element of one gradient of a run that a law compares, and by what it may differ. */
interface Limit {
  readonly law: LawId;
  readonly given?: Asked;
  readonly choice?: number;
  readonly name: Name;
  /** Of the element of the run that is changed. */
  readonly index: number;
  /** The run that is changed; default the last. */
  readonly run?: number;
  readonly promises?: KernelPromises;
  /** By the bounds of the runs, and where a row of the last run stands in the first. */
  readonly limit: (bounds: readonly Gradients[], before: (index: number) => number) => number;
}

/** The sum of both runs' bounds. */
const ofBoth =
  (name: Name, index: number): Limit['limit'] =>
  ([first, second], before) =>
    first[name][before(index)] + second[name][index];

const limits: readonly Limit[] = [
  { law: 'gradients-heads', name: 'dq', index: 7, limit: ofBoth('dq', 7) },
  { law: 'gradients-key-shift', choice: 2, name: 'dv', index: 9, limit: ofBoth('dv', 9) },
  { law: 'gradients-decode', choice: 9, name: 'dq', index: 2, limit: ofBoth('dq', 2) },
  {
    law: 'gradients-linear',
    choice: 4,
    name: 'dq',
    index: 8,
    limit: ([a, b]) => 8 * a.dq[8] + b.dq[8],
  },
  {
    law: 'gradients-linear',
    choice: 1,
    name: 'dk',
    index: 2,
    run: 0,
    limit: ([a, b, c]) => a.dk[2] + b.dk[2] + c.dk[2],
  },
  { law: 'gradients-of-level-values', choice: 3, name: 'dq', index: 11, limit: ([a]) => a.dq[11] },
  { law: 'gradients-hidden-nan', given: hidden, name: 'dq', index: 5, limit: ([a]) => 2 * a.dq[5] },
  // Heads with keys of their own have 3 keys of 2 columns, those of the second batch behind those of the first.
  {
    law: 'gradients-grouped',
    name: 'dv',
    index: 9,
    run: 0,
    limit: ([a, b]) => a.dv[9] + b.dv[15] + b.dv[21],
  },
];

/** Columns of every gradient. */
const width = 2;

describe.each(limits)('$law of form $choice: $name', (one) => {
  const { law, given = plain, choice = 0, name, index, promises } = one;
  const trial = { promises, strength: 'bound' } as const;

  it('holds within the bounds of the runs, and just beyond them it does not', async () => {
    // To the bit, where a law has that, the runs are the same and nothing is measured.
    const isOfBits = laws[law].strengths.some((strength) => strength === 'bits');
    const probe = isOfBits ? ({ promises, strength: 'bits' } as const) : trial;
    const { asked } = await tryGradients(law, { ...given, choice }, probe);
    const run = one.run ?? asked.length - 1;
    const [first, last] = [asked[0].problem, asked[run].problem];
    const of = name === 'dq' ? 'q' : 'k';
    const origins =
      first === last || law === 'gradients-key-shift' ? null : rowOrigins(last[of], first[of]);
    const before = (at: number) =>
      origins === null ? at : origins[Math.floor(at / width)] * width + (at % width);
    // What stands at hidden keys changes no bound.
    const bounds = asked.map((posed) => boundsOf(posed));
    const limit = one.limit(bounds, before);
    expect(limit).toBeGreaterThan(0);
    const moved = (factor: number) =>
      tryGradients(
        law,
        { ...given, choice },
        {
          ...trial,
          change: (gradients, at) => {
            if (at === run) gradients[name][index] += factor * limit;
          },
        },
      );
    const sign = index % 2 === 0 ? 1 : -1;
    expect((await moved(0.99 * sign)).statement).toBeNull();
    const { statement } = await moved(1.01 * sign);
    const { heads, kvHeads, queries, keys } = problemShape(last);
    const [batch, head, row] = apart(
      Math.floor(index / width),
      name === 'dq' ? heads : kvHeads,
      name === 'dq' ? queries : keys,
    );
    const place = {
      batch,
      head,
      column: index % width,
      ...(name === 'dq' ? { query: row } : { key: row }),
    };
    expect(statement).toContain(`d${name[1].toUpperCase()} at ${describePlace(place)} is `);
  });
});

describe('to the last bit', () => {
  /** Whether a change of one element of the last run violates a law. */
  async function isSeen(
    law: LawId,
    given: Asked,
    choice: number,
    name: Name,
    index: number,
    promises: KernelPromises = {},
  ) {
    const right = await tryGradients(law, { ...given, choice }, { strength: 'bits', promises });
    expect(right.statement).toBeNull();
    const { statement } = await tryGradients(
      law,
      { ...given, choice },
      {
        strength: 'bits',
        promises,
        change: (gradients, run) => {
          if (run === right.asked.length - 1) gradients[name][index] += 2 ** -40;
        },
      },
    );
    return statement !== null;
  }
  const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

  it('a NaN in a row of dO says nothing of the dQ of its row and of its kv head, and something of all else', async () => {
    // Row 1 of the first head of the first batch.
    const rows = (name: Name, count: number) =>
      Promise.all(
        upTo(count).map((row) => isSeen('gradients-nan-row', plain, 3, name, row * width)),
      );
    expect(await rows('dq', 8)).toEqual(upTo(8).map((row) => row !== 1));
    expect(await rows('dk', 6)).toEqual(upTo(6).map((row) => row >= 3));
    expect(await rows('dv', 6)).toEqual(upTo(6).map((row) => row >= 3));
  });

  it('keys that no query sees, and queries without keys, have zeros', async () => {
    const law = 'gradients-of-unseen';
    // Of two queries and five keys with window [0, 0] the last two keys are seen.
    const two = caseOf(
      variedProblem({ window: { left: 0, right: 0 } }, { ...sizes, queries: 2, keys: 5 }),
    );
    const keys = await Promise.all(upTo(10).map((row) => isSeen(law, two, 0, 'dk', row * width)));
    expect(keys).toEqual(upTo(10).map((row) => row % 5 < 3));
    expect(await isSeen(law, two, 0, 'dv', 6 * 2)).toBe(true);
    expect(await isSeen(law, two, 0, 'dq', 0)).toBe(false);
    const empty = caseOf(variedProblem({ causal: true }, { ...sizes, queries: 4, keys: 2 }));
    const queries = await Promise.all(
      upTo(16).map((row) => isSeen(law, empty, 0, 'dq', row * width)),
    );
    expect(queries).toEqual(upTo(16).map((row) => row % 4 < 2));
  });

  it('an ulp in a row of O moves the dQ of that row and dK alone', async () => {
    const law = 'gradients-stored-output';
    const promises = { readsForward: true };
    const queries = await Promise.all(
      upTo(8).map((row) => isSeen(law, plain, 4, 'dq', row * width, promises)),
    );
    expect(queries).toEqual(upTo(8).map((row) => row !== 2));
    expect([
      await isSeen(law, plain, 4, 'dk', 0, promises),
      await isSeen(law, plain, 4, 'dv', 0, promises),
    ]).toEqual([false, true]);
  });

  it('the same problem, heads, halves and zeros have the same numbers', async () => {
    for (const law of [
      'gradients-determinism',
      'gradients-heads',
      'gradients-alone',
      'gradients-of-zero',
    ] as const)
      for (const name of ['dq', 'dk', 'dv'] as const)
        expect(await isSeen(law, plain, 1 % (law === 'gradients-of-zero' ? 1 : 2), name, 3)).toBe(
          true,
        );
    const wide = caseOf(
      variedProblem({}, { ...sizes, batch: 1, heads: 1, queries: 3, keys: 4, dim: 3 }),
    );
    const steady = {
      problem: { ...wide.problem, v: tensor('fp32', [1, 1, 4, 2], (i) => 1 + i / 8) },
      dout: tensor('fp32', [1, 1, 3, 2], (i) => 1 + i / 8),
    };
    expect(await isSeen('gradients-linear', steady, 0, 'dv', 3)).toBe(true);
    // Where something might underflow on the way nothing is promised to the bit.
    const tiny = { ...steady, dout: tensor('fp32', [1, 1, 3, 2], (i) => (i === 2 ? 2 ** -13 : 1)) };
    const large = {
      ...steady,
      problem: {
        ...steady.problem,
        v: tensor('fp32', [1, 1, 4, 2], (i) => (i === 2 ? 2 ** 13 : 1)),
      },
    };
    for (const given of [tiny, large])
      expect(await isSeen('gradients-linear', given, 0, 'dv', 3)).toBe(false);
    const edge = {
      ...steady,
      dout: tensor('fp32', [1, 1, 3, 2], (i) => (i === 2 ? 2 ** -12 : 2 ** 12)),
    };
    expect(await isSeen('gradients-linear', edge, 0, 'dv', 3)).toBe(true);
    const half = {
      problem: { ...steady.problem, q: tensor('fp32', [1, 1, 3, 3], () => 20) },
      dout: steady.dout,
    };
    expect(await isSeen('gradients-linear', half, 0, 'dv', 3)).toBe(false);
  });
});
