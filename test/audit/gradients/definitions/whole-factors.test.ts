import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Scope } from '../../../../src/audit/gradients/diagnosis/scope.js';
import { factorFaults } from '../../../../src/audit/gradients/diagnosis/stored/factor-faults.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure, drawGradient, type Named } from './bare-failure.js';
import { drawFrom } from './random-pairs.js';

const [batch, kvHeads, groupSize, queries, keys] = [2, 2, 3, 4, 5] as const;
const heads = kvHeads * groupSize;
const columns = { dq: 3, dk: 3, dv: 2 } as const;
const prose = { dq: 'dQ', dk: 'dK', dv: 'dV' } as const;
const probability = 0.25;

function problemOf(seed: number, scale: number, drops: boolean): Problem {
  const { between } = drawFrom(seed);
  const frame = { batch, heads, kvHeads, queries, keys, dim: 3, vDim: 2 };
  const kept = { shape: [1, 1, queries, keys], data: new Uint8Array(queries * keys).fill(1) };
  const dropout = drops ? { dropout: { kept, probability } } : {};
  return filledProblem(frame, () => between(-1, 1), { scale, ...dropout });
}

/** What each mistake multiplies which gradients by. */
const mistakes = (scale: number, drops: boolean): [id: string, factor: number, of: Named[]][] => [
  ['scale-missing', 1 / scale, ['dq', 'dk']],
  ['scale-twice', scale, ['dq', 'dk']],
  ['sign', -1, ['dq', 'dk', 'dv']],
  ['log2e-kept', 1 / Math.log(2), ['dq', 'dk']],
  ['ln2-twice', Math.log(2), ['dq', 'dk']],
  ['group-mean', 1 / groupSize, ['dk', 'dv']],
  ['accumulator-not-zeroed', 2, ['dq', 'dk', 'dv']],
  ...(drops
    ? [['dropout-factor', 1 - probability, ['dq', 'dk', 'dv']] as [string, number, Named[]]]
    : []),
];

const names = fc.subarray<Named>(['dq', 'dk', 'dv'], { minLength: 1 });

const drawns = fc.record({
  seed: fc.nat(1e6),
  // The second is 1 as nearly as a factor tells nothing, the third not quite.
  scale: fc.constantFrom(0.4, 1 + 0.99 / 32, 1 + 1.01 / 32, 1 / Math.sqrt(128)),
  drops: fc.boolean(),
  failing: names,
  /** The distance from a factor, in 1/64. */
  off: fc.constantFrom(0, 0.99, -0.99, 1.01, -1.01),
  /** Whether the last that fails is off by another factor, or by none at all. */
  last: fc.constantFrom(1, 1, 1, 1.3, 0),
  isScoped: fc.boolean(),
});

/** Heads 0 to 2 of Q in the second batch entry, which read head 0 of K and V. */
const scope: Scope = Uint8Array.from({ length: batch * heads * queries }, (_, row) => {
  const head = Math.floor(row / queries);
  return head >= heads && head < heads + groupSize ? 1 : 0;
});

/** Whether an element is in the scope. */
const isIn = (name: Named) => (i: number) => {
  const [rows, first, end] =
    name === 'dq' ? [queries, heads, heads + groupSize] : [keys, kvHeads, kvHeads + 1];
  const head = Math.floor(i / columns[name] / rows);
  return head >= first && head < end;
};

describe('a gradient that is off by a factor', () => {
  it.each([...mistakes(2, true).map(([id]) => id), 'scale-moved'])(
    'is named by each mistake that makes the factor of all that fail, and else by the factor: %s',
    (id) => {
      fc.assert(
        fc.property(drawns, ({ seed, scale, drops: mayDrop, failing, last, off, isScoped }) => {
          const isMoved = id === 'scale-moved';
          const drops = mayDrop || id === 'dropout-factor';
          const problem = problemOf(seed, scale, drops);
          const draw = drawFrom(seed + 1);
          const table = mistakes(scale, drops);
          const [, made] = table.find(([one]) => one === id) ?? table[0];
          const factorOf = (name: Named) =>
            (isMoved ? (name === 'dv' ? scale : 1 / scale) : made) *
            (failing.length > 1 && name === failing.at(-1) ? last : 1) *
            (1 + off / 64);
          const drawn = Object.fromEntries(
            (['dq', 'dk', 'dv'] as const).map((name) => {
              const one = drawGradient(problem, name, draw);
              const { exact } = one;
              const isMeant = (i: number) => !isScoped || isIn(name)(i);
              if (!failing.includes(name)) return [name, one] as const;
              const values = exact.map((x, i) => (isMeant(i) ? factorOf(name) * x : x));
              // Elements that are no numbers tell nothing, either way.
              [values[1], exact[2]] = [NaN, Infinity];
              [values[values.length / 2 + 1], exact[exact.length / 2 + 2]] = [Infinity, NaN];
              return [name, { ...one, values }] as const;
            }),
          );
          const failed = bareFailure(problem, drawn, failing);
          const found = [...factorFaults(failed, isScoped ? scope : null)];

          if (failing.length > 1 && last === 0) {
            expect(found).toEqual([]);
            return;
          }
          const wanted = new Map<string, readonly number[]>();
          const isNear = (one: number, factor: number) => Math.abs(one / factor - 1) < 1 / 64;
          const factors = failing.map(factorOf);
          for (const [one, factor, of] of table)
            if (
              Math.abs(factor - 1) > 1 / 32 &&
              failing.every((name) => of.includes(name)) &&
              factors.every((found) => isNear(found, factor))
            )
              wanted.set(
                one,
                failing.map(() => factor),
              );
          const moved = failing.map((name) => (name === 'dv' ? scale : 1 / scale));
          if (
            failing.includes('dv') &&
            failing.length > 1 &&
            Math.abs(scale - 1) > 1 / 32 &&
            moved.every((factor, i) => isNear(factors[i], factor))
          )
            wanted.set('scale-moved', moved);
          wanted.set('factor', factors);

          expect(found.map(({ id }) => id)).toEqual([...wanted.keys()]);
          for (const { id: told, predicted, shrinks } of found) {
            expect(shrinks).toBe(true);
            expect(Object.keys(predicted)).toEqual(failing);
            for (const [at, name] of failing.entries())
              predicted[name]!.forEach((x, i) => {
                const exact = drawn[name].exact[i];
                const factor = isScoped && !isIn(name)(i) ? 1 : wanted.get(told)![at];
                const isAlike =
                  Object.is(x, exact * factor) || Math.abs(x / exact / factor - 1) < 2 ** -40;
                if (!isAlike) expect([told, name, i, x]).toEqual([told, name, i, exact * factor]);
              });
          }
          const words = failing.map(
            (name, i) => `${prose[name]} is ${factors[i].toFixed(4)} times`,
          );
          for (const word of words) expect(found.at(-1)!.sentence).toContain(word);
          expect(found.at(-1)!.sentence.endsWith(', everywhere')).toBe(!isScoped);
        }),
        { numRuns: id === 'scale-moved' ? 40 : 12 },
      );
    },
  );

  it.each<[string, number, Named[], string]>([
    ['one', -1, ['dq'], 'the sign is wrong in dQ: it is -1 times what it should be'],
    [
      'two',
      -1,
      ['dk', 'dv'],
      'the sign is wrong in dK and dV: they are -1 times what they should be',
    ],
    [
      'the heads of a group',
      1 / 3,
      ['dk'],
      'it is the mean over the 3 heads of a group, not the sum in dK: it is 0.333 times what it should be',
    ],
  ])('is told in words: %s', (_, factor, failing, sentence) => {
    const problem = problemOf(3, 0.4, false);
    const made = (name: Named) => {
      const one = drawGradient(problem, name, drawFrom(4));
      return { ...one, values: one.exact.map((x) => factor * x) };
    };
    const failed = bareFailure(
      problem,
      Object.fromEntries(failing.map((name) => [name, made(name)])),
      failing,
    );
    expect([...factorFaults(failed, null)][0].sentence).toBe(sentence);
  });

  it('is told in words: the scale on the wrong side', () => {
    const problem = problemOf(3, 0.4, false);
    const made = (name: Named) => {
      const one = drawGradient(problem, name, drawFrom(4));
      return { ...one, values: one.exact.map((x) => (name === 'dv' ? 0.4 : 2.5) * x) };
    };
    const all = { dq: made('dq'), dk: made('dk'), dv: made('dv') };
    const found = [...factorFaults(bareFailure(problem, all, ['dq', 'dk', 'dv']), null)];
    expect(found.map(({ id, sentence }) => [id, sentence])[0]).toEqual([
      'scale-moved',
      'dV is multiplied by the scale, which is missing in dQ and dK',
    ]);
  });

  it('is of no factor where it is zero, or the exact one is, or keys get shares from within a scope and without', () => {
    const problem = problemOf(5, 0.4, false);
    const one = drawGradient(problem, 'dk', drawFrom(6));
    const ids = (dk: typeof one, of: Scope | null) =>
      [...factorFaults(bareFailure(problem, { dk }, ['dk']), of)].map(({ id }) => id);
    const nothing = one.exact.map(() => 0);
    expect(ids({ ...one, values: nothing }, null)).toEqual([]);
    expect(ids({ ...one, exact: nothing }, null)).toEqual([]);
    expect(ids({ ...one, exact: one.exact.map(() => NaN) }, null)).toEqual([]);
    const larger = { ...one, values: one.exact.map((x) => 1.5 * x) };
    expect(ids(larger, scope)).toEqual(['factor']);
    // Errors that no factor explains any of.
    expect(ids(one, scope)).toEqual([]);
    const split = scope.slice();
    split[heads * queries] = 0;
    expect(problemShape(problem).groupSize).toBe(groupSize);
    expect(ids(larger, split)).toEqual([]);
  });
});
