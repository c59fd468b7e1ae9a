import { describe, expect, it } from 'vitest';
import {
  laws,
  NotApplicable,
  type AttentionKernel,
  type FeatureKind,
  type LawId,
} from '../../../properties/index.js';
import { neededBlocks } from '../../../properties/laws/served/mask-tensors.js';
import {
  hasRowFactors,
  loneDocument,
  loneSequence,
  packBatches,
  pickSequences,
  sequencesOf as lengthsOf,
  wholeSizesOf,
} from '../../../properties/laws/served/sequence-problems.js';
import { copyProblem } from '../../../properties/laws/transform-problem.js';
import {
  problemFeatures,
  problemShape,
  storedOf,
  type Problem,
} from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { sequencesOf, tensor } from '../../setup/problems.js';
import { askedBy, variedProblem } from '../laws/try-law.js';

const upTo = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);
const small = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 4, dim: 3, vDim: 2 } as const;
const plain = variedProblem({}, small);
const causal = variedProblem({ causal: true }, small);
const int32 = (...numbers: number[]) => ({
  shape: [numbers.length],
  data: Int32Array.from(numbers),
});

/** Nothing but zeros, in the shape of any problem. */
const zeros: AttentionKernel = (problem) => {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const shape = [batch, heads, queries];
  return { out: tensor('fp32', [...shape, vDim], () => 0), lse: tensor('fp32', shape, () => 0) };
};

/** What a law asks for to the last bit, form by form; null where it says nothing. */
async function forms(law: LawId, problem: Problem, features: readonly FeatureKind[]) {
  const all: (readonly Problem[] | null)[] = [];
  for (const choice of upTo(laws[law].choices)) {
    const trial = { strength: 'bits', promises: { features }, kernel: zeros } as const;
    const { result, problems } = await askedBy(law, { problem, choice }, trial);
    all.push(result.status === 'inapplicable' ? null : problems);
  }
  return all;
}

/** A problem with every feature of a list, none of which excludes another. */
const documents = variedProblem(
  { segments: { queries: int32(5, 7, 7), keys: int32(5, 5, 7, 7) } },
  small,
);

describe('features that change nothing', () => {
  const kinds: readonly FeatureKind[] = [
    'bias',
    'mask',
    'sink',
    'dropout',
    'prefix',
    'segments',
    'alibi',
    'block-mask',
    'packed',
  ];

  it('are each added in turn to a problem that has none, and change no row', async () => {
    const single = variedProblem({ causal: true }, { ...small, batch: 1 });
    const names: string[] = [];
    for (const form of await forms('neutral-features', single, kinds)) {
      const [first, second] = form!;
      expect(first).toBe(single);
      names.push(...problemFeatures(second));
      const [before, after] = [definedAttention(first), definedAttention(second)];
      expect(after.visible).toEqual(before.visible);
      expect(after.out).toEqual(before.out);
      expect(after.lse).toEqual(before.lse);
    }
    // Eleven of them, one after the other, and again the first.
    const order = [
      'bias',
      'mask',
      'sink',
      'sink',
      'dropout',
      'prefix',
      'segments',
      'alibiSlopes',
      'sequences',
      'blockMask',
      'blockMask',
    ];
    expect(names).toEqual([...order, 'bias']);
  });

  it('are factors of 1 in formats of 8 bits', async () => {
    const bytes = variedProblem({}, { ...small, format: 'e4m3' });
    for (const form of await forms('neutral-features', bytes, ['descale']))
      for (const name of ['q', 'k', 'v'] as const) {
        const [factors] = form![1][name].scales!.factors;
        expect([...factors.values]).toEqual([1]);
        expect(factors.blocks).toEqual(bytes[name].shape);
      }
    expect((await forms('neutral-features', plain, ['descale']))[0]).toBeNull();
  });

  it('are no sequence of several batches, no feature that is there or that one there excludes', async () => {
    expect((await forms('neutral-features', plain, ['packed']))[0]).toBeNull();
    expect(
      (await forms('neutral-features', documents, ['block-mask', 'packed', 'segments']))[0],
    ).toBeNull();
    const [form] = await forms('neutral-features', documents, ['block-mask', 'segments', 'bias']);
    expect(problemFeatures(form![1]).sort()).toEqual(['bias', 'segments']);
    const [single] = await forms('neutral-features', variedProblem({}, { ...small, batch: 1 }), [
      'paged',
    ]);
    expect(single![1].sequences ?? storedOf(single![1])).not.toBeNull();
  });
});

describe('masks as tensors', () => {
  it('are one boolean mask that shows what was seen, or blocks that hide nothing of it', async () => {
    const rich = variedProblem(
      { causal: true, window: { left: 2, right: 0 }, prefix: 1, segments: documents.segments! },
      small,
    );
    const [ofMask, ofBlocks] = await forms('mask-tensors', rich, [
      'mask',
      'block-mask',
      'segments',
      'prefix',
    ]);
    const { visible } = definedAttention(rich);
    for (const form of [ofMask, ofBlocks])
      expect(definedAttention(form![1]).visible).toEqual(visible);
    expect(problemFeatures(ofMask![1])).toEqual(['mask']);
    expect([ofMask![1].causal, ofMask![1].window, ofMask![1].mask!.shape]).toEqual([
      false,
      null,
      [2, 4, 3, 4],
    ]);
    expect([
      ofBlocks![1].causal,
      ofBlocks![1].blockMask!.blockQueries,
      ofBlocks![1].blockMask!.blockKeys,
    ]).toEqual([true, 64, 128]);
  });

  it('of packed sequences are as large as the longest', async () => {
    const packed = {
      ...packBatches(causal),
      sequences: sequencesOf([
        [2, 5],
        [4, 3],
      ]),
    };
    const [ofMask, ofBlocks] = await forms('mask-tensors', packed, [
      'mask',
      'block-mask',
      'packed',
    ]);
    expect(ofBlocks).toBeNull();
    expect(ofMask![1].mask!.shape).toEqual([2, 4, 4, 5]);
    expect(definedAttention(ofMask![1]).visible).toEqual(definedAttention(packed).visible);
    expect(wholeSizesOf(packed)).toEqual([2, 4, 4, 5]);
    expect(wholeSizesOf(plain)).toEqual([2, 4, 3, 4]);
  });

  it('list for each block of queries the blocks of which some query sees a key', () => {
    const windowed = variedProblem(
      { window: { left: 1, right: 0 } },
      { ...small, queries: 7, keys: 9 },
    );
    const { visible } = definedAttention(windowed);
    for (const [blockQueries, blockKeys] of [
      [1, 1],
      [2, 3],
      [4, 2],
      [8, 16],
    ] as const) {
      const blocks = neededBlocks(windowed, blockQueries, blockKeys);
      const [rows, columns] = [Math.ceil(7 / blockQueries), Math.ceil(9 / blockKeys)];
      expect([blocks.counts.shape, blocks.indices.shape]).toEqual([
        [2, 4, rows],
        [2, 4, rows, columns],
      ]);
      for (const at of upTo(8 * rows)) {
        const own = visible.slice(Math.floor(at / rows) * 7, (Math.floor(at / rows) + 1) * 7);
        const keys = own.slice((at % rows) * blockQueries, ((at % rows) + 1) * blockQueries).flat();
        const wanted = [...new Set(keys.map((key) => Math.floor(key / blockKeys)))].sort(
          (a, b) => a - b,
        );
        const listed = blocks.indices.data.subarray(
          at * columns,
          at * columns + blocks.counts.data[at],
        );
        expect([...listed]).toEqual(wanted);
      }
    }
  });

  it('say nothing where no key is seen, or blocks are there already', async () => {
    const hidden = variedProblem(
      { window: { left: 0, right: 0 } },
      { ...small, queries: 4, keys: 1 },
    );
    const nothing = { ...hidden, mask: { shape: [4, 1], data: Uint8Array.of(1, 1, 1, 0) } };
    expect((await forms('mask-tensors', nothing, ['mask', 'block-mask']))[0]).toBeNull();
    const blocks = { ...plain, blockMask: neededBlocks(plain, 2, 2) };
    expect(
      (await forms('mask-tensors', blocks, ['mask', 'block-mask'])).map((form) => form === null),
    ).toEqual([false, true]);
    expect((await forms('mask-tensors', plain, ['mask'])).map((form) => form === null)).toEqual([
      false,
      true,
    ]);
    expect(
      (await forms('mask-tensors', plain, ['block-mask'])).map((form) => form === null),
    ).toEqual([true, false]);
  });
});

describe('sequences', () => {
  /** The rows of O of a problem, as texts. */
  const outputs = (problem: Problem) => {
    const { out } = definedAttention(problem);
    const { vDim } = problemShape(problem);
    return upTo(out.length / vDim).map((row) => out.subarray(row * vDim, (row + 1) * vDim).join());
  };

  it('are the batches of a problem, one behind the other, head by head', () => {
    const packed = packBatches(causal);
    expect(packed.sequences).toEqual(
      sequencesOf([
        [3, 4],
        [3, 4],
      ]),
    );
    expect(problemShape(packed)).toMatchObject({
      batch: 1,
      heads: 4,
      kvHeads: 2,
      queries: 6,
      keys: 8,
    });
    const before = outputs(causal);
    const after = outputs(packed);
    after.forEach((row, at) => {
      const [head, query] = [Math.floor(at / 6), at % 6];
      expect(row).toBe(before[(Math.floor(query / 3) * 4 + head) * 3 + (query % 3)]);
    });
    expect(packBatches(packed)).toBe(packed);
    expect(() => packBatches(documents)).toThrow(NotApplicable);
    expect(() => packBatches({ ...plain, blockMask: neededBlocks(plain, 2, 2) })).toThrow(
      NotApplicable,
    );
    expect([lengthsOf(causal), lengthsOf(packed)]).toEqual([
      upTo(2).map(() => ({ queries: 3, keys: 4 })),
      packed.sequences,
    ]);
  });

  const three = {
    ...packBatches(variedProblem({ causal: true }, { ...small, batch: 3 })),
    sequences: sequencesOf([
      [2, 3],
      [4, 4],
      [3, 5],
    ]),
  };

  it('are picked in any order, some more than once, with their rows', () => {
    const picked = pickSequences(three, [2, 0, 2]);
    expect(picked.sequences).toEqual(
      sequencesOf([
        [3, 5],
        [2, 3],
        [3, 5],
      ]),
    );
    const [before, after] = [outputs(three), outputs(picked)];
    const origins = [6, 7, 8, 0, 1, 6, 7, 8];
    after.forEach((row, at) => expect(row).toBe(before[Math.floor(at / 8) * 9 + origins[at % 8]]));
  });

  it('alone are rows of the problem, packed or batches', () => {
    for (const index of upTo(3)) {
      const { alone, rows } = loneSequence(three, index);
      expect(alone.sequences).toBeUndefined();
      const own = three.sequences[index];
      expect(rows).toEqual({ queries: upTo(own.queries, own.firstQuery) });
      const before = outputs(three);
      outputs(alone).forEach((row, at) =>
        expect(row).toBe(
          before[Math.floor(at / own.queries) * 9 + own.firstQuery + (at % own.queries)],
        ),
      );
    }
    const { alone, rows } = loneSequence(causal, 1);
    expect(rows).toEqual({ batches: [1] });
    expect(outputs(alone)).toEqual(outputs(causal).slice(12));
  });

  it('of documents are alone where their rows follow one another and their diagonal is that of all', () => {
    const { alone, rows } = loneDocument(documents, 7);
    expect(rows).toEqual({ queries: [1, 2] });
    const before = outputs(documents);
    outputs(alone).forEach((row, at) =>
      expect(row).toBe(before[Math.floor(at / 2) * 3 + 1 + (at % 2)]),
    );
    const of = (
      queries: readonly number[],
      keys: readonly number[],
      changes: Partial<Problem> = {},
      segment = 7,
    ) => {
      const segments = { queries: int32(...queries), keys: int32(...keys) };
      try {
        return problemShape(loneDocument({ ...plain, ...changes, segments }, segment).alone);
      } catch (error) {
        if (error instanceof NotApplicable) return null;
        throw error;
      }
    };
    expect(of([5, 7, 7], [5, 5, 7, 7])).toMatchObject({ queries: 2, keys: 2 });
    expect(of([7, 5, 7], [5, 5, 7, 7])).toBeNull();
    expect(of([5, 7, 7], [7, 5, 7, 7])).toBeNull();
    expect(of([5, 5, 5], [5, 5, 7, 7])).toBeNull();
    // The last row of the document sees its last key: 2 queries at 1 and 2 keys at 2, of 3 and 4.
    expect(of([5, 7, 7], [5, 5, 7, 7], { causal: true })).not.toBeNull();
    expect(of([5, 7, 7], [5, 7, 7, 7], { causal: true })).not.toBeNull();
    expect(of([7, 7, 5], [5, 5, 7, 7], { causal: true })).toBeNull();
    expect(of([7, 7, 5], [5, 5, 7, 7], { window: { left: 1, right: 1 } })).toBeNull();
    expect(of([7, 7, 5], [5, 5, 7, 7])).not.toBeNull();
    const ofBatches = (batch: number) => ({
      shape: [batch, 2],
      data: Int32Array.from(upTo(2 * batch), () => 7),
    });
    const wide = variedProblem(
      { segments: { queries: ofBatches(2), keys: ofBatches(2) } },
      { ...small, queries: 2, keys: 2 },
    );
    expect(() => loneDocument(wide, 7)).toThrow(NotApplicable);
    const one = variedProblem(
      { segments: { queries: ofBatches(1), keys: ofBatches(1) } },
      { ...small, batch: 1, queries: 2, keys: 2 },
    );
    expect(problemShape(loneDocument(one, 7).alone).queries).toBe(2);
    expect(() => loneDocument(plain, 7)).toThrow(NotApplicable);
  });

  it('are tried alone, among others in another order and twice, and as documents', async () => {
    const all = await forms('sequences-alone', three, ['packed', 'segments']);
    all.forEach((form, choice) => {
      if (choice % 3 === 2) return expect(form).toBeNull();
      const [whole, alone] = form!;
      expect(alone.sequences).toBeUndefined();
      const which = Math.floor(choice / 3);
      if (choice % 3 === 0) expect(whole).toBe(three);
      else expect(whole.sequences).toHaveLength(3 + (which % 2));
    });
    const aloneOf = (kind: number) =>
      new Set(all.filter((_, i) => i % 3 === kind).map((form) => problemShape(form![1]).queries));
    expect([aloneOf(0), aloneOf(1)]).toEqual([new Set([2, 4, 3]), new Set([2, 4, 3])]);
    const ofDocuments = (await forms('sequences-alone', documents, ['segments'])).filter(
      (_, i) => i % 3 === 2,
    );
    expect(new Set(ofDocuments.map((form) => problemShape(form![1]).queries))).toEqual(
      new Set([1, 2]),
    );
    const single = variedProblem({}, { ...small, batch: 1 });
    expect((await forms('sequences-alone', single, [])).every((form) => form === null)).toBe(true);
    const empty = {
      ...three,
      sequences: sequencesOf([
        [0, 3],
        [9, 9],
      ]),
    };
    for (const form of (await forms('sequences-alone', empty, ['packed'])).filter(
      (_, i) => i % 3 === 0,
    ))
      expect(problemShape(form![1]).queries).toBe(9);
  });

  it('have factors of their own rows where there are several along rows or batches', () => {
    const factored = (shape: readonly number[], blocks: readonly number[]) => {
      const k = {
        ...plain.k,
        scales: {
          factors: [
            { name: 'descale', format: 'fp32', shape, blocks, values: new Float64Array(8) },
          ],
        },
      };
      return hasRowFactors({ ...plain, k } as unknown as Problem);
    };
    expect(hasRowFactors(copyProblem(plain))).toBe(false);
    expect(factored([1, 1, 1, 1], [2, 2, 4, 3])).toBe(false);
    expect(factored([1, 2, 1, 1], [2, 1, 4, 3])).toBe(false);
    expect(factored([1, 2, 2, 1], [2, 1, 2, 3])).toBe(true);
    expect(factored([2, 1, 1, 1], [1, 2, 4, 3])).toBe(true);
    expect(factored([1, 1, 1, 3], [2, 2, 4, 1])).toBe(false);
  });
});

describe('forms of storage', () => {
  const kinds: readonly FeatureKind[] = ['packed', 'padded', 'paged'];

  it('hold 0, NaN, ∞ and 1e30 in unused slots, in every form that is promised', async () => {
    const all = await forms('unused-storage', causal, kinds);
    const pages: number[] = [];
    all.forEach((form, choice) => {
      expect(form).toHaveLength(4);
      const stored = form!.map((posed) => storedOf(posed)!);
      expect(new Set(stored.map(({ keys }) => keys.form))).toEqual(new Set([kinds[choice % 3]]));
      const unused = stored.map((one) => {
        const values = one.tensors!.k.data as unknown as Float32Array;
        const rows = new Set(one.keys.slots);
        const { groups, slotsPerGroup, headsFirst } = one.keys;
        const slots = upTo(groups * slotsPerGroup).filter((slot) => !rows.has(slot));
        expect(slots.length).toBeGreaterThan(0);
        // Of the first kv head, three columns a row.
        const at = (slot: number) =>
          headsFirst
            ? (Math.floor(slot / slotsPerGroup) * 2 * slotsPerGroup + (slot % slotsPerGroup)) * 3
            : slot * 6;
        return values[at(slots[slots.length - 1])];
      });
      expect(unused).toEqual([0, NaN, Infinity, Math.fround(1e30)]);
      if (choice % 3 === 2) pages.push(stored[0].keys.slotsPerGroup);
    });
    expect(pages).toEqual([16, 256, 1, 192, 64, 160, 128, 144, 2, 512, 3, 130]);
  });

  it('are compared with the plainest that is promised', async () => {
    for (const [first, features] of [
      ['packed', kinds],
      ['padded', ['padded', 'paged']],
      ['paged', ['paged']],
    ] as const)
      for (const form of await forms('storage-forms', causal, features as readonly FeatureKind[])) {
        const [plainest, other] = form!.map((posed) => storedOf(posed)!);
        expect(plainest.keys.form).toBe(first);
        expect(features).toContain(other.keys.form);
        expect(other.queries.form).toBe(
          first === 'packed' && other.keys.form !== 'padded' ? 'packed' : 'padded',
        );
      }
    const all = (await forms('storage-forms', causal, kinds)).map((form) => storedOf(form![1])!);
    // Keys in front of padded ones in every second form.
    const lefts = all
      .filter(({ keys }) => keys.form === 'padded')
      .map(({ keys }) =>
        keys.slots.some((slot, row) => row % 4 === 0 && slot % keys.slotsPerGroup > 0),
      );
    expect(lefts).toEqual(upTo(12).map((i) => i % 2 === 1));
  });

  it('are filled before a run where that is promised', async () => {
    const law = 'unwritten-buffers';
    const fills: unknown[] = [];
    const kernel: AttentionKernel = (problem, conditions) => {
      fills.push(conditions?.fill);
      return zeros(problem);
    };
    for (const choice of upTo(3))
      await askedBy(law, { problem: plain, choice }, { kernel, promises: { fillsBuffers: true } });
    expect(fills).toEqual([0, NaN, 0, Infinity, 0, 1e30]);
    expect((await askedBy(law, { problem: plain, choice: 0 }, { kernel })).result.status).toBe(
      'inapplicable',
    );
  });
});
