import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laws, type LawId, type LawStrength } from '../../../properties/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import type { Asked } from './defined-backward.js';
import { drawnCase, indexAt, placesOf, seesKey, upTo, type DrawnKinds } from './drawn-case.js';
import { tryByHand } from './law-by-hand.js';

type Place = readonly [batch: number, head: number, row: number, column: number];
type Name = 'q' | 'k' | 'v' | 'dout';

/** One run that a law asks for, by its sizes and by each element. */
interface Posed {
  /** Sizes that differ from those of the problem. */
  readonly sizes?: Partial<Pick<ProblemShape, 'batch' | 'heads' | 'kvHeads' | 'queries' | 'keys'>>;
  /** Where an element of it stands in the problem; default in the same place. */
  readonly from?: (name: Name, place: Place) => Place;
  /** The element, from the one that it was; default the same. */
  readonly element?: (name: Name, x: number, place: Place) => number;
}

/** The runs of a law on a case, in order. */
interface Asking {
  readonly law: LawId;
  readonly kinds?: DrawnKinds;
  readonly strength?: LawStrength;
  readonly isForm?: (choice: number) => boolean;
  readonly posed: (choice: number, shape: ProblemShape, problem: Problem) => readonly Posed[];
}

const same: Posed = {};
const ofDout = (change: (x: number, place: Place) => number): Posed => ({
  element: (name, x, place) => (name === 'dout' ? change(x, place) : x),
});
const isOfKeys = (name: Name) => name === 'k' || name === 'v';
const factors = [2, 1 / 2, 8, 1 / 8, 32, 1 / 32];

/** The keys of a problem in another order. */
const keysFrom = (order: readonly number[]): Posed => ({
  sizes: { keys: order.length },
  from: (name, [b, h, i, c]) => [b, h, isOfKeys(name) ? order[i] : i, c],
});

const askings: readonly Asking[] = [
  { law: 'gradients-of-zero', kinds: { packed: true }, posed: () => [ofDout(() => 0)] },
  {
    law: 'gradients-linear',
    isForm: (choice) => choice % 2 === 0,
    posed: (choice) => [same, ofDout((x) => x * factors[choice / 2])],
  },
  { law: 'gradients-determinism', isForm: (choice) => choice === 0, posed: () => [same, same] },
  {
    law: 'gradients-determinism',
    isForm: (choice) => choice === 1,
    posed: () => [same, ofDout((x) => -x), same],
  },
  {
    law: 'gradients-of-level-values',
    kinds: { masked: true, packed: true },
    posed: (choice, { keys }) => [
      {
        from: (name, [b, h, i, c]) => [b, h, name === 'v' ? Math.floor((choice * keys) / 8) : i, c],
      },
    ],
  },
  {
    law: 'gradients-of-one-key',
    kinds: { masked: true },
    posed: (_, { keys }) => [keysFrom([keys - 1])],
  },
  {
    law: 'gradients-hidden-nan',
    kinds: { masked: true, packed: true },
    posed: (choice, shape, problem) => {
      const sees = seesKey(problem, shape);
      const isHidden = (key: number) => !upTo(shape.queries).some((query) => sees(query, key));
      const name = choice === 0 ? 'k' : 'v';
      return [same, { element: (of, x, [, , row]) => (of === name && isHidden(row) ? NaN : x) }];
    },
  },
  {
    law: 'gradients-nan-row',
    strength: 'bits',
    kinds: { masked: true },
    posed: (choice, { batch, heads, queries }) => {
      const chosen = Math.floor((choice * batch * heads * queries) / 16);
      return [
        same,
        ofDout((x, [b, h, i, c]) =>
          (b * heads + h) * queries + i === chosen && c === 0 ? NaN : x,
        ),
      ];
    },
  },
  {
    law: 'gradients-key-shift',
    kinds: { masked: true },
    posed: (choice, { qkDim }, { scale }) => {
      const nats = [1, -1, 8, -8, 64, -64][choice];
      const exponent = Math.round(Math.log2(Math.abs(nats) / scale));
      const [a, c] = [
        2 ** Math.ceil(exponent / 2),
        Math.sign(nats) * 2 ** Math.floor(exponent / 2),
      ];
      const withLast = (last: number): Posed => ({
        element: (name, x, [, , , column]) =>
          column < qkDim - 1 || name === 'v' || name === 'dout' ? x : name === 'q' ? a : last,
      });
      return [withLast(0), withLast(c)];
    },
  },
  {
    law: 'gradients-heads',
    isForm: (choice) => choice === 0,
    kinds: { masked: true },
    posed: (_, { batch, kvHeads, groupSize }) => [
      same,
      {
        from: (name, [b, h, i, c]) => {
          const size = isOfKeys(name) ? 1 : groupSize;
          const kvHead = kvHeads - 1 - Math.floor(h / size);
          return [batch - 1 - b, kvHead * size + (h % size), i, c];
        },
      },
    ],
  },
  {
    law: 'gradients-grouped',
    kinds: { masked: true },
    posed: (_, { heads, groupSize }) => [
      same,
      {
        sizes: { kvHeads: heads },
        from: (name, [b, h, i, c]) => [b, isOfKeys(name) ? Math.floor(h / groupSize) : h, i, c],
      },
    ],
  },
  {
    // All keys backwards, within blocks of two, and blocks of two.
    law: 'gradients-key-permutation',
    isForm: (choice) => choice < 3,
    posed: (choice, { keys }) => {
      const all = upTo(keys);
      const backwards = [...all].reverse();
      const blocks = upTo(Math.ceil(keys / 2)).map((block) => all.slice(2 * block, 2 * block + 2));
      const orders = [
        backwards,
        blocks.flatMap((block) => [...block].reverse()),
        [...blocks].reverse().flat(),
      ];
      return [same, keysFrom(orders[choice])];
    },
  },
  {
    law: 'gradients-alone',
    kinds: { masked: true },
    posed: (choice, { batch }) => [
      same,
      { sizes: { batch: 1 }, from: (_, [, ...at]) => [Math.floor((choice * batch) / 8), ...at] },
    ],
  },
  {
    law: 'gradients-alone',
    kinds: { masked: true, packed: true },
    posed: (choice, _, { sequences }) => {
      const { firstQuery, queries, firstKey, keys } = sequences![choice < 4 ? 0 : 1];
      const first = (name: Name) => (isOfKeys(name) ? firstKey : firstQuery);
      return [
        same,
        { sizes: { queries, keys }, from: (name, [b, h, i, c]) => [b, h, i + first(name), c] },
      ];
    },
  },
  {
    law: 'gradients-decode',
    kinds: { masked: true },
    posed: (choice, { queries }) => {
      const count = 1 + Math.floor((choice * (queries - 1)) / 16);
      return [
        ofDout((x, [, , row]) => (row < queries - count ? 0 : x)),
        {
          sizes: { queries: count },
          from: (name, [b, h, i, c]) => [b, h, isOfKeys(name) ? i : i + queries - count, c],
        },
      ];
    },
  },
];

/** The elements of what a law is said to ask for, row-major. */
function elementsOf({ problem, dout }: Asked, { sizes, from, element }: Posed) {
  const before = problemShape(problem);
  const after = { ...before, ...sizes };
  const tensors = { q: problem.q, k: problem.k, v: problem.v, dout };
  const shapeOf = (name: Name, { batch, heads, kvHeads, queries, keys }: ProblemShape) => [
    batch,
    isOfKeys(name) ? kvHeads : heads,
    isOfKeys(name) ? keys : queries,
    tensors[name].shape[3],
  ];
  const names = ['q', 'k', 'v', 'dout'] as const;
  return names.map((name) => {
    const values = decodeTensor(tensors[name]);
    const numbers = [...placesOf(shapeOf(name, after))].map((place) => {
      const x = values[indexAt(shapeOf(name, before), from?.(name, place) ?? place)];
      return element?.(name, x, place) ?? x;
    });
    return { shape: shapeOf(name, after), numbers };
  });
}

describe.each(askings)('$law, $kinds', ({ law, kinds = {}, strength, isForm, posed }) => {
  const forms = upTo(laws[law].choices).filter(isForm ?? (() => true));

  it('asks for these runs, element by element', async () => {
    await fc.assert(
      fc.asyncProperty(drawnCase(kinds), fc.constantFrom(...forms), async (given, choice) => {
        const { runs, inapplicable } = await tryByHand(law, given, {
          choice,
          promises: { blockKeys: 2 },
          ...(strength === undefined ? {} : { strength }),
        });
        if (inapplicable) return;
        const { scale, causal, window } = given.problem;
        const wanted = posed(choice, problemShape(given.problem), given.problem);
        expect(runs).toHaveLength(wanted.length);
        runs.forEach(({ problem, dout }, index) => {
          const { q, k, v } = problem;
          const found = [q, k, v, dout].map((tensor) => ({
            shape: tensor.shape,
            numbers: [...decodeTensor(tensor)],
          }));
          expect(found).toEqual(elementsOf(given, wanted[index]));
          expect(problem).toMatchObject({ scale, causal, window });
        });
      }),
      { numRuns: 9 },
    );
  });
});

describe('gradients-linear', () => {
  it('cuts dO in two by elements, each form in another way', async () => {
    const forms = upTo(laws['gradients-linear'].choices).filter((choice) => choice % 2 === 1);
    await fc.assert(
      fc.asyncProperty(drawnCase({ masked: true }), async (given) => {
        const cuts = new Set<string>();
        for (const choice of forms) {
          const { runs } = await tryByHand('gradients-linear', given, { choice });
          const [whole, first, second] = runs.map(({ dout }) => decodeTensor(dout));
          expect(runs).toHaveLength(3);
          expect(whole).toEqual(decodeTensor(given.dout));
          whole.forEach((x, i) => expect([first[i], second[i]].sort()).toEqual([0, x].sort()));
          cuts.add(first.join());
        }
        // Of few elements two forms may cut alike.
        if (given.dout.data.length > 12) expect(cuts.size).toBe(forms.length);
      }),
      { numRuns: 10 },
    );
  });
});
