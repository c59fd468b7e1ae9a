import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  featureKinds,
  lawIds,
  laws,
  resolvePromises,
  type FeatureKind,
  type KernelPromises,
  type Law,
  type LawId,
} from '../../../properties/index.js';
import {
  admittedFeatures,
  drawnAt,
  fillRows,
  isPromised,
  isWithinScoreLimit,
  promisedConstraints,
  takesMasks,
  takesPositiveScales,
} from '../../../properties/laws/promised-problem.js';
import { planCheck } from '../../../properties/suite/plan-check.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';
import { variedProblem } from './try-law.js';

const storage: readonly FeatureKind[] = ['packed', 'padded', 'paged'];
const promised = (promises: KernelPromises = {}) => resolvePromises(promises);

describe('what a law says nothing of', () => {
  /** Why each law cannot have problems with a feature. */
  const without: Readonly<Partial<Record<LawId, readonly FeatureKind[]>>> = {
    // Rows and keys that change places, where a feature goes by places.
    'query-order': ['alibi', 'block-mask', 'packed'],
    'key-permutation': ['alibi', 'block-mask', 'packed', 'prefix'],
    'repeated-keys': ['sink', 'alibi', 'block-mask', 'packed', 'prefix'],
    'key-splitting': ['sink', 'alibi', 'block-mask', 'prefix'],
    merging: ['sink', 'alibi', 'block-mask', 'prefix'],
    padding: ['packed'],
    'gradients-key-permutation': ['alibi', 'block-mask', 'packed', 'prefix'],
    'gradients-decode': ['packed'],
    // Weights that do not sum to 1, values that are not those of V, LSEs that are not of the keys.
    'weights-sum-to-one': ['sink', 'dropout', 'descale'],
    convexity: ['dropout', 'descale'],
    'nan-containment': ['dropout'],
    'value-scaling': ['sink'],
    'score-shift': ['sink', 'descale'],
    'lse-monotone': ['sink', 'bias', 'alibi', 'prefix', 'descale'],
    'gradients-of-level-values': ['sink', 'dropout', 'descale'],
    'gradients-of-one-key': ['sink', 'dropout', 'packed'],
    'gradients-key-shift': ['sink', 'descale'],
    'gradients-hidden-nan': ['descale'],
    // Numbers of their own.
    unbiased: featureKinds,
    exact: ['bias', 'alibi', 'sink', 'dropout', 'descale'],
    'exact-exp2': ['bias', 'alibi', 'sink', 'dropout', 'descale'],
  };

  it.each(lawIds)('%s: features', (id) => {
    const law: Law = laws[id];
    const refused = new Set(without[id] ?? []);
    // Sequences are refused in all forms; gradients are computed of packed ones alone.
    if (refused.has('packed')) for (const kind of storage) refused.add(kind);
    if (law.ofGradients === true)
      for (const kind of ['padded', 'paged'] as const) refused.add(kind);
    const admitted = admittedFeatures(law, { features: featureKinds });
    expect(admitted).toEqual(featureKinds.filter((kind) => !refused.has(kind)));
    expect(admittedFeatures(law, { features: ['mask'] })).toEqual(
      refused.has('mask') ? [] : ['mask'],
    );
  });

  it.each(lawIds)('%s: masks and caps', (id) => {
    const { constraints = {} }: Law = laws[id];
    const unmasked: readonly LawId[] = [
      'query-order',
      'key-permutation',
      'repeated-keys',
      'key-splitting',
      'merging',
      'gradients-key-permutation',
    ];
    const uncapped: readonly LawId[] = ['score-shift', 'gradients-key-shift'];
    if (unmasked.includes(id)) expect(constraints).toEqual({ causal: false, window: false });
    else if (uncapped.includes(id)) expect(constraints).toEqual({ softcap: false });
    else if (id === 'gradients-of-one-key')
      expect(constraints).toEqual({ keys: { min: 1, max: 1 } });
    else expect(constraints).toEqual({});
  });

  it('is what kernels that do not promise something are not tried on', () => {
    const refuses = (promises: KernelPromises) =>
      lawIds.filter((id) => {
        const { notFor }: Law = laws[id];
        return typeof notFor?.(promised(promises)) === 'string';
      });
    const always: LawId[] = [
      'configurations',
      'storage-forms',
      'unused-storage',
      'unwritten-buffers',
      'split-counts',
      'merging',
      'mask-tensors',
      'neutral-features',
      'sequences-alone',
      'gradients-stored-output',
      'means',
      'unreached',
      'same-expression',
    ];
    const more = (promises: KernelPromises) =>
      refuses(promises).filter((id) => !always.includes(id));
    expect(refuses({}).sort()).toEqual(always.filter((id) => id !== 'sequences-alone').sort());
    const ofMasks: LawId[] = [
      'masked-keys',
      'masked-nan-keys',
      'masked-nan-values',
      'empty-rows',
      'gradients-of-unseen',
      'gradients-hidden-nan',
    ];
    const ofDiagonals: LawId[] = ['padding', 'causal-is-window'];
    expect(more({ causal: false, window: false }).sort()).toEqual(
      [...ofMasks, ...ofDiagonals].sort(),
    );
    expect(more({ causal: false, window: false, features: ['mask'] }).sort()).toEqual(
      [...ofDiagonals].sort(),
    );
    for (const masked of [
      { causal: false },
      { window: false },
      { causal: 'only', window: false },
    ] as const)
      expect(more(masked)).toEqual(
        'causal' in masked && masked.causal === 'only' ? ['unbiased'] : [],
      );
    expect(more({ groupedHeads: false })).toEqual(['grouped-heads', 'gradients-grouped']);
    expect(more({ groupSizes: [1] })).toContain('grouped-heads');
    expect(more({ groupSizes: [2, 4] })).toEqual(['grouped-heads', 'gradients-grouped']);
    expect(more({ groupSizes: [1, 4] })).toEqual([]);
    expect(more({ emptyRows: false })).toEqual(['empty-rows']);
    expect(more({ scales: ['zero', 'negative'] })).toEqual(['unbiased', 'exact', 'exact-exp2']);
    expect(more({ scales: ['default'] })).toEqual(['exact-exp2']);
    expect(more({ scales: ['odd'] })).toEqual([]);
    const kernel = () => expect.fail();
    const splits = { counts: [2], kernel };
    const rest = (promises: KernelPromises) =>
      always
        .filter((id) => !refuses(promises).includes(id))
        .filter((id) => id !== 'sequences-alone');
    expect(rest({ splits })).toEqual(['split-counts']);
    expect(rest({ merge: kernel })).toEqual(['merging']);
    const follow = () => expect.fail();
    expect(rest({ follow })).toEqual(['means', 'unreached', 'same-expression']);
    expect(rest({ fillsBuffers: true })).toEqual(['unwritten-buffers']);
    expect(rest({ readsForward: true })).toEqual(['gradients-stored-output']);
    expect(rest({ configurations: { other: { kernel } } })).toEqual(['configurations']);
    expect(rest({ features: ['paged'] })).toEqual(['storage-forms', 'unused-storage']);
    expect(rest({ features: ['mask'] })).toEqual(['mask-tensors', 'neutral-features']);
    expect(rest({ features: ['block-mask'] })).toEqual(['mask-tensors', 'neutral-features']);
    expect(rest({ features: ['wide-groups'] })).toEqual([]);
  });

  it('is not planned, and says why', () => {
    const planned = (promises: KernelPromises, id: LawId) =>
      planCheck(promises, { laws: [id] }).laws[0];
    const gradients = { gradients: true } as const;
    expect(planned({}, 'gradients-of-zero')).toMatchObject({
      skipped: 'gradients are not promised',
      isPromised: false,
      regimes: [],
    });
    expect(planned(gradients, 'gradients-of-zero')).toMatchObject({
      skipped: null,
      isPromised: true,
    });
    expect(planned({ laws: { determinism: 'none' } }, 'determinism').skipped).toBe('not promised');
    expect(planned({ causal: 'only' }, 'query-order').skipped).toMatch(/without a causal mask/);
    expect(planned({ causal: 'only' }, 'padding').skipped).toBeNull();
    expect(planCheck({}).laws.map(({ id }) => id)).toEqual(
      lawIds.filter((id) => !id.startsWith('gradients-')),
    );
    expect(planCheck(gradients).laws.map(({ id }) => id)).toEqual(lawIds);
    expect(planCheck({}, { regimes: ['one-key'] }).laws[0].regimes).toEqual(['one-key']);
    expect(() => planCheck({}, { laws: ['none' as LawId] })).toThrow(/there is no law "none"/);
  });
});

describe('problems that are promised', () => {
  const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = problemShape(variedProblem());
  const plain = variedProblem();
  const takes = (promises: KernelPromises, problem: Problem = plain) =>
    isPromised(problem, promised(promises));

  it('have the sizes, groups and multiples that there are', () => {
    expect(takes({})).toBe(true);
    for (const [name, size] of Object.entries({
      batch,
      kvHeads,
      groupSize,
      queries,
      keys,
      qkDim,
      vDim,
    })) {
      for (const range of [{ min: size }, { max: size }, { min: size, max: size }])
        expect(takes({ sizes: { [name]: range } }), name).toBe(true);
      for (const range of [{ min: size + 1 }, { max: size - 1 }])
        if ((range.max ?? 1) > 0) expect(takes({ sizes: { [name]: range } }), name).toBe(false);
      expect(
        [size, size + 1].map((multiple) => takes({ multiples: { [name]: multiple } })),
      ).toEqual([true, false]);
    }
    expect([[2], [1, 4]].map((groupSizes) => takes({ groupSizes }))).toEqual([true, false]);
    const nothing = variedProblem({}, { keys: 0 });
    expect(takes({}, nothing)).toBe(false);
    expect(takes({ sizes: { keys: { min: 0 } } }, nothing)).toBe(true);
    expect(takes({ sizes: { keys: { min: 0 } }, emptyRows: false }, nothing)).toBe(false);
  });

  it('have the masks, caps, groups and features that are taken', () => {
    const causal = variedProblem({ causal: true });
    const windowed = variedProblem({ window: { left: 3, right: 3 } });
    const capped = variedProblem({ softcap: 3 });
    expect(
      [true, false, 'only' as const].map((mask) => [
        takes({ causal: mask }),
        takes({ causal: mask }, causal),
      ]),
    ).toEqual([
      [true, true],
      [true, false],
      [false, true],
    ]);
    expect([true, false].map((window) => [takes({ window }), takes({ window }, windowed)])).toEqual(
      [
        [true, true],
        [true, false],
      ],
    );
    expect(
      [true, false].map((softcap) => [takes({ softcap }), takes({ softcap }, capped)]),
    ).toEqual([
      [true, true],
      [true, false],
    ]);
    expect(
      [plain, variedProblem({}, { kvHeads: 4 })].map((problem) =>
        takes({ groupedHeads: false }, problem),
      ),
    ).toEqual([false, true]);
    const empty = variedProblem({ causal: true }, { queries: 5, keys: 4 });
    expect(
      [true, false].map((emptyRows) => [takes({ emptyRows }, causal), takes({ emptyRows }, empty)]),
    ).toEqual([
      [true, true],
      [true, false],
    ]);
    const masked = variedProblem({ prefix: 2 });
    expect([takes({}, masked), takes({ features: ['prefix'] }, masked)]).toEqual([false, true]);
  });

  it('have scores within the limit, raw and scaled, by the largest norms', () => {
    const q = tensor('fp32', [1, 1, 2, 2], (i) => [3, 4, 1, 0][i]);
    const k = tensor('fp32', [1, 1, 2, 2], (i) => [0, -2, NaN, 1][i]);
    const problem = { ...variedProblem({ scale: -0.5 }, { batch: 1, heads: 1, kvHeads: 1 }), q, k };
    const within = (raw: number, scaled: number) => isWithinScoreLimit(problem, { raw, scaled });
    expect([within(10, 5), within(9.9, 5), within(10, 4.9)]).toEqual([true, false, false]);
    expect([takes({ scoreLimit: { raw: 1e-3 } }), takes({ scoreLimit: { scaled: 1e-3 } })]).toEqual(
      [false, false],
    );
  });

  it('are drawn by constraints that say so', () => {
    const of = (promises: KernelPromises) => promisedConstraints(promised(promises));
    expect(of({})).toMatchObject({
      formats: ['bf16', 'fp16'],
      softcap: false,
      scales: ['default', 'odd'],
      maximumElements: 2 ** 18,
    });
    // Sizes that are promised to be large are drawn, however long a run takes.
    const fixed = (size: number) => ({ min: size, max: size });
    const large = { queries: fixed(512), keys: fixed(512), kvHeads: fixed(2), batch: fixed(1) };
    expect(of({ sizes: large, dims: [64], groupSizes: [3] }).maximumElements).toBe(
      512 * 512 * 64 * 6,
    );
    expect(of({ sizes: { queries: { max: 4096 } } }).maximumElements).toBe(2 ** 18);
    for (const name of [
      'causal',
      'window',
      'groupSize',
      'groupSizes',
      'emptyRows',
      'dims',
    ] as const)
      expect(of({})).not.toHaveProperty(name);
    expect([of({ causal: false }).causal, of({ causal: 'only' }).causal]).toEqual([false, true]);
    expect(
      of({
        window: false,
        softcap: true,
        groupedHeads: false,
        emptyRows: false,
        dims: [64],
        groupSizes: [1],
      }),
    ).toMatchObject({
      window: false,
      groupSize: { max: 1 },
      emptyRows: false,
      dims: [64],
      groupSizes: [1],
    });
    expect(of({ softcap: true })).not.toHaveProperty('softcap');
    expect(
      of({ sizes: { keys: { max: 9 } }, multiples: { keys: 3 }, features: ['mask'] }),
    ).toMatchObject({ keys: { max: 9 }, multiples: { keys: 3 }, features: ['mask'] });
  });

  it('are drawn larger where that is asked for and leaves room, and hide keys and have positive scales where they may', () => {
    const sizes = (large: Parameters<typeof drawnAt>[1], regime: 'normal' | 'one-key' = 'normal') =>
      fc
        .sample(drawnAt({ regimes: [regime], keys: { max: 5 } }, large), { numRuns: 12, seed: 3 })
        .map((problem) => problemShape(problem).keys);
    expect(Math.max(...sizes(null))).toBeLessThanOrEqual(5);
    expect(Math.min(...sizes({ keys: { min: 20, max: 24 } }))).toBeGreaterThanOrEqual(20);
    expect(new Set(sizes({ keys: { min: 20, max: 24 } }, 'one-key'))).toEqual(new Set([1]));
    const hides = (promises: KernelPromises) =>
      takesMasks(promised({ causal: false, window: false, ...promises }));
    expect([
      hides({}),
      hides({ causal: true }),
      hides({ causal: 'only' }),
      hides({ window: true }),
    ]).toEqual([false, true, true, true]);
    const hiding: readonly FeatureKind[] = [
      ...(['mask', 'bias', 'segments', 'block-mask', 'key-lists'] as const),
      ...storage,
    ];
    for (const kind of featureKinds)
      expect(hides({ features: [kind] }), kind).toBe(hiding.includes(kind));
    const positive = (...scales: NonNullable<KernelPromises['scales']>) =>
      takesPositiveScales(promised({ scales }));
    expect([positive('default'), positive('odd'), positive('zero', 'negative')]).toEqual([
      true,
      true,
      false,
    ]);
    expect([...fillRows(2, 2, 2, (head, row, column) => 100 * head + 10 * row + column)]).toEqual([
      0, 1, 10, 11, 100, 101, 110, 111,
    ]);
  });
});
