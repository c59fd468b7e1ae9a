import { describe, expect } from 'vitest';
import {
  checkRecurrentKernel,
  plainRecurrence,
  poseRecurrence,
  recurrentLawIds,
  type PlainRecurrence,
  type RecurrentKernel,
  type RecurrentLawId,
  type RecurrentPromises,
} from '../../../properties/recurrent/index.js';
import {
  recurrentFamilies,
  type RecurrentFamily,
  type RecurrentResults,
  type Tensor,
} from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { modelKernel } from './models.js';

const it = turns(import.meta.url);

const naive = modelKernel('naive-recurrent');

/** The kernel on another problem than it is given. */
function misreading(change: (plain: PlainRecurrence) => PlainRecurrence): RecurrentKernel {
  return (problem, gradients) => {
    const posed = poseRecurrence(change(plainRecurrence({ problem, gradients })));
    return naive(posed.problem, posed.gradients);
  };
}

/** One input with other numbers, where the problem has it. */
function withNumbers(
  plain: PlainRecurrence,
  name: 'q' | 'k' | 'v' | 'g' | 'beta' | 'dt' | 'D' | 'initial_state',
  change: (x: number, i: number, all: Float64Array) => number,
): PlainRecurrence {
  const input = plain.inputs[name];
  if (input === undefined) return plain;
  const values = input.values.map(change);
  return { ...plain, inputs: { ...plain.inputs, [name]: { ...input, values } } };
}

/** Results with one tensor's elements changed. */
function withResult(
  results: RecurrentResults,
  name: keyof RecurrentResults,
  change: (data: Tensor['data']) => Tensor['data'],
): RecurrentResults {
  const tensor = results[name];
  return tensor === undefined
    ? results
    : { ...results, [name]: { ...tensor, data: change(tensor.data) } };
}

interface Fault {
  readonly kernel: () => RecurrentKernel;
  readonly promises?: RecurrentPromises;
}

const zeroed = (data: Tensor['data']): Tensor['data'] => data.slice().fill(0);

/** For each law a kernel that breaks it. */
const faults: Partial<Record<RecurrentLawId, Fault>> = {
  'within-bound': {
    kernel: () =>
      misreading((plain) => ({ ...plain, scale: 1.25 * (plain.scale ?? plain.keyDim ** -0.5) })),
  },
  determinism: {
    kernel: () => {
      let calls = 0;
      return misreading((plain) =>
        withNumbers(plain, 'v', (x) => (++calls > 1 ? x * (1 + (calls % 3)) : x)),
      );
    },
  },
  // The last token of all is added to the first.
  causality: {
    kernel: () =>
      misreading((plain) =>
        withNumbers(plain, 'v', (x, i, all) => (i === 0 ? x + all[all.length - 1] : x)),
      ),
  },
  'heads-independent': {
    kernel: () =>
      misreading((plain) =>
        withNumbers(plain, 'v', (x, i, all) => (i === 0 ? x + all[all.length - 1] : x)),
      ),
  },
  // Each column gets some of its neighbour.
  'columns-independent': {
    kernel: () =>
      misreading((plain) =>
        withNumbers(
          plain,
          'v',
          (x, i, all) => x + 0.5 * all[i % plain.valueDim === 0 ? i + plain.valueDim - 1 : i - 1],
        ),
      ),
  },
  'nan-containment': {
    kernel: () =>
      misreading((plain) => {
        const spoilt = plain.inputs.v.values.some(Number.isNaN);
        return withNumbers(plain, 'v', (x) => (spoilt ? NaN : x));
      }),
  },
  'value-scaling': {
    kernel: () => misreading((plain) => withNumbers(plain, 'v', (x) => x + 0.125)),
  },
  'key-scaling': {
    kernel: () =>
      misreading((plain) => withNumbers(plain, 'k', (x) => Math.max(-0.5, Math.min(0.5, x)))),
  },
  'zero-strength': {
    kernel: () => misreading((plain) => withNumbers(plain, 'beta', (x) => Math.max(x, 0.25))),
  },
  forgetting: {
    kernel: () => misreading((plain) => withNumbers(plain, 'g', (x) => Math.max(x, -1))),
  },
  'zero-state': {
    kernel: () => misreading((plain) => withNumbers(plain, 'initial_state', (x) => x + 1)),
  },
  'handed-over-state': {
    kernel: () => async (problem) => withResult(await naive(problem), 'final_state', zeroed),
  },
  'token-by-token': {
    kernel: () =>
      misreading((plain) =>
        plain.lengths.every((length) => length <= 1)
          ? { ...plain, scale: 2 * (plain.scale ?? plain.keyDim ** -0.5) }
          : plain,
      ),
  },
  // Sequences run into one another.
  'sequences-alone': {
    kernel: () =>
      misreading((plain) => {
        if (plain.lengths.length < 2) return plain;
        return withNumbers(plain, 'v', (x, i, all) => (i === all.length - 1 ? x + 8 : x));
      }),
  },
  recall: { kernel: () => misreading((plain) => withNumbers(plain, 'v', (x) => 0.9 * x)) },
  overwriting: { kernel: () => misreading((plain) => withNumbers(plain, 'beta', (x) => x / 2)) },
  'neutral-gates': {
    kernel: () =>
      misreading((plain) => withNumbers(plain, 'v', (x) => (plain.inputs.g ? x : 2 * x))),
  },
  configurations: {
    kernel: () => naive,
    promises: {
      configurations: {
        'chunk 32': { kernel: misreading((plain) => withNumbers(plain, 'v', (x) => 2 * x)) },
      },
    },
  },
  superposition: {
    kernel: () =>
      misreading((plain) => withNumbers(plain, 'v', (x) => Math.max(-3, Math.min(x, 3)))),
  },
  'zero-step': {
    kernel: () => misreading((plain) => withNumbers(plain, 'dt', (x) => Math.max(x, 2 ** -7))),
    promises: { families: ['mamba2'] },
  },
  'long-step': {
    kernel: () => misreading((plain) => withNumbers(plain, 'dt', (x) => Math.min(x, 0.25))),
    promises: { families: ['mamba2'] },
  },
  'skip-alone': {
    kernel: () => misreading((plain) => withNumbers(plain, 'D', (x) => 1.5 * x)),
    promises: { families: ['mamba2'] },
  },
  'gradients-within-bound': {
    kernel: () => async (problem, given) => withResult(await naive(problem, given), 'dq', zeroed),
  },
  'gradients-determinism': {
    kernel: () => {
      let calls = 0;
      return async (problem, given) =>
        withResult(await naive(problem, given), 'dv', (data) =>
          ++calls % 2 === 0 ? zeroed(data) : data,
        );
    },
  },
  'gradients-heads': {
    kernel: () =>
      misreading((plain) =>
        withNumbers(plain, 'v', (x, i, all) => (i === 0 ? x + all[all.length - 1] : x)),
      ),
  },
  'gradients-linear': {
    kernel: () => async (problem, given) =>
      withResult(await naive(problem, given), 'dk', (data) => data.slice().fill(1)),
  },
  'gradients-unseen': {
    kernel: () => async (problem, given) =>
      withResult(await naive(problem, given), 'dv', (data) => data.slice().fill(1)),
  },
};

const all: RecurrentPromises = { gradients: true, deterministic: true, formats: ['bf16', 'fp32'] };
/** Those of a kernel that takes Mamba-2's problems too. */
const families = Object.keys(recurrentFamilies) as RecurrentFamily[];

describe('a law of recurrences', () => {
  it.each(recurrentLawIds)('%s fails on a kernel that breaks it', async (id) => {
    const fault = faults[id];
    expect(fault, 'a fault of this law').toBeDefined();
    const kernel = fault!.kernel();
    const options = { laws: [id], runs: 20, seed: testSeed, shrinkSeconds: 0.2 };
    const { laws } = await checkRecurrentKernel(kernel, { ...all, ...fault!.promises }, options);
    expect(laws[0].status).toBe('violated');
  });
});

/** Whether a problem has whole numbers only, which next to none that is drawn has. */
const isWhole = ({ inputs: { v, k } }: PlainRecurrence): boolean =>
  [...v.values, ...k.values].every(Number.isInteger);

/** The next number of v's format, at one place: less than any bound. */
const nudged = (plain: PlainRecurrence) =>
  withNumbers(plain, 'v', (x, i) => (i === 0 ? x * (1 + 2 ** -7) : x));

/**
 * Faults that no other law sees on such problems. Others share theirs: within-bound sees what no rounding explains, and so do all laws that
 * an audit judges; a kernel that gives other bits each time breaks each law to the bit, since all of these compare two runs.
 */
const seenByOne: Partial<Record<RecurrentLawId, Fault>> = {
  superposition: {
    kernel: () =>
      misreading((plain) =>
        isWhole(plain) && plain.scale === 0.5
          ? withNumbers(plain, 'v', (x) => Math.max(-3, Math.min(x, 3)))
          : plain,
      ),
  },
  configurations: faults.configurations!,
  'nan-containment': faults['nan-containment']!,
  // The path with a state rounds v once more, which shows only beside the path without.
  'zero-state': {
    kernel: () =>
      misreading((plain) =>
        plain.inputs.initial_state?.values.every((x) => x === 0) === true ? nudged(plain) : plain,
      ),
  },
};

describe('a law that alone sees a fault', () => {
  it.each(Object.keys(seenByOne) as RecurrentLawId[])('%s', { timeout: 300_000 }, async (id) => {
    const { kernel, promises } = seenByOne[id]!;
    const regimes = ['typical', 'chunk-edges', 'one-token', 'orthonormal-keys'] as const;
    const options = { regimes, runs: 3, seed: testSeed, shrinkSeconds: 0 };
    const narrow = { dims: [4], families: ['gla', 'delta'], formats: ['bf16'] } as const;
    const promised = { ...all, ...narrow, ...promises, gradients: false };
    const { laws } = await checkRecurrentKernel(kernel(), promised, options);
    const violated = laws.filter(({ status }) => status === 'violated');
    expect(violated.map((law) => law.id)).toEqual([id]);
  });
});

describe('a correct kernel', () => {
  it.each(['naive-recurrent', 'chunked'])(
    '%s obeys every law',
    { timeout: 120_000 },
    async (name) => {
      const kernel = modelKernel(name);
      const configurations = { 'chunk 16': { kernel: modelKernel(name, { chunk: 16 }) } };
      const options = { runs: 4, seed: testSeed, seconds: 60, shrinkSeconds: 1 };
      const { laws } = await checkRecurrentKernel(
        kernel,
        { ...all, families, configurations },
        options,
      );
      const wrong = laws.filter(({ status }) => status !== 'holds');
      expect(wrong.map(({ id, skipped, failure }) => [id, skipped, failure?.statement])).toEqual(
        [],
      );
    },
  );
});
