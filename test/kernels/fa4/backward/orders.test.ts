import { describe, expect, it } from 'vitest';
import {
  headsOfGroup,
  scaledPatterns,
  type Backward,
} from '../../../../kernels/online-softmax/backward/backward.js';
import {
  matchOrders,
  reachability,
} from '../../../../kernels/online-softmax/backward/order-match.js';
import { addInMemory } from '../../../../kernels/online-softmax/backward/tile-sums.js';
import { testSeed } from '../../../setup/effort.js';
import { pseudorandom } from '../../../setup/problems.js';
import { bellShaped } from '../../../audit/gradients/gradient-case.js';
import { prepareCase, type BackwardCase } from './backward-cases.js';

/** fp32 sums as results, so that every order that differs is seen. */
const bits = new Int32Array(1);
function patternOf(sum: number): number {
  new Float32Array(bits.buffer)[0] = sum;
  return bits[0];
}
const resultOf = (sum: number): number => patternOf(Math.fround(sum));
const placeOf = (pattern: number): number => (pattern < 0 ? -(2 ** 31) - pattern : pattern);

/** The sums of all permutations, one by one. */
function allSums(terms: readonly number[], sum = 0): number[] {
  if (terms.length === 0) return [sum];
  return terms.flatMap((term, i) =>
    allSums([...terms.slice(0, i), ...terms.slice(i + 1)], addInMemory(sum, term)),
  );
}

describe('whether some order of additions gives a sum', () => {
  it('is what all permutations say', () => {
    const uniform = pseudorandom(testSeed);
    let several = 0;
    for (let trial = 0; trial < 80; trial++) {
      const terms = Array.from({ length: 2 + Math.floor(uniform() * 5) }, () =>
        Math.fround((uniform() - 0.5) * 2 ** Math.floor(uniform() * (trial % 8))),
      );
      const patterns = new Set(allSums(terms).map(patternOf));
      if (patterns.size > 1) several++;
      const ofOrder = resultOf(terms.reduce((sum, term) => addInMemory(sum, term), 0));
      for (let step = -6; step <= 6; step++) {
        const observed = ofOrder + step;
        expect(reachability(terms, observed, resultOf, placeOf)).toBe(
          patterns.has(observed) ? 'someOrder' : 'noOrder',
        );
      }
    }
    expect(several).toBeGreaterThan(10);
  });

  it('is known of many terms by an order found, or by what no order can give', () => {
    const uniform = pseudorandom(testSeed + 1);
    const terms = Array.from({ length: 40 }, () => Math.fround(uniform() - 0.5));
    const sum = terms.toReversed().reduce((of, term) => addInMemory(of, term), 0);
    expect(reachability(terms, resultOf(sum), resultOf, placeOf)).not.toBe('noOrder');
    expect(reachability(terms, resultOf(sum + 0.001), resultOf, placeOf)).toBe('noOrder');
    expect(reachability(terms.slice(1), resultOf(sum), resultOf, placeOf)).toBe('noOrder');
  });

  it('is not decided of numbers whose sums may overflow', () => {
    expect(reachability([3e38, 3e38, -3e38], resultOf(3e38), resultOf, placeOf)).toBe('undecided');
  });
});

const common = (normal: () => number) => () => 2 ** 14 + 16 * Math.round(8 * normal());

/** A problem of which dQ is small beside its tiles: all keys have a large vector in common. */
const cancelling = (): BackwardCase => ({
  name: 'keys with a vector in common',
  format: 'fp16',
  heads: 4,
  kvHeads: 2,
  queries: 24,
  keys: 100,
  dim: 32,
  changes: { scale: 2 ** -10 },
  fills: { q: bellShaped(41), k: common(bellShaped(43)), v: bellShaped(47) },
});

/** dQ of a key/value head with its tiles added in an order of their own, but for those left out. */
function shuffledQueries(
  { passes, shape, recipe }: Backward,
  kvHead: number,
  isKept: (tile: number) => boolean = () => true,
): Uint16Array {
  const { queries, qkDim, groupSize } = shape;
  const uniform = pseudorandom(7);
  const dq = new Float32Array(groupSize * queries * qkDim);
  headsOfGroup(kvHead, shape).forEach((head, i) => {
    const tiles = new Map<number, Float32Array[]>();
    passes.run([head], {
      tile: ({ first }, tile) => void tiles.set(first, [...(tiles.get(first) ?? []), tile.slice()]),
    });
    for (const [first, ofBlock] of tiles)
      ofBlock
        .filter((_, tile) => isKept(tile))
        .map((tile) => ({ tile, key: uniform() }))
        .sort((a, b) => a.key - b.key)
        .forEach(({ tile }) =>
          tile.forEach((x, j) => {
            const at = (i * queries + first) * qkDim + j;
            dq[at] = addInMemory(dq[at], x);
          }),
        );
  });
  return scaledPatterns(dq, recipe.softmaxScale, recipe.format);
}

/** dK and dV with the heads of a group added from the last to the first. */
function reversedKeys({ passes, shape, recipe }: Backward, kvHead: number) {
  const { keys, qkDim, vDim } = shape;
  const dk = new Float32Array(keys * qkDim);
  const dv = new Float32Array(keys * vDim);
  for (const head of headsOfGroup(kvHead, shape).toReversed())
    passes.run([head], {
      keys: ({ first }, sums) => {
        sums.dk.forEach((x, i) => (dk[first * qkDim + i] = addInMemory(dk[first * qkDim + i], x)));
        sums.dv.forEach((x, i) => (dv[first * vDim + i] = addInMemory(dv[first * vDim + i], x)));
      },
    });
  return {
    dk: scaledPatterns(dk, recipe.softmaxScale, recipe.format),
    dv: scaledPatterns(dv, 1, recipe.format),
  };
}

describe('gradients whose adds have no order', () => {
  it('are recognised in any order, and not with a tile lost', () => {
    const backward = prepareCase(cancelling()).backward();
    const size = backward.run(0).dq.length;
    const shuffled = matchOrders(backward, 0, {
      dq: shuffledQueries(backward, 0),
      ...reversedKeys(backward, 0),
    });
    // Seven tiles of 16 keys, so that every order is followed.
    expect(shuffled.dq).toMatchObject({ undecided: 0, noOrder: 0 });
    expect(shuffled.dq!.someOrder).toBeGreaterThan(0);
    expect(shuffled.dq!.equal + shuffled.dq!.someOrder).toBe(size);
    // Two heads are added to 0: both orders are one sum.
    expect(shuffled.dk).toMatchObject({ someOrder: 0, undecided: 0, noOrder: 0 });
    expect(shuffled.dv).toMatchObject({ someOrder: 0, undecided: 0, noOrder: 0 });
    const lost = shuffledQueries(backward, 0, (tile) => tile !== 3);
    const { dq, dk } = matchOrders(backward, 0, { dq: lost, dk: null, dv: null });
    expect(dq!.noOrder).toBeGreaterThan(size / 2);
    expect(dk).toBeNull();
  });

  it('are not excused where the order is fixed', () => {
    const prepared = prepareCase(cancelling());
    const { recipe } = prepareCase(cancelling(), { deterministic: true });
    const free = prepared.backward();
    const fixed = { ...free, recipe };
    const dq = shuffledQueries(free, 0);
    expect(matchOrders(fixed, 0, { dq, dk: null, dv: null }).dq!.noOrder).toBeGreaterThan(0);
  });

  it('of many tiles are never said to be of some order without one', () => {
    const case_ = { ...cancelling(), keys: 230 };
    const backward = prepareCase(case_).backward();
    const { dq } = backward.run(0);
    const off = dq.map((pattern, i) => (i % 7 === 0 ? pattern ^ 0x40 : pattern));
    const match = matchOrders(backward, 0, { dq: off, dk: null, dv: null }).dq!;
    expect(match.equal).toBe(dq.length - Math.ceil(dq.length / 7));
    expect(match.someOrder).toBe(0);
    expect(match.noOrder).toBeGreaterThan(0);
  });
});

it('numbers in memory are added with subnormal ones as zeros', () => {
  const tiny = 2 ** -127;
  expect(addInMemory(tiny, tiny)).toBe(0);
  expect(addInMemory(1, tiny)).toBe(1);
  expect(Object.is(addInMemory(-tiny, -0), -0)).toBe(true);
  expect(addInMemory(1.5 * 2 ** -126, -(2 ** -126))).toBe(0);
  expect(addInMemory(0.1, 0.2)).toBe(Math.fround(0.1 + 0.2));
});
