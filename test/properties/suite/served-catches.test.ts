import { describe, expect, it } from 'vitest';
import {
  checkKernel,
  describeFailures,
  featureKinds,
  lawIds,
  UnsupportedProblem,
  type AttentionKernel,
  type FeatureKind,
  type KernelPromises,
  type LawId,
} from '../../../properties/index.js';
import { RequestError } from '../../../src/request-error.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { faultyKernels } from '../../kernels/features/index.js';

const inTurn = turns(import.meta.url);

/** What the feature kernel refuses is declined. */
function declining(kernel: AttentionKernel): AttentionKernel {
  return async (problem) => {
    try {
      return await kernel(problem);
    } catch (error) {
      if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
      throw error;
    }
  };
}

const promises: KernelPromises = {
  features: featureKinds,
  formats: ['bf16', 'fp16', 'e4m3'],
  softcap: true,
  lse: true,
  blockKeys: 64,
  sizes: { keys: { max: 300 }, queries: { max: 40 }, qkDim: { max: 8 }, vDim: { max: 8 } },
  laws: { 'sequences-alone': 'bits', 'storage-forms': 'bits' },
};

/** One law that sees each fault soon, on problems with some features; all laws, on all, with SERVED_BUGS=all. */
const seenBy: Readonly<
  Record<string, readonly [law: LawId, features: readonly FeatureKind[], fewestKeys?: number]>
> = {
  'unused-slots-leak': ['unused-storage', ['packed', 'paged']],
  'pages-above-128': ['storage-forms', ['paged'], 140],
  'empty-splits-of-pages': ['within-bound', ['paged']],
  'lse-in-base-2': ['within-bound', []],
  'merge-in-base-2': ['within-bound', [], 140],
  'merge-of-nothing': ['empty-rows', []],
  'finite-lse-of-nothing': ['within-bound', ['packed']],
  'splits-by-batch': ['sequences-alone', ['packed'], 140],
  'one-compiled-kernel': ['configurations-by-turns', []],
  'block-mask-ignored': ['within-bound', ['block-mask']],
};

const isWhole = process.env['SERVED_BUGS'] === 'all';
const published = faultyKernels.filter(({ source }) => isWhole || source !== 'damage');

describe('the suite sees', () => {
  it('is told which law sees each published bug', () => {
    const names = faultyKernels.filter(({ source }) => source !== 'damage');
    expect(names.map(({ name }) => name).sort()).toEqual(Object.keys(seenBy).sort());
  });

  inTurn.each(published)('$name ($source)', { timeout: 600_000 }, async ({ name, create }) => {
    const [law, features, fewestKeys = 1] = isWhole ? [] : seenBy[name];
    const narrowed = {
      ...promises,
      features,
      sizes: { ...promises.sizes, keys: { min: fewestKeys, max: 300 } },
    };
    const result = await checkKernel(declining(create()), isWhole ? promises : narrowed, {
      laws: law === undefined ? lawIds : [law],
      runs: 100,
      seed: testSeed,
      bail: true,
      shrinkSeconds: isWhole ? 5 : 0,
    });
    const failed = result.laws.find(({ failure }) => failure !== null);
    if (isWhole)
      console.log(
        `| \`${name}\` | ${failed?.id ?? 'none'} | problem ${failed?.failure?.round ?? '–'}, run ${failed?.failure?.runsUntil ?? '–'} |`,
      );
    expect(failed, describeFailures(result)).toBeDefined();
  });
});
