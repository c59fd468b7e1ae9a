import { describe, expect, it } from 'vitest';
import { featureKinds, type FeatureKind } from '../../../properties/index.js';
import {
  drawKinds,
  excludeOneAnother,
  hasRoom,
  kindSizes,
  takesFeatures,
} from '../../../properties/problems/features/feature-kinds.js';
import {
  drawForm,
  drawPages,
  formComplexity,
  posedFor,
  simplerForms,
  takesSequences,
} from '../../../properties/problems/features/stored-forms.js';
import { randomValues } from '../../../properties/problems/values.js';
import { storedOf, type StoredForm } from '../../../src/problem/index.js';
import { packedProblem } from '../../problem/packed-problem.js';
import { upTo, seeds, expectShare } from './shares.js';

describe('kinds of features', () => {
  const ends: readonly FeatureKind[] = ['packed', 'padded', 'paged', 'segments', 'block-mask'];

  it('exclude one another where both say where keys end, or what dimensions are', () => {
    for (const a of featureKinds)
      for (const b of featureKinds) {
        const bothEnd = ends.includes(a) && ends.includes(b);
        const isListed =
          [a, b].includes('key-lists') &&
          [a, b].some((kind) => ['packed', 'padded', 'paged'].includes(kind));
        const bothSizes = [a, b].sort().join() === 'latent-dims,wide-groups';
        expect(excludeOneAnother(a, b), `${a} ${b}`).toBe(
          a !== b && (bothEnd || bothSizes || isListed),
        );
      }
  });

  it('are up to three, and those needed, none of which excludes another', () => {
    const counts = seeds.map((seed) => {
      const kinds = drawKinds(featureKinds, [], randomValues(seed));
      expect(new Set(kinds).size).toBe(kinds.length);
      for (const a of kinds) for (const b of kinds) expect(excludeOneAnother(a, b)).toBe(false);
      return kinds.length;
    });
    for (const [count, share] of [1 / 6, 1 / 2, 1 / 6, 1 / 6].entries())
      expectShare(counts, count, share);
    for (const seed of seeds.slice(0, 40)) {
      const kinds = drawKinds(['mask', 'segments'], ['packed'], randomValues(seed));
      expect(kinds[0]).toBe('packed');
      expect(kinds.slice(1).every((kind) => kind === 'mask')).toBe(true);
    }
    expect(
      new Set(seeds.flatMap((seed) => drawKinds(featureKinds, [], randomValues(seed)))),
    ).toEqual(new Set(featureKinds));
  });

  it('ask for sizes, and have room where ranges, multiples and groups hold them', () => {
    const of = (kinds: readonly FeatureKind[]) =>
      seeds.map((seed) => kindSizes(kinds, randomValues(seed)));
    const wide = of(['mask', 'wide-groups']);
    for (const groupSize of [16, 32, 64, 128])
      expectShare(
        wide.map((one) => one.groupSize),
        groupSize,
        0.25,
      );
    expect(new Set(wide.map(({ batch, kvHeads }) => `${batch} ${kvHeads}`))).toEqual(
      new Set(['1 1']),
    );
    expect(new Set(wide.map((one) => one.queries))).toEqual(new Set([1, 2]));
    for (const name of ['qkDim', 'vDim'] as const)
      expect(new Set(wide.map((one) => one[name]))).toEqual(new Set(upTo(16).map((i) => i + 1)));
    const latent = of(['latent-dims']);
    expect(
      new Set(
        latent.map(({ qkDim, vDim, groupSize, batch, kvHeads }) =>
          [qkDim, vDim, groupSize, batch, kvHeads].join(),
        ),
      ),
    ).toEqual(new Set(['192,128,1,1,1', '576,512,1,1,1']));
    expect(new Set(latent.map((one) => one.queries))).toEqual(new Set([1, 2, 3]));
    expect(new Set(latent.map((one) => one.keys)).size).toBe(64);
    expect([of(['paged'])[0], of(['mask'])[0]]).toEqual([{ batch: 1 }, {}]);
    const room = (
      kind: FeatureKind,
      ranges: Parameters<typeof hasRoom>[1]['ranges'] = {},
      more: Partial<Parameters<typeof hasRoom>[1]> = {},
    ) => hasRoom(kind, { ranges, multiples: {}, groupSizes: null, ...more });
    for (const kind of featureKinds) expect(room(kind)).toBe(true);
    for (const kind of ['packed', 'padded', 'paged', 'wide-groups', 'latent-dims'] as const)
      expect(room(kind, { batch: { min: 2 } })).toBe(false);
    expect(room('mask', { batch: { min: 2 }, kvHeads: { min: 2 } })).toBe(true);
    expect(room('packed', { kvHeads: { min: 2 } })).toBe(true);
    for (const kind of ['wide-groups', 'latent-dims'] as const)
      expect(room(kind, { kvHeads: { min: 2 } })).toBe(false);
    expect(
      [{ max: 127 }, { max: 128 }, { min: 17 }, { min: 16 }].map((groupSize) =>
        room('wide-groups', { groupSize }),
      ),
    ).toEqual([false, true, false, true]);
    expect(room('wide-groups', {}, { groupSizes: [16, 32, 64] })).toBe(false);
    expect(room('wide-groups', {}, { groupSizes: [16, 32, 64, 128] })).toBe(true);
    expect(room('latent-dims', { groupSize: { min: 2 } })).toBe(false);
    expect(
      [{ max: 575 }, { max: 576 }, { min: 193 }].map((qkDim) => room('latent-dims', { qkDim })),
    ).toEqual([false, true, false]);
    expect(
      [{ max: 511 }, { max: 512 }, { min: 129 }].map((vDim) => room('latent-dims', { vDim })),
    ).toEqual([false, true, false]);
    expect(
      [128, 64].map((vDim) => room('latent-dims', {}, { multiples: { vDim: vDim + 1 } })),
    ).toEqual([false, false]);
    expect(room('latent-dims', {}, { multiples: { qkDim: 64, vDim: 128 } })).toBe(true);
  });

  it('are taken with a problem: sequences in any form that is', () => {
    const problem = packedProblem(
      [
        [1, 2],
        [2, 1],
      ],
      'bf16',
    );
    for (const kind of ['packed', 'padded', 'paged'] as const)
      expect(takesFeatures(problem, [kind])).toBe(true);
    expect([takesFeatures(problem, []), takesFeatures(problem, ['mask'])]).toEqual([false, false]);
    expect(
      ['packed', 'padded', 'paged', 'mask'].map((kind) => takesSequences([kind as FeatureKind])),
    ).toEqual([true, true, true, false]);
  });
});

describe('forms of packed sequences', () => {
  const form = (kinds: readonly FeatureKind[], seed: number) =>
    drawForm(kinds, { random: randomValues(seed) }, 3);

  it('are drawn for padded and paged ones, with unused slots of each sort', () => {
    expect(form(['packed', 'mask'], 1)).toBeNull();
    const padded = seeds.map((seed) => form(['padded'], seed)!);
    const side = (of: StoredForm['queries' | 'keys']) =>
      of.kind === 'padded' ? of : expect.fail(of.kind);
    for (const one of padded) {
      const [ofQueries, ofKeys] = [side(one.queries), side(one.keys)];
      expect(ofQueries.left).toBeUndefined();
      expect(ofKeys.headsFirst).toBe(ofQueries.headsFirst);
      for (const left of ofKeys.left ?? []) expect(left >= 0 && left <= 5).toBe(true);
      expect((ofKeys.left ?? [0, 0, 0]).length).toBe(3);
    }
    expectShare(
      padded.map(({ keys: one }) => side(one).left !== undefined),
      true,
      0.5,
    );
    expect(new Set(padded.flatMap(({ keys: one }) => side(one).left ?? []))).toEqual(
      new Set(upTo(6)),
    );
    for (const name of ['queries', 'keys'] as const)
      expect(new Set(padded.map((one) => one[name].spare))).toEqual(new Set([0, 1, 2, 3]));
    expectShare(
      padded.map(({ queries: one }) => side(one).headsFirst),
      true,
      0.5,
    );
    const paged = seeds.map((seed) => form(['paged'], seed)!);
    expectShare(
      paged.map((one) => one.queries.kind),
      'packed',
      0.5,
    );
    expectShare(
      paged.map((one) => one.queries.kind),
      'padded',
      0.5,
    );
    expect(new Set(paged.map((one) => one.keys.kind))).toEqual(new Set(['paged']));
  });

  it('have pages of usual sizes or any, in order or not, shared or not', () => {
    const pages = seeds.map((seed) => drawPages(randomValues(seed)));
    const usual = [1, 2, 16, 64, 128, 256];
    for (const size of usual)
      expect(pages.filter(({ pageSize }) => pageSize === size).length).toBeGreaterThan(15);
    const others = pages.map(({ pageSize }) => pageSize).filter((size) => !usual.includes(size));
    expect(others.every((size) => size >= 1 && size <= 40)).toBe(true);
    expect(Math.max(...others)).toBeGreaterThan(36);
    expect(others.length / pages.length).toBeGreaterThan(0.14);
    expectShare(
      pages.map(({ shared }) => shared),
      true,
      0.5,
    );
    expectShare(
      pages.map(({ arrange }) => arrange !== undefined),
      true,
      0.75,
    );
    expect(new Set(pages.map(({ spare }) => spare))).toEqual(new Set([0, 1, 2, 3]));
    const orders = pages.flatMap(({ arrange }) => (arrange === undefined ? [] : [arrange(6)]));
    for (const order of orders) expect([...order].sort((a, b) => a - b)).toEqual(upTo(6));
    expect(new Set(orders.map(String)).size).toBeGreaterThan(100);
    for (const place of upTo(6))
      expectShare(
        orders.map((order) => order[place]),
        0,
        1 / 6,
      );
  });

  it('are simpler step by step, to the plainest that is taken', () => {
    const arrange = (pages: number) => upTo(pages).reverse();
    const paged: StoredForm = {
      queries: { kind: 'padded', spare: 2 },
      keys: { kind: 'paged', pageSize: 5, spare: 3, shared: true, arrange },
    };
    const { keys: ofPages } = paged;
    const simpler = [...simplerForms(paged, ['paged'])];
    expect(simpler).toEqual([
      { ...paged, queries: { kind: 'padded', spare: 0 } },
      { ...paged, keys: { ...ofPages, spare: 0 } },
      { ...paged, keys: { kind: 'paged', pageSize: 5, spare: 3, shared: true } },
      { ...paged, keys: { ...ofPages, shared: false } },
      { ...paged, keys: { ...ofPages, pageSize: 2 } },
    ]);
    expect(formComplexity(paged)).toBe(2 + 5 + 5 + 1 + 1);
    const large: StoredForm = {
      queries: { kind: 'padded' },
      keys: { kind: 'paged', pageSize: 256 },
    };
    const plainest: StoredForm = {
      queries: { kind: 'padded' },
      keys: { kind: 'paged', pageSize: 16 },
    };
    expect([...simplerForms(large, ['paged'])]).toEqual([
      plainest,
      { ...large, keys: { kind: 'paged', pageSize: 128 } },
    ]);
    expect([...simplerForms(large, ['packed'])][0]).toBeNull();
    expect([
      ...simplerForms({ ...large, keys: { kind: 'paged', pageSize: 1 } }, ['paged']),
    ]).toEqual([]);
    const padded: StoredForm = {
      queries: { kind: 'padded' },
      keys: { kind: 'padded', spare: 1, left: [1, 2] },
    };
    expect([...simplerForms(padded, ['padded'])]).toEqual([
      { queries: { kind: 'padded' }, keys: { kind: 'padded' } },
      { ...padded, keys: { kind: 'padded', spare: 0, left: [1, 2] } },
      { ...padded, keys: { kind: 'padded', spare: 1 } },
    ]);
    const complexities = [
      undefined,
      { queries: { kind: 'packed', spare: 1 }, keys: { kind: 'packed' } },
      padded,
    ].map((one) => formComplexity(one as StoredForm | undefined));
    expect(complexities).toEqual([0, 2, 3]);
  });

  it('are the plainest that a kernel takes where a problem is in none', () => {
    const problem = packedProblem(
      [
        [1, 2],
        [2, 1],
      ],
      'bf16',
    );
    const posed = (features: readonly FeatureKind[]) => storedOf(posedFor(problem, features));
    expect(posedFor(problem, ['packed', 'paged'])).toBe(problem);
    expect(posedFor(problem, ['mask'])).toBe(problem);
    expect([posed(['padded'])!.queries.form, posed(['padded'])!.keys.form]).toEqual([
      'padded',
      'padded',
    ]);
    const paged = posed(['padded', 'paged'])!.keys;
    expect([paged.form, paged.form === 'paged' && paged.slotsPerGroup]).toEqual(['paged', 16]);
    const alreadyPosed = posedFor(problem, ['paged']);
    expect(posedFor(alreadyPosed, ['padded'])).toBe(alreadyPosed);
  });
});
