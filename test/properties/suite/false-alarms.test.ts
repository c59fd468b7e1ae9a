import { describe, expect } from 'vitest';
import {
  checkKernel,
  describeFailures,
  featureKinds,
  lawIds,
  modelPromises,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
} from '../../../properties/index.js';
import { RequestError } from '../../../src/request-error.js';
import { fromEnvironment, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import {
  featureKernel,
  rightMerge,
  type FeatureKernelOptions,
} from '../../kernels/features/index.js';

const inTurn = turns(import.meta.url);

/** Problems to try in all; a night tries 10^4, on many processes by FALSE_ALARM_SHARD=1/16. */
const problems = fromEnvironment('FALSE_ALARM_PROBLEMS', 10);

/** Which part of them this process tries, counted from 1, and of how many. */
function shard(text = '1/1'): { readonly number: number; readonly count: number } {
  const [number, count] = text.split('/').map(Number);
  if (!(
    Number.isSafeInteger(number) &&
    Number.isSafeInteger(count) &&
    1 <= number &&
    number <= count
  ))
    throw new Error(`FALSE_ALARM_SHARD is ${JSON.stringify(text)}; give it as in 1/16`);
  return { number, count };
}

/** What the feature kernel refuses, such as factors of keys that it reads from pages, is declined. */
function declining(options: FeatureKernelOptions): AttentionKernel {
  const kernel = featureKernel(options);
  return (problem) => {
    try {
      return kernel(problem);
    } catch (error) {
      if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
      throw error;
    }
  };
}

/** A kernel that is right, and what it promises. */
interface RightKernel {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
}

/** A plain kernel that takes every feature, also in splits. */
function plain(options: FeatureKernelOptions): RightKernel {
  const inSplits = (splits: number) => declining({ ...options, splits });
  return {
    kernel: declining(options),
    promises: {
      features: featureKinds,
      formats: ['bf16', 'fp16', 'e4m3', 'e5m2'],
      softcap: true,
      lse: true,
      blockKeys: options.blockKeys,
      splits: { counts: [1, 2, 3, 5], kernel: (problem, splits) => inSplits(splits)(problem) },
      configurations: { 'two splits': { kernel: inSplits(2) } },
      // It writes all of its buffers, whatever they hold.
      fillsBuffers: true,
      merge: rightMerge,
      laws: { 'masked-nan-values': 'bits' },
    },
  };
}

/** Kernels of no particular make, the textbook's, and one whose exponential is exact where weights are powers of two. */
const kernels: Readonly<Record<string, () => RightKernel>> = {
  'blocks of 64, first to last': () => plain({ blockKeys: 64 }),
  'blocks of 128, last to first': () => plain({ blockKeys: 128, order: 'last-first' }),
  'blocks of 32 in three splits': () => plain({ blockKeys: 32, splits: 3 }),
  'blocks of 16': () => plain({ blockKeys: 16 }),
  'naive-fp32': () => modelPromises('naive-fp32'),
  'naive-input': () => modelPromises('naive-input'),
  fa4: () => modelPromises('fa4'),
};

/** Problems of a law in one go: its turn at a size of production is the fourth. */
const rounds = 5;

describe('no law is violated by right kernels that take every feature', () => {
  inTurn('on problems of all laws, in all regimes', { timeout: 36_000_000 }, async () => {
    const { number, count } = shard(process.env['FALSE_ALARM_SHARD']);
    const wanted = Math.ceil(problems / count);
    const names = Object.keys(kernels);
    let tried = 0;
    const perLaw = new Map<LawId, number>();
    for (let turn = number - 1 + testSeed; tried < wanted; turn += count) {
      const place = turn % lawIds.length;
      const law = lawIds[place];
      // Each time that a law comes up, with the next kernel.
      const name = names[(Math.floor(turn / lawIds.length) + place) % names.length];
      const { kernel, promises } = kernels[name]();
      const result = await checkKernel(kernel, promises, {
        laws: [law],
        runs: Math.min(rounds, problems),
        seed: turn,
        shrinkSeconds: 5,
      });
      const [of] = result.laws;
      perLaw.set(law, (perLaw.get(law) ?? 0) + of.tried);
      tried += of.tried;
      expect(describeFailures(result), `${name}, turn ${turn}`).toBe('');
    }
    const untried = [...perLaw].flatMap(([law, problemsOfIt]) => (problemsOfIt === 0 ? [law] : []));
    console.log(
      `${tried} problems, shard ${number}/${count}, seed ${testSeed}: no violation${untried.length === 0 ? '' : `; never tried: ${untried.join(', ')}`}`,
    );
  });
});
