import { describe, expect, it } from 'vitest';
import {
  checkKernel,
  describeFailures,
  lawIds,
  laws,
  type AttentionKernel,
  type KernelPromises,
  type Law,
  type LawId,
} from '../../../properties/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemMask, problemShape, type Tensor } from '../../../src/problem/index.js';
import {
  backwardKernel,
  correctBackwards,
  deltaOf,
  faultyBackwards,
  type BackwardOptions,
} from '../../kernels/gradients/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { gradientPromises, kernelOf } from './kernel-of.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Problems that take a millisecond or two. */
const small: KernelPromises = {
  ...gradientPromises,
  sizes: {
    groupSize: { max: 3 },
    queries: { max: 12 },
    keys: { max: 40 },
    qkDim: { max: 6 },
    vDim: { max: 6 },
  },
  blockKeys: 16,
};

const ofGradients = lawIds.filter((id) => (laws[id] as Law).ofGradients === true);

async function tried(id: LawId, kernel: AttentionKernel, runs: number, promises = small) {
  const { laws: results } = await checkKernel(kernel, promises, {
    laws: [id],
    runs,
    seed: testSeed,
    shrinkSeconds: 0.2,
  });
  return { result: results[0], text: describeFailures({ laws: results }) };
}

const changed = (change: NonNullable<BackwardOptions['change']>) =>
  kernelOf(backwardKernel({ change }));
const fault = (name: string) =>
  kernelOf(faultyBackwards.find((faulty) => faulty.name === name)!.kernel);
const right = kernelOf(backwardKernel());

/** The right kernel with every element of a tensor changed. */
function rewritten(
  name: 'dq' | 'dk' | 'dv',
  element: (x: number, problem: Parameters<AttentionKernel>[0], dout: Tensor) => number,
): AttentionKernel {
  return async (problem, conditions = {}) => {
    const given = await right(problem, conditions);
    const { dout } = conditions;
    if (dout === undefined) return given;
    const tensor = given[name]!;
    const values = decodeTensor(tensor).map((x) => element(x, problem, dout));
    return {
      ...given,
      [name]: { ...tensor, data: encodeFromFloat64(formats[tensor.format], values) },
    };
  };
}

/** A kernel whose every second run adds up in another order, or takes no D. */
function inconstant(other: BackwardOptions): AttentionKernel {
  let runs = 0;
  return (problem, conditions) =>
    kernelOf(backwardKernel(runs++ % 2 === 0 ? {} : other))(problem, conditions);
}

/** A kernel whose backward reads the forward that it is given; or the D of the row before. */
function reading(shift: number): AttentionKernel {
  return (problem, conditions = {}) => {
    const { forward } = conditions;
    const { vDim } = problemShape(problem);
    const stored = forward === undefined ? null : Float32Array.from(decodeTensor(forward.out));
    const change: NonNullable<BackwardOptions['change']> = () => ({
      delta: ({ out, dout }) => {
        const delta = deltaOf({ out: stored ?? out, dout }, vDim);
        return delta.map((_, row) => delta[(row + shift) % delta.length]);
      },
    });
    return kernelOf(backwardKernel({ change }))(problem, conditions);
  };
}

/** A fault for each law that shows in it. */
const violating: Readonly<Partial<Record<LawId, AttentionKernel>>> = {
  'gradients-within-bound': fault('scale-missing-dk'),
  'gradients-determinism': inconstant({ order: 'descending' }),
  'gradients-conserved': fault('delta-of-next-row'),
  'gradients-linear': rewritten('dv', (x) => Math.min(x, 1)),
  'gradients-of-zero': rewritten('dk', (x) => x + 2 ** -10),
  'gradients-of-level-values': fault('delta-half-written'),
  'gradients-of-one-key': fault('delta-missing'),
  // The window is that of the forward alone.
  'gradients-of-unseen': changed((_, problem, shape) => ({
    ranges: problemMask({ ...problem, causal: false, window: null }, shape).ranges,
  })),
  'gradients-key-shift': fault('delta-missing'),
  'gradients-heads': fault('delta-of-stale-output'),
  'gradients-grouped': fault('one-head-of-group'),
  // The first key is lost.
  'gradients-key-permutation': changed((_, __, { keys }) => ({
    factors: ({ of, values }) =>
      of === 'dq' ? values.map((x, i) => (i % keys === 0 ? 0 : x)) : values,
  })),
  'gradients-alone': changed((_, __, { heads, queries }) => ({
    read: ({ logarithm, delta }) => ({
      logarithm,
      // Statistics of every batch are those of the first.
      delta: delta.map((___, i) => delta[i % (heads * queries)]),
    }),
  })),
  'gradients-decode': fault('mask-top-left'),
  'gradients-nan-row': fault('delta-of-next-row'),
  // Whole tiles are multiplied, of what nobody sees as well.
  'gradients-hidden-nan': rewritten(
    'dq',
    (x, { k, v }) => x + 0 * [...decodeTensor(k), ...decodeTensor(v)].reduce((a, b) => a + b, 0),
  ),
  'gradients-stored-output': reading(1),
};

describe('laws of gradients', () => {
  const orders = Object.entries(correctBackwards);

  inTurn.each(sampled(ofGradients, 2))('%s holds for right kernels', async (id) => {
    const [, options] = orders[(testSeed + ofGradients.indexOf(id)) % orders.length];
    const kernel =
      id === 'gradients-stored-output' ? reading(0) : kernelOf(backwardKernel(options));
    const { result, text } = await tried(id, kernel, 4, { ...small, readsForward: true });
    expect(text).toBe('');
    expect(result.status).toBe('holds');
  });

  inTurn.each(sampled(ofGradients, 2))('%s is violated by a fault', async (id) => {
    const kernel = violating[id];
    if (kernel === undefined) throw new Error(`no kernel violates ${id}`);
    const { result, text } = await tried(id, kernel, 40, { ...small, readsForward: true });
    expect(result.status).toBe('violated');
    expect(text).toMatch(/d[QKV]|⟨K, dK⟩/);
    expect(text).toContain('\ndout: ');
  });

  inTurn(
    'runs that differ by an order of sums are within the bound, as nothing else is promised',
    async () => {
      const open = { ...small, deterministic: false };
      const id = 'gradients-determinism';
      const ordered = await tried(id, inconstant({ order: 'descending' }), 6, open);
      expect(ordered.result).toMatchObject({ status: 'holds', strength: 'bound' });
      const noDelta = () => ({
        delta: ({ out }: { readonly out: Float32Array }) => new Float32Array(out.length),
      });
      const stale = await tried(id, inconstant({ change: noDelta }), 40, open);
      expect(stale.result.status).toBe('violated');
    },
  );

  it('are tried on kernels that promise gradients alone', async () => {
    const forward = await checkKernel(
      right,
      { ...small, gradients: false },
      { runs: 1, seed: 1, seconds: 0 },
    );
    expect(forward.laws.map(({ id }) => id)).toEqual(
      lawIds.filter((id) => !ofGradients.includes(id)),
    );
    const named = await tried('gradients-of-zero', right, 1, { ...small, gradients: false });
    expect(named.result).toMatchObject({
      status: 'skipped',
      skipped: 'gradients are not promised',
    });
  });

  it.each(['dq', 'dk', 'dv'] as const)('a kernel without %s is at fault', async (name) => {
    const without: AttentionKernel = async (problem, conditions) => {
      const { [name]: left, ...given } = await right(problem, conditions);
      void left;
      return given;
    };
    const { result } = await tried('gradients-of-zero', without, 1);
    expect(result.failure?.statement).toBe(
      `the kernel gave no d${name[1].toUpperCase()} (${name}), though it promises gradients`,
    );
  });
});
