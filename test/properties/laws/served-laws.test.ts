import { describe, expect, it } from 'vitest';
import {
  checkKernel,
  describeFailures,
  type AttentionKernel,
  type AttentionOutputs,
  type FeatureKind,
  type KernelPromises,
  type LawId,
  type LawStrength,
} from '../../../properties/index.js';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  tensorScales,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemShape, storedOf, type Problem } from '../../../src/problem/index.js';
import { sampled, scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import {
  featureKernel,
  mergeBy,
  rightMerge,
  storedKeys,
  type FeatureKernelOptions,
} from '../../kernels/features/index.js';

const inTurn = turns(import.meta.url);

const served: readonly FeatureKind[] = ['mask', 'bias', 'sink', 'packed', 'padded', 'paged'];

/** Problems that take milliseconds. */
const small: KernelPromises = {
  sizes: { queries: { max: 12 }, keys: { max: 70 }, qkDim: { max: 4 }, vDim: { max: 4 } },
  formats: ['bf16', 'fp16'],
  lse: true,
  blockKeys: 32,
};

const options: FeatureKernelOptions = { blockKeys: 32 };
const right = featureKernel(options);

interface Trial {
  readonly kernel: AttentionKernel;
  readonly law: LawId;
  readonly strength: LawStrength;
  readonly features?: readonly FeatureKind[];
  readonly promises?: KernelPromises;
}

async function tried(
  { kernel, law, strength, features = served, promises = {} }: Trial,
  runs: number,
) {
  const result = await checkKernel(
    kernel,
    { ...small, features, ...promises, laws: { [law]: strength } },
    { laws: [law], runs, seed: testSeed, shrinkSeconds: 0.2, regimes: ['normal', 'normal-4'] },
  );
  return { result, text: describeFailures(result) };
}

/** A kernel that reads another row where the tables do not say so. */
const reading = (
  rowOf: (
    problem: Problem,
    own: ReturnType<typeof storedKeys>,
  ) => Partial<ReturnType<typeof storedKeys>>,
): AttentionKernel =>
  featureKernel({
    ...options,
    change: ({ source }, problem) => ({ source: { ...source, ...rowOf(problem, source) } }),
  });

/** Reads pages above 16 slots as if they had 16. */
const smallPagesOnly = reading((problem, own) => {
  const stored = storedOf(problem);
  if (stored?.keys.form !== 'paged' || stored.keys.slotsPerGroup <= 16) return {};
  return storedKeys(problem, (key) => ({ page: Math.floor(key / 16), slot: key % 16 })) ?? own;
});

/** Weights of hidden slots are 0, and multiplied all the same. */
const readsUnused = featureKernel({ ...options, change: () => ({ readsHidden: true }) });

/** Splits by the longest sequence of all, and stores parts in between in fp32. */
const splitsByBatch = featureKernel({
  ...options,
  change: (_, problem, { batch, keys }) => ({
    parts: () => 1 + (((problem.sequences?.length ?? batch) + keys) % 3),
  }),
});

/** Takes the rows of a packed neighbour where a sequence ends. */
const oneKeyMore = featureKernel({
  ...options,
  change: ({ ranges }, problem, { keys, queries, heads }) => ({
    ranges: (head, query) => {
      void [queries, heads];
      const own = ranges(head, query);
      if (problem.sequences === undefined || own.length === 0) return own;
      const last = own[own.length - 1];
      return [...own.slice(0, -1), { ...last, end: Math.min(keys, last.end + 1) }];
    },
  }),
});

/** Takes the tensors of the problem for causal, and every mask for none. */
const ignoresMasks: AttentionKernel = (problem) => {
  const { mask, blockMask, ...rest } = problem;
  void [mask, blockMask];
  return right(rest);
};

/** Keeps what it was compiled for at first: the mask of the first problem of these sizes. */
function sharedCompilation(): AttentionKernel {
  const compiled = new Map<number, boolean>();
  return (problem) => {
    const { qkDim } = problemShape(problem);
    const causal = compiled.get(qkDim) ?? problem.causal;
    compiled.set(qkDim, problem.causal);
    return right({ ...problem, causal });
  };
}

const decoded = ({ data, format }: Tensor) => decodeToFloat64(data, formats[format]);

/** Leaves rows that see no key as the buffer was. */
const leavesEmptyRows: AttentionKernel = async (problem, conditions) => {
  const { out, lse } = (await right(problem)) as Required<AttentionOutputs>;
  const { vDim } = problemShape(problem);
  const values = decoded(out);
  const lses = lse ? decoded(lse) : [];
  lses.forEach((x, row) => {
    if (x === -Infinity) values.fill(conditions?.fill ?? 0, row * vDim, (row + 1) * vDim);
  });
  return { out: { ...out, data: encodeFromFloat64(formats[out.format], values) }, lse };
};

/** A bias of any size is taken for ALiBi: added before the mask of 0 is looked for. */
const zeroBiasHides: AttentionKernel = (problem) => {
  const { bias } = problem;
  if (bias === undefined || decoded(bias).some((x) => x !== 0)) return right(problem);
  return right({ ...problem, scale: problem.scale * 1.5 });
};

/** Takes the factor of the last block of keys of a head for all of them. */
const lastFactor: AttentionKernel = (problem) => {
  const { k } = problem;
  const factors = (k.scales?.factors ?? []).map((all) => {
    const count = all.shape[2]!;
    const values = all.values.map((_, at) => all.values[(Math.floor(at / count) + 1) * count - 1]!);
    return { ...all, values };
  });
  return right({ ...problem, k: { ...k, scales: tensorScales(k, factors) } });
};

/** Causal problems with factors of blocks of keys. */
const factored = {
  law: 'masked-keys',
  strength: 'bits',
  features: ['descale'],
  promises: { formats: ['e4m3'], causal: 'only', window: false },
} as const;

/** Every split but the first. */
const dropsFirstSplit = (problem: Problem, splits: number) =>
  featureKernel({
    ...options,
    splits,
    change: () => ({
      stored: (parts) =>
        parts.length === 1 ? parts : parts.map((part, i) => (i === 0 ? { ...part, sum: 0 } : part)),
    }),
  })(problem);

describe('a right kernel keeps', () => {
  const trials: readonly (Trial & { name: string })[] = [
    ...(['sequences-alone', 'storage-forms', 'mask-tensors', 'neutral-features'] as const).map(
      (law) => ({ name: `${law} to the bit`, kernel: right, law, strength: 'bits' as const }),
    ),
    ...(['unused-storage', 'configurations-by-turns'] as const).map((law) => ({
      name: law,
      kernel: right,
      law,
      strength: 'bits' as const,
    })),
    {
      name: 'unwritten-buffers',
      kernel: right,
      law: 'unwritten-buffers',
      strength: 'bits',
      promises: { fillsBuffers: true },
    },
    {
      name: 'merging',
      kernel: right,
      law: 'merging',
      strength: 'bound',
      promises: { merge: rightMerge },
    },
    { name: 'masked-keys with factors', kernel: right, ...factored },
  ];
  it.each(sampled(trials, 4))('$name', async (trial) => {
    const { result, text } = await tried(trial, scaled(8));
    expect(text).toBe('');
    expect(result.laws[0].tried).toBeGreaterThan(4);
  });
});

describe('a law sees', () => {
  const faults: readonly (Trial & { fault: string; says: RegExp })[] = [
    {
      fault: 'page sizes above 16 read as 16',
      law: 'storage-forms',
      strength: 'bits',
      kernel: smallPagesOnly,
      says: /with its sequences in pages of/,
    },
    {
      fault: 'hidden slots multiplied by 0',
      law: 'unused-storage',
      strength: 'bits',
      kernel: readsUnused,
      says: /with zeros but NaN with NaN in unused slots/,
    },
    {
      fault: 'splits that follow from the batch',
      law: 'sequences-alone',
      strength: 'bits',
      kernel: splitsByBatch,
      features: ['packed'],
      promises: { formats: ['fp32'], sizes: { ...small.sizes, keys: { min: 64, max: 100 } } },
      says: /alone/,
    },
    {
      fault: 'a sequence that reads one key of the next',
      law: 'sequences-alone',
      strength: 'bits',
      kernel: oneKeyMore,
      features: ['packed'],
      says: /of the \d packed ones alone|with sequence \d alone/,
    },
    {
      fault: 'a mask that is ignored',
      law: 'mask-tensors',
      strength: 'bits',
      kernel: ignoresMasks,
      features: ['mask'],
      says: /with all masks as one boolean mask/,
    },
    {
      fault: 'two configurations that share one compiled kernel',
      law: 'configurations-by-turns',
      strength: 'bits',
      kernel: sharedCompilation(),
      says: /again, after a problem of the other causality|at first/,
    },
    {
      fault: 'rows without keys that are not written',
      law: 'unwritten-buffers',
      strength: 'bits',
      kernel: leavesEmptyRows,
      promises: { fillsBuffers: true },
      says: /with NaN in its buffers|in its buffers before it ran/,
    },
    {
      fault: 'a bias of 0 on another path',
      law: 'neutral-features',
      strength: 'bits',
      kernel: zeroBiasHides,
      features: ['bias'],
      says: /with a bias of 0/,
    },
    {
      fault: 'the factor of a block that is hidden',
      kernel: lastFactor,
      says: /with other numbers at keys that it does not see/,
      ...factored,
    },
    {
      fault: 'a merge of nothing that is NaN',
      law: 'merging',
      strength: 'bound',
      kernel: right,
      promises: { merge: mergeBy({ exponential: Math.exp, ofNothing: -Infinity }) },
      says: /merging: of .*(LSE|O) at .*NaN/,
    },
    {
      fault: 'a merge that believes nothing',
      law: 'merging',
      strength: 'bound',
      kernel: right,
      promises: { merge: mergeBy({ exponential: Math.exp, ofNothing: -30 }) },
      says: /without keys/,
    },
    {
      fault: 'a merge that takes LSEs for base 2',
      law: 'merging',
      strength: 'bound',
      kernel: right,
      promises: { merge: mergeBy({ exponential: (x) => 2 ** x, ofNothing: 0 }) },
      says: /parts.*(base 2|the LSE)/,
    },
  ];
  inTurn.each(sampled(faults, 5))('$fault', async ({ says, ...trial }) => {
    const { result, text } = await tried(trial, 40);
    expect(result.laws[0].failure, text).not.toBeNull();
    expect(text).toMatch(says);
  });

  it('a split that is dropped, where bits of another number of splits are promised', async () => {
    const promises = { splits: { counts: [1, 2, 3], kernel: dropsFirstSplit } };
    const trial = { kernel: right, law: 'split-counts', strength: 'bits', promises } as const;
    const { text } = await tried(trial, 40);
    expect(text).toMatch(/split-counts: .*in \d splits/);
  });
});
