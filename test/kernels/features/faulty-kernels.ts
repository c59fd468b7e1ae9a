import type { AttentionKernel } from '../../../properties/index.js';
import type { Tensor } from '../../../src/formats/index.js';
import {
  problemMask,
  problemShape,
  scoreLaw,
  storedOf,
  type IntegerTensor,
  type Problem,
} from '../../../src/problem/index.js';
import { featureKernel, type FeatureKernelOptions } from './feature-kernel.js';
import type { RowPart } from './merge-parts.js';
import { storedKeys } from './stored-keys.js';

/** A plain kernel with one fault. */
export interface FaultyKernel {
  readonly name: string;
  /** The public thread that tells of it, or `damage` for one that is planted. */
  readonly source: string;
  readonly mechanism: string;
  /** Whether the fault does anything on a problem; elsewhere the kernel has the bits of the correct one. */
  readonly touches: (problem: Problem) => boolean;
  /** A name of `featureProblems` on which O or the LSE is off by more than rounding; null for one that only changes bits. */
  readonly example: string | null;
  /** The correct kernel beside it. */
  readonly correct: FeatureKernelOptions;
  /** Makes one; some keep what they have met first. */
  readonly create: () => AttentionKernel;
}

type Change = NonNullable<FeatureKernelOptions['change']>;

/** A fault of steps. */
function inSteps(
  fault: Omit<FaultyKernel, 'create' | 'correct'>,
  change: Change,
  correct: FeatureKernelOptions = {},
): FaultyKernel {
  return { ...fault, correct, create: () => featureKernel({ ...correct, change }) };
}

/** A fault that is another problem in place of the one that was posed. */
function inProblem(
  fault: Omit<FaultyKernel, 'create' | 'correct'>,
  change: (problem: Problem) => Problem,
): FaultyKernel {
  const kernel = featureKernel();
  return { ...fault, correct: {}, create: () => (problem) => kernel(change(problem)) };
}

const isPaged = (problem: Problem): boolean => storedOf(problem)?.keys.form === 'paged';
const pageSize = (problem: Problem): number => storedOf(problem)?.keys.slotsPerGroup ?? 0;
/** The keys that one row may see at most. */
const longest = (problem: Problem): number =>
  (problem.sequences ?? [problemShape(problem)]).reduce(
    (most, { keys }) => Math.max(most, keys),
    0,
  );
const blockKeys = 64;
const inParts = (splits: number): FeatureKernelOptions => ({ splits, blockKeys });
/** Whether some row leaves parts without keys that it sees: it sees none at all, or the keys end before. */
const hasEmptyParts = (splits: number) => (problem: Problem) => {
  const { batch, heads, queries } = problemShape(problem);
  const mask = problemMask(problem);
  if ((problem.sequences ?? []).some(({ keys }) => keys <= blockKeys * (splits - 1))) return true;
  return Array.from({ length: batch * heads * queries }, (_, row) =>
    mask.ranges(Math.floor(row / queries), row % queries),
  ).some((ranges) => {
    const touched = new Set<number>();
    for (const { begin, end } of ranges)
      for (let block = Math.floor(begin / blockKeys); block * blockKeys < end; block++)
        touched.add(block);
    return touched.size < Math.ceil(longest(problem) / blockKeys) || touched.size < splits;
  });
};
const any = (): boolean => true;

/** Parts merged with nothing left out: −∞ less −∞ is NaN, and so is 0 times the NaN of what nobody has written. */
function mergedBlindly(parts: readonly RowPart[]): RowPart {
  const max = parts.reduce((largest, part) => Math.max(largest, part.max), -Infinity);
  const factors = parts.map((part) => Math.fround(Math.exp(part.max - max)));
  return {
    max,
    sum: parts.reduce((sum, part, i) => Math.fround(sum + Math.fround(factors[i] * part.sum)), 0),
    out: parts[0].out.map((_, c) =>
      parts.reduce((sum, part, i) => Math.fround(sum + Math.fround(factors[i] * part.out[c])), 0),
    ),
  };
}

/** The integers of a tensor, each in the next place of its last axis; the first stays. */
function shiftedByOne({ shape, data }: IntegerTensor): IntegerTensor {
  const length = shape[shape.length - 1];
  return { shape, data: data.map((x, i) => (i % length === 0 ? x : data[i - 1])) };
}

/** A tensor [..., heads] with the numbers of the next head, the last with those of the first. */
function ofNextHead(tensor: Tensor): Tensor {
  const heads = tensor.shape[tensor.shape.length - 1];
  const data = tensor.data.slice();
  for (let i = 0; i < data.length; i++)
    data[i] = tensor.data[i - (i % heads) + (((i % heads) + 1) % heads)];
  return { ...tensor, data };
}

const withoutSlopes = ({ alibiSlopes: _, ...rest }: Problem): Problem => rest;

/** Factors of the next head of those of each head. */
function scalesOfNextHead(tensor: Tensor): Tensor {
  const { scales } = tensor;
  if (scales === undefined) return tensor;
  const factors = scales.factors.map((one) => {
    const [heads, ofHead] = [
      one.shape.at(-3) ?? 1,
      (one.shape.at(-2) ?? 1) * (one.shape.at(-1) ?? 1),
    ];
    const values = one.values.map((_, i) => {
      const head = Math.floor(i / ofHead) % heads;
      return one.values[i + (((head + 1) % heads) - head) * ofHead];
    });
    return { ...one, values };
  });
  return { ...tensor, scales: { ...scales, factors } };
}

/** What published bugs of features do, each in a plain kernel that has no other fault. */
const published: readonly FaultyKernel[] = [
  inSteps(
    {
      name: 'unused-slots-leak',
      source: 'Dao-AILab/flash-attention #1745, vllm-project/vllm #37442',
      mechanism:
        'O adds 0 times the values of every slot of a block, and NaN of unused slots stays NaN',
      touches: (problem) => storedOf(problem)?.tensors !== undefined && storedOf(problem) !== null,
      example: 'pages of 16',
    },
    () => ({ readsHidden: true }),
  ),
  inSteps(
    {
      name: 'pages-above-128',
      source: 'flashinfer-ai/flashinfer #4347',
      mechanism: 'the place within a page is taken modulo 128',
      touches: (problem) => isPaged(problem) && pageSize(problem) > 128 && longest(problem) > 128,
      example: 'pages of 256',
    },
    (_, problem) => ({
      source: storedKeys(problem, (key, size) => ({
        page: Math.floor(key / size),
        slot: (key % size) % 128,
      })),
    }),
  ),
  inSteps(
    {
      name: 'empty-splits-of-pages',
      source: 'pytorch/torchtitan #3235',
      mechanism:
        'with pages a split without keys writes nothing, and the merge multiplies that by 0',
      touches: (problem) => isPaged(problem) && hasEmptyParts(4)(problem),
      example: 'pages of 16',
    },
    (_, problem) =>
      isPaged(problem)
        ? {
            merge: (parts) => {
              const unwritten = parts.map((part) =>
                part.sum === 0 ? { ...part, out: part.out.map(() => NaN) } : part,
              );
              return unwritten.every(({ sum }) => sum === 0) ? parts[0] : mergedBlindly(unwritten);
            },
          }
        : {},
    inParts(4),
  ),
  inSteps(
    {
      name: 'lse-in-base-2',
      source: 'sgl-project/sglang #40903',
      mechanism: 'the LSE is a logarithm to base 2',
      touches: any,
      example: 'plain',
    },
    () => ({ lse: (natural) => natural * Math.LOG2E }),
  ),
  inSteps(
    {
      name: 'merge-in-base-2',
      source: 'vllm-project/vllm #47079',
      mechanism: 'splits give their LSE in base 2, and the merge takes it for a natural one',
      touches: (problem) => longest(problem) > blockKeys,
      example: 'plain',
    },
    ({ stored }, problem) =>
      longest(problem) <= blockKeys
        ? {}
        : {
            stored: (parts, place) =>
              stored(parts, place).map((part) => ({ ...part, max: part.max * Math.LOG2E })),
            lse: (natural) => natural / Math.LOG2E,
          },
    inParts(3),
  ),
  inSteps(
    {
      name: 'merge-of-nothing',
      source: 'vllm-project/vllm #39148',
      mechanism: 'the merge of parts of which none has keys subtracts −∞ from −∞',
      touches: any,
      example: 'packed sequences',
    },
    () => ({ merge: mergedBlindly }),
    inParts(2),
  ),
  inSteps(
    {
      name: 'finite-lse-of-nothing',
      source: 'flashinfer-ai/flashinfer #4051',
      mechanism: 'a split without keys gives a finite LSE, and the merge trusts it',
      touches: hasEmptyParts(4),
      example: 'packed sequences',
    },
    ({ stored }) => ({
      stored: (parts, place) =>
        stored(parts, place).map((part) => (part.sum === 0 ? { ...part, max: 0, sum: 1 } : part)),
    }),
    inParts(4),
  ),
  inSteps(
    {
      name: 'splits-by-batch',
      source: 'Dao-AILab/flash-attention #2450',
      mechanism:
        'there are the more splits the fewer sequences there are, so that bits depend on the batch',
      touches: (problem) => longest(problem) > blockKeys,
      example: null,
    },
    (_, problem, { batch }) => ({
      parts: () => Math.max(1, Math.ceil(4 / (problem.sequences?.length ?? batch))),
    }),
  ),
  {
    name: 'one-compiled-kernel',
    source: 'Dao-AILab/flash-attention #2645',
    mechanism:
      'the kernel compiled for the first mask and softcap of a head dimension serves all others',
    touches: any,
    example: null,
    correct: {},
    create: () => {
      const compiled = new Map<number, Pick<Problem, 'causal' | 'window' | 'softcap'>>();
      const kernel = featureKernel();
      return (problem) => {
        const { qkDim } = problemShape(problem);
        const { causal, window, softcap } = compiled.get(qkDim) ?? problem;
        compiled.set(qkDim, { causal, window, softcap });
        return kernel({ ...problem, causal, window, softcap });
      };
    },
  },
  inProblem(
    {
      name: 'block-mask-ignored',
      source: 'pytorch/pytorch #188322',
      mechanism: 'every block of keys is visited and none is masked',
      touches: (problem) => problem.blockMask !== undefined,
      example: 'a block mask',
    },
    ({ blockMask: _, ...rest }) => rest,
  ),
];

/** Faults that an audit of such problems must tell. */
const damages: readonly FaultyKernel[] = [
  inSteps(
    {
      name: 'scale',
      source: 'damage',
      mechanism: 'the scale is larger by an eighth',
      touches: ({ scale }) => scale !== 0,
      example: 'plain',
    },
    ({ scale }) => ({ scale: scale * 1.125 }),
  ),
  inProblem(
    {
      name: 'mask-shifted-by-one',
      source: 'damage',
      mechanism: 'a key is visible where the one before it should be',
      touches: ({ mask }) => mask !== undefined,
      example: 'a mask',
    },
    (problem) => {
      if (problem.mask === undefined) return problem;
      const { shape, data } = problem.mask;
      const keys = shape[shape.length - 1];
      const shifted = data.map((x, i) => (i % keys === 0 ? x : data[i - 1]));
      return { ...problem, mask: { shape, data: shifted } };
    },
  ),
  inSteps(
    {
      name: 'bias-twice',
      source: 'damage',
      mechanism: 'the bias is added twice',
      touches: ({ bias }) => bias !== undefined,
      example: 'a bias',
    },
    ({ addend }, problem, shape) => {
      const bias = scoreLaw(withoutSlopes(problem), shape).addend;
      if (bias === null || addend === null) return {};
      return {
        addend: (head, query, firstKey, target) => {
          const again = new Float64Array(target.length);
          bias(head, query, firstKey, again);
          addend(head, query, firstKey, target);
          for (let j = 0; j < target.length; j++) target[j] += again[j];
        },
      };
    },
  ),
  inProblem(
    {
      name: 'slope-of-next-head',
      source: 'damage',
      mechanism: 'ALiBi takes the slope of the next head',
      touches: ({ alibiSlopes }) => alibiSlopes !== undefined,
      example: 'ALiBi',
    },
    (problem) =>
      problem.alibiSlopes === undefined
        ? problem
        : { ...problem, alibiSlopes: ofNextHead(problem.alibiSlopes) },
  ),
  inProblem(
    {
      name: 'document-boundary',
      source: 'damage',
      mechanism: 'documents of keys begin one key late',
      touches: ({ segments }) => segments !== undefined,
      example: 'documents',
    },
    (problem) =>
      problem.segments === undefined
        ? problem
        : {
            ...problem,
            segments: { ...problem.segments, keys: shiftedByOne(problem.segments.keys) },
          },
  ),
  inSteps(
    {
      name: 'sink-left-out',
      source: 'damage',
      mechanism: 'the sink has no weight',
      touches: ({ sink }) => sink !== undefined,
      example: 'a sink',
    },
    () => ({ sink: () => -Infinity }),
  ),
  inProblem(
    {
      name: 'sink-beside-the-lse',
      source: 'damage',
      mechanism: 'the LSE has no sink where it should, and has it where it should not',
      touches: ({ sink }) => sink !== undefined,
      example: 'a sink',
    },
    (problem) =>
      problem.sink === undefined
        ? problem
        : { ...problem, sink: { ...problem.sink, inLse: !problem.sink.inLse } },
  ),
  inSteps(
    {
      name: 'wrong-page',
      source: 'damage',
      mechanism: 'from the second page on the one before is read',
      touches: (problem) => isPaged(problem) && longest(problem) > pageSize(problem),
      example: 'pages of 16',
    },
    (_, problem) => ({
      source: storedKeys(problem, (key, size) => ({
        page: Math.max(Math.floor(key / size) - 1, 0),
        slot: key % size,
      })),
    }),
  ),
  inSteps(
    {
      name: 'sequence-shifted-by-one',
      source: 'damage',
      mechanism: 'keys and values of a sequence are read from one row later',
      touches: ({ sequences }) => sequences !== undefined,
      example: 'packed sequences',
    },
    ({ source }, { sequences }) => ({
      source: {
        ...source,
        rowOf: (place, key) => {
          const next = sequences === undefined ? -1 : source.rowOf(place, key + 1);
          return next < 0 ? source.rowOf(place, key) : next;
        },
      },
    }),
  ),
  inSteps(
    {
      name: 'stale-split',
      source: 'damage',
      mechanism: 'the first part of a row is what the row before it has left there',
      touches: (problem) => longest(problem) > 0,
      example: 'plain',
    },
    ({ stored }) => {
      let left: RowPart | null = null;
      return {
        stored: (parts, place) => {
          const [first, ...others] = stored(parts, place);
          const stale = left ?? first;
          left = first;
          return [stale, ...others];
        },
      };
    },
    inParts(2),
  ),
  inProblem(
    {
      name: 'descale-of-next-head',
      source: 'damage',
      mechanism: 'keys and values take the factors of the next head',
      touches: ({ k, v }) => k.scales !== undefined || v.scales !== undefined,
      example: 'factors',
    },
    (problem) => ({
      ...problem,
      k: scalesOfNextHead(problem.k),
      v: scalesOfNextHead(problem.v),
    }),
  ),
  inProblem(
    {
      name: 'prefix-ignored',
      source: 'damage',
      mechanism: 'the causal mask hides keys of the prefix',
      touches: ({ prefix }) => prefix !== undefined,
      example: 'a prefix',
    },
    ({ prefix: _, ...rest }) => rest,
  ),
  inSteps(
    {
      name: 'dropout-not-scaled',
      source: 'damage',
      mechanism: 'weights that dropout keeps are not divided by 1 − p',
      touches: ({ dropout }) => (dropout?.probability ?? 0) > 0,
      example: 'dropout',
    },
    ({ kept }) => ({ kept: kept === null ? null : { ...kept, share: 1 } }),
  ),
];

/** Plain kernels with one fault each. */
export const faultyKernels: readonly FaultyKernel[] = [...published, ...damages];
