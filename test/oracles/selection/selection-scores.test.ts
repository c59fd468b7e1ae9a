import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectionScorer, type SelectionProblem } from '../../../oracles/index.js';
import { drawInputs, problemOf, type KernelInputs } from '../../audit/links/selection-kernel.js';
import { scaled, testSeed } from '../../setup/effort.js';

/** fp32 numbers are whole multiples of 2^-149. */
const scale = 149;
const whole = (x: number) => BigInt(x * 2 ** scale);
const larger = (a: bigint, b: bigint) => (a > b ? a : b);

/** Numbers over a power of two: `numerator · 2^-exponent`. */
interface Exact {
  readonly numerator: bigint;
  readonly exponent: number;
  /** The divisor of a mean. */
  readonly divisor: bigint;
}

/** A score by the law in whole numbers. */
function exactScore(inputs: KernelInputs, list: number, candidate: number): Exact {
  const { q, k, weights, keyScale, queryHeads, keyHeads, lists, keys, dim, blockSize, law } =
    inputs;
  const ofList = queryHeads / lists;
  const members = Array.from({ length: blockSize }, (_, i) => candidate * blockSize + i).filter(
    (key) => key < keys,
  );
  let sum = 0n;
  for (let h = list * ofList; h < (list + 1) * ofList; h++) {
    const keyHead = Math.floor(h / (queryHeads / keyHeads));
    let dot = 0n;
    for (let i = 0; i < dim; i++) {
      const x = whole(q[h * dim + i] ?? NaN);
      const products = members.map(
        (key) => x * whole(k[(key * keyHeads + keyHead) * dim + i] ?? NaN),
      );
      dot +=
        law === 'block-bounds' ? products.reduce(larger) : products.reduce((a, b) => a + b, 0n);
    }
    if (law === 'indexer') sum += larger(dot, 0n) * whole(weights[h] ?? NaN);
    else sum += dot;
  }
  return law === 'indexer'
    ? { numerator: sum * whole(keyScale[candidate] ?? NaN), exponent: 4 * scale, divisor: 1n }
    : {
        numerator: sum,
        exponent: 2 * scale,
        divisor: law === 'block-mean' ? BigInt(members.length) : 1n,
      };
}

/** Whether |value − exact| ≤ radius, in whole numbers. */
function isWithin(value: number, radius: number, { numerator, exponent, divisor }: Exact): boolean {
  const more = 400;
  const scaledUp = (x: number) => BigInt(Math.round(x * 2 ** 200)) << BigInt(exponent + more - 200);
  const difference = scaledUp(value) * divisor - (numerator << BigInt(more));
  const size = difference < 0n ? -difference : difference;
  // What the conversion itself rounds, 2^-200, is far below every radius here.
  return size <= (scaledUp(radius) + (1n << BigInt(exponent + more - 199))) * divisor;
}

describe('scores of selections', () => {
  it.each(['dot', 'indexer', 'block-mean', 'block-bounds'] as const)(
    'are within their radius of those in whole numbers: %s',
    (law) => {
      fc.assert(
        fc.property(fc.nat(), fc.integer({ min: 1, max: 30 }), fc.boolean(), (seed, keys, two) => {
          const isIndexer = law === 'indexer';
          const inputs = drawInputs(
            seed,
            {
              batch: 1,
              queries: 1,
              queryHeads: 4,
              keyHeads: two && !isIndexer ? 2 : 1,
              lists: two && !isIndexer ? 2 : 1,
              keys,
              dim: 12,
              listed: 1,
              blockSize: law.startsWith('block') ? 4 : 1,
            },
            law,
            false,
          );
          const problem: SelectionProblem = problemOf(inputs);
          const score = selectionScorer(problem);
          for (let list = 0; list < problem.shape.heads; list++) {
            const { values, radius } = score(0, 0, list);
            for (const [j, value] of values.entries()) {
              const exact = exactScore(inputs, list, j);
              expect(isWithin(value, radius[j] ?? NaN, exact)).toBe(true);
              // A value that is off by some radii is outside, so that the comparison can fail.
              expect(isWithin(value + 3 * (radius[j] ?? NaN), radius[j] ?? NaN, exact)).toBe(false);
            }
          }
        }),
        { seed: testSeed, numRuns: scaled(40) },
      );
    },
  );
});
