import type {
  AttentionKernel,
  KernelPromises,
  ResolvedPromises,
  ScaleKind,
  SizeName,
} from '../../../properties/index.js';
import type { Problem, Tensor } from '../../problem/index.js';
import type { ReportedKernel } from '../../report/json/check/index.js';
import { encodeFromFloat64, type FormatName, formats } from '../../formats/index.js';

/** The reason that a kernel cannot be run at all. */
export interface ExecutionFailure {
  /** The reason, in a sentence without its full stop. */
  readonly reason: string;
  /** The problem that it was given. */
  readonly problem: Problem;
}

/** A kernel model of the library, with its settings as text, by key. */
export interface LibraryModel {
  readonly name: string;
  readonly settings: ReadonlyMap<string, string>;
}

/** A kernel as `flashproof check` tries it, emulated or live. */
export interface KernelUnderTest {
  readonly kernel: AttentionKernel;
  /** The kernel's own promises. */
  readonly promises: KernelPromises;
  readonly reported: ReportedKernel;
  /** The model from which another thread can create the same kernel; null if it cannot. */
  readonly elsewhere: LibraryModel | null;
  /**
   * Tries it on an ordinary problem before anything else: null when it gives an answer, right or wrong.
   * @throws RequestError for an unknown command, and for settings that fit no problem
   */
  readonly whyNotRunning: (promises: ResolvedPromises) => Promise<ExecutionFailure | null>;
  /** Ends everything that was started for it. */
  readonly close: () => Promise<void>;
}

/** A few values that every format has, each different from its neighbours. */
const values = [0.5, -1, 1.5, 0.25, -0.5, 2, -0.25];

/** Ordinary sizes for kernels, used unless others are promised. */
const ordinarySizes: Readonly<Record<SizeName, number>> = {
  batch: 1,
  kvHeads: 1,
  groupSize: 1,
  queries: 2,
  keys: 2,
  qkDim: 64,
  vDim: 64,
};

/** A scale of each kind, for a head dimension. */
const scaleOf: Readonly<Record<ScaleKind, (dim: number) => number>> = {
  default: (dim) => 1 / Math.sqrt(dim),
  odd: () => 0.3,
  negative: () => -0.3,
  zero: () => 0,
};

/**
 * The most ordinary problem that promises admit, small and without masks if possible: one that every
 * kernel with these promises can compute.
 */
export function ordinaryProblem(
  { sizes, dims, scales, causal, groupSizes, multiples }: ResolvedPromises,
  format: FormatName,
): Problem {
  const size = (name: SizeName): number => {
    const { min = 0, max = Infinity } = sizes[name] ?? {};
    const multiple = multiples[name] ?? 1;
    return Math.ceil(Math.max(min, Math.min(max, ordinarySizes[name])) / multiple) * multiple;
  };
  const tensor = (shape: readonly number[]): Tensor => {
    const elements = shape.reduce((product, length) => product * length, 1);
    const plain = Float64Array.from({ length: elements }, (_, i) => values[i % values.length]);
    return { format, shape, data: encodeFromFloat64(formats[format], plain) };
  };
  const [batch, kvHeads, queries, keys] = [
    size('batch'),
    size('kvHeads'),
    size('queries'),
    size('keys'),
  ];
  const qkDim = dims?.[0] ?? size('qkDim');
  const groupSize = groupSizes === null ? size('groupSize') : Math.min(...groupSizes);
  const kind = scales.includes('default') ? 'default' : (scales[0] ?? 'default');
  return {
    q: tensor([batch, kvHeads * groupSize, queries, qkDim]),
    k: tensor([batch, kvHeads, keys, qkDim]),
    v: tensor([batch, kvHeads, keys, dims?.[0] ?? size('vDim')]),
    scale: scaleOf[kind](qkDim),
    causal: causal === 'only',
    window: null,
    softcap: null,
  };
}
