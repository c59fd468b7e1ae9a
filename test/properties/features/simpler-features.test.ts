import { describe, expect, it } from 'vitest';
import { simplerFeatures } from '../../../properties/problems/features/feature-shrinker.js';
import { simplerFeature } from '../../../properties/problems/features/simpler-features.js';
import type { PlainProblem } from '../../../properties/problems/plain-problem.js';
import { resolveConstraints } from '../../../properties/problems/resolve-constraints.js';
import { tensorScales } from '../../../src/formats/index.js';
import type { ProblemFeatures, Tensor } from '../../../src/problem/index.js';
import { sequencesOf, tensor } from '../../setup/problems.js';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const numbers = (...values: number[]): Tensor => tensor('fp32', [values.length], (i) => values[i]);
const truths = (shape: readonly number[], ...data: number[]) => ({
  shape,
  data: Uint8Array.from(data),
});
const int32 = (...data: number[]) => ({ shape: [data.length], data: Int32Array.from(data) });

/** What one feature becomes, step by step. */
function simpler<Name extends keyof ProblemFeatures>(
  name: Name,
  feature: NonNullable<ProblemFeatures[Name]>,
) {
  const features = { prefix: 9, [name]: feature };
  return [...simplerFeature(name, features)].map((all) => {
    if (name !== 'prefix') expect(all.prefix).toBe(9);
    return all[name] as NonNullable<ProblemFeatures[Name]>;
  });
}

describe('one feature', () => {
  const inPlain = (tensors: readonly Tensor[]) =>
    tensors.map(({ shape, data }) => [shape.join('×'), ...data].join(' '));

  it('mask: all true, then one axis after the other taken from its first place', () => {
    const mask = truths([2, 3], 1, 0, 1, 0, 0, 1);
    expect(
      simpler('mask', mask).map(({ shape, data }) => [shape.join('×'), ...data].join(' ')),
    ).toEqual(['2×3 1 1 1 1 1 1', '1×1×1×3 1 0 1', '1×1×2×1 1 0']);
    const deep = truths([2, 1, 2, 1], 1, 0, 0, 1);
    expect(
      simpler('mask', deep)
        .slice(1)
        .map(({ shape, data }) => [shape.join('×'), ...data].join(' ')),
    ).toEqual(['1×1×2×1 1 0', '2×1×1×1 1 0']);
  });

  it('bias: zeros, ones, signs, whole numbers, no hidden keys; then narrower', () => {
    const bias = tensor('fp32', [1, 3], (i) => [2.4, -0.6, -Infinity][i]);
    expect(inPlain(simpler('bias', bias))).toEqual([
      '1×3 0 0 -Infinity',
      '1×3 1 1 -Infinity',
      '1×3 1 -1 -Infinity',
      '1×3 2 -1 -Infinity',
      `1×3 ${Math.fround(2.4)} ${Math.fround(-0.6)} 0`,
      `1×1×1×1 ${Math.fround(2.4)}`,
    ]);
    expect(
      simpler(
        'bias',
        tensor('fp32', [1, 1], () => 0),
      ),
    ).toHaveLength(4);
  });

  it('alibi and sink: plainer numbers, and one set for all batches', () => {
    const slopes = tensor('fp32', [2, 2], (i) => i / 4);
    const all = simpler('alibiSlopes', slopes);
    expect(inPlain(all.slice(-1))).toEqual(['2 0 0.25']);
    expect(all).toHaveLength(5);
    expect(simpler('alibiSlopes', numbers(0.5, 0.25))).toHaveLength(4);
    const sink = { logits: numbers(2.5, -Infinity), inLse: true };
    const sinks = simpler('sink', sink);
    expect(sinks.map(({ logits }) => [...logits.data])).toEqual([
      [0, -Infinity],
      [1, -Infinity],
      [1, -Infinity],
      [3, -Infinity],
      [2.5, 0],
    ]);
    expect(sinks.every(({ inLse }) => inLse)).toBe(true);
  });

  it('documents, prefix, blocks and dropout: one and two, none and half, all, nothing dropped', () => {
    const segments = { queries: int32(0, 2), keys: int32(1, 3, 0) };
    expect(simpler('segments', segments)).toEqual([
      { queries: int32(1, 1), keys: int32(1, 1, 1) },
      { queries: int32(0, 1), keys: int32(1, 1, 0) },
    ]);
    expect([simpler('prefix', 5), simpler('prefix', 1), simpler('prefix', 0)]).toEqual([
      [0, 2],
      [0],
      [],
    ]);
    const blockMask = {
      counts: { shape: [1, 1, 2], data: Int32Array.of(1, 0) },
      indices: { shape: [1, 1, 2, 3], data: Int32Array.of(2, 0, 0, 0, 0, 0) },
      blockQueries: 4,
      blockKeys: 2,
    };
    expect(simpler('blockMask', blockMask)).toEqual([
      {
        ...blockMask,
        counts: { shape: [1, 1, 2], data: Int32Array.of(3, 3) },
        indices: { shape: [1, 1, 2, 3], data: Int32Array.of(0, 1, 2, 0, 1, 2) },
      },
    ]);
    const none = {
      ...blockMask,
      counts: { shape: [1, 1, 0], data: new Int32Array(0) },
      indices: { shape: [1, 1, 0, 3], data: new Int32Array(0) },
    };
    expect(simpler('blockMask', none)).toEqual([]);
    const kept = truths([1, 2], 0, 1);
    expect(
      simpler('dropout', { kept, probability: 0.1 }).map(({ kept: { data }, probability }) => [
        ...data,
        probability,
      ]),
    ).toEqual([
      [1, 1, 0.1],
      [0, 0.1],
      [0, 1, 0],
      [0, 1, 0.5],
    ]);
    expect(simpler('sequences', sequencesOf([[1, 2]]))).toEqual([]);
  });
});

/** A problem of two queries and four keys, of two heads, with features. */
function plainOf(
  features: ProblemFeatures | undefined,
  changes: Partial<PlainProblem> = {},
): PlainProblem {
  const sizes = { batch: 1, kvHeads: 1, groupSize: 2, queries: 2, keys: 4, qkDim: 1, vDim: 1 };
  return {
    sizes,
    formats: { q: 'e4m3', k: 'e4m3', v: 'e4m3' },
    values: { q: new Float64Array(4), k: Float64Array.from(upTo(4)), v: new Float64Array(4) },
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
    features,
    ...changes,
  };
}

const constraints = resolveConstraints({ features: ['packed', 'mask'] });
const steps = (plain: PlainProblem, of = constraints) => [...simplerFeatures(plain, of)];

describe('the features of a problem', () => {
  it('are left out: all, each, and sequences where nothing is broadcast to them', () => {
    const names = (features: ProblemFeatures) =>
      steps(plainOf(features)).map((plain) =>
        Object.keys(plain.features ?? {})
          .sort()
          .join(' '),
      );
    const sequences = sequencesOf([
      [1, 2],
      [1, 2],
    ]);
    const sink = { logits: numbers(0, 0), inLse: false };
    expect(names({ sink, prefix: 2 }).slice(0, 3)).toEqual(['', 'prefix', 'sink']);
    expect(names({ sequences }).slice(0, 1)).toEqual(['']);
    expect(new Set(names({ sequences, prefix: 2 }))).toEqual(
      new Set(['', 'sequences', 'prefix', 'prefix sequences']),
    );
    const mask = truths([2, 1, 1, 2], 1, 1, 0, 1);
    expect(names({ sequences, mask })).not.toContain('mask');
    expect(steps(plainOf(undefined))).toEqual([]);
  });

  it('are simpler by their complexity alone, and hide some key less, not all', () => {
    const zeros = { logits: numbers(0, 0), inLse: true };
    expect(steps(plainOf({ sink: zeros })).map(({ features }) => features)).toEqual([{}]);
    expect(
      steps(plainOf({ sink: { ...zeros, logits: numbers(3, 0) } })).map(
        ({ features }) => features?.sink && [...features.sink.logits.data],
      ),
    ).toEqual([undefined, [0, 0], [1, 1], [1, 0]]);
    const masks = steps(plainOf({ mask: truths([2, 4], 0, 0, 0, 0, 1, 0, 0, 0) })).map(
      ({ features }) => features?.mask && [...features.mask.data].join(''),
    );
    // The first row alone shows nothing, which nobody means.
    expect(masks).toEqual([undefined, '11111111', '01']);
    const dropouts = steps(plainOf({ dropout: { kept: truths([1], 1), probability: 0.25 } })).map(
      ({ features }) => features?.dropout?.probability,
    );
    expect(dropouts).toEqual([undefined, 0, 0.5]);
  });

  it('are fewer sequences: without empty ones, all or the last, and without the rows of one', () => {
    const sequences = sequencesOf([
      [0, 0],
      [1, 3],
      [0, 0],
      [1, 1],
    ]);
    const all = steps(plainOf({ sequences })).map(({ features, sizes }) => [
      (features?.sequences ?? []).map((one) => `${one.queries}×${one.keys}`).join(' '),
      sizes.queries,
      sizes.keys,
    ]);
    expect(all).toEqual([
      ['', 2, 4],
      ['1×3 1×1', 2, 4],
      ['0×0 1×3 1×1', 2, 4],
      ['0×0 0×0 0×0 1×1', 1, 1],
      ['0×0 1×3 0×0 0×0', 1, 3],
    ]);
    const least = resolveConstraints({ features: ['packed'], keys: { min: 2 } });
    expect(
      steps(plainOf({ sequences }), least)
        .filter(({ sizes }) => sizes.keys < 4)
        .map(({ sizes }) => sizes.keys),
    ).toEqual([3]);
    const multiples = resolveConstraints({ features: ['packed'], multiples: { keys: 3 } });
    expect(
      steps(plainOf({ sequences }), multiples)
        .filter(({ sizes }) => sizes.keys < 4)
        .map(({ sizes }) => sizes.keys),
    ).toEqual([3]);
    // What is broadcast to them goes with those that are left.
    const masked = steps(
      plainOf({
        sequences: sequencesOf([
          [0, 0],
          [2, 4],
        ]),
        mask: truths([2, 1, 1, 1], 0, 1),
      }),
    );
    expect(
      masked.map(
        ({ features }) =>
          features?.mask && [features.sequences?.length, ...features.mask.data].join(' '),
      ),
    ).toContain('1 1');
  });

  it('are fewer factors: none, and one tensor less', () => {
    const shape = [1, 1, 4, 1];
    const of = (size: readonly number[]) =>
      tensorScales({ format: 'e4m3', shape: size }, [
        {
          name: 'descale',
          format: 'fp32',
          values: Float64Array.of(2),
          shape: [1, 1, 1, 1],
          blocks: size,
        },
      ]);
    const factored = plainOf(undefined, { factors: { k: of(shape), v: of(shape) } });
    expect(steps(factored).map(({ factors }) => Object.keys(factors ?? {}).join())).toEqual([
      '',
      'v',
      'k',
    ]);
    expect(
      steps(plainOf(undefined, { factors: { k: of(shape) } })).map(({ factors }) => factors),
    ).toEqual([undefined]);
  });

  it('are in plainer forms that are taken', () => {
    const sequences = sequencesOf([[2, 4]]);
    const form = {
      queries: { kind: 'padded', spare: 1 },
      keys: { kind: 'padded', spare: 0 },
    } as const;
    const forms = (features: Parameters<typeof resolveConstraints>[0]['features']) =>
      steps(plainOf({ sequences }, { form }), resolveConstraints({ features }))
        .filter((plain) => plain.form !== form)
        .map((plain) => plain.form);
    expect(forms(['packed', 'padded'])).toEqual([
      undefined,
      { ...form, queries: { kind: 'padded', spare: 0 } },
    ]);
    expect(forms(['padded'])).toEqual([
      { queries: { kind: 'padded' }, keys: { kind: 'padded' } },
      { ...form, queries: { kind: 'padded', spare: 0 } },
    ]);
  });
});
