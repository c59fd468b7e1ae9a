import {
  attributeFa4,
  fa4Configuration,
  findKernelModel,
  techniques,
  type AttributedKernel,
  type Fa4Configuration,
  type Technique,
} from '../../../kernels/index.js';
import {
  anyKernelArithmetic,
  fa4Arithmetic,
  modelArithmetic,
  type KernelArithmetic,
} from '../../../src/audit/bounds/index.js';
import { isWithinScoreLimit } from '../../../properties/laws/promised-problem.js';
import { formats } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';

/** A kernel whose errors are told apart, with the arithmetic that its bounds follow from. */
export interface JudgedKernel {
  readonly kernel: AttributedKernel;
  readonly arithmetic: KernelArithmetic;
  /** What is admitted of any correct kernel; null where this one is more than that admits. */
  readonly anyKernel: KernelArithmetic | null;
  /** The kernel's techniques that a bound covers together. */
  readonly parts: Readonly<Record<Technique, readonly string[]>>;
}

/** The degrees of the polynomial whose errors the premises of any correct kernel admit. */
const admittedDegrees: readonly number[] = [3, 4, 5];

/**
 * FlashAttention-4 subtracts m·c after it has rounded it: weights are off by factors from here on, which takes them out
 * of the range of 8 bits where that is in use, and by far more of any range. A correct kernel's are not.
 */
const breakdown = (is8Bit: boolean) => ({ raw: Infinity, scaled: is8Bit ? 2 ** 17 : 2 ** 26 });

/**
 * FlashAttention-4's forward. Beyond what the premises of any correct kernel admit are a scale that is
 * not positive (fa4 is not correct there), scores where it breaks down, a polynomial of a low degree, weights that use less of their format's range than relative to the row's maximum, and
 * weights that leave the range.
 */
export function judgedFa4(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
): JudgedKernel {
  const configuration = fa4Configuration(problem, problemShape(problem), overrides);
  const { exp2, maxOffset, rescaleThreshold, outFormat } = configuration;
  const admitted =
    problem.scale > 0 &&
    isWithinScoreLimit(problem, breakdown(formats[problem.v.format].precision <= 4)) &&
    (exp2.frequency === 0 || admittedDegrees.includes(exp2.degree)) &&
    maxOffset >= 0 &&
    // Scores of maxima that are compared have errors.
    2 ** (maxOffset + rescaleThreshold) * (1 + 2 ** -6) <= formats[problem.v.format].maxFinite;
  return {
    kernel: attributeFa4(problem, configuration),
    arithmetic: fa4Arithmetic(problem, configuration),
    anyKernel: admitted ? anyKernelArithmetic(problem, outFormat) : null,
    parts: Object.fromEntries(techniques.map((name) => [name, [name]])) as Record<
      Technique,
      string[]
    >,
  };
}

/** The techniques of the textbook kernels under the names of their bounds. */
const naiveParts: Readonly<Record<Technique, readonly string[]>> = {
  'qk-accumulate': ['qk-accumulate'],
  'scale-subtract': ['score-round', 'scale-subtract', 'softcap'],
  'exp2-hardware': ['exp'],
  'exp2-polynomial': [],
  'p-round': ['p-round'],
  rescale: [],
  'pv-accumulate': ['pv-accumulate'],
  'row-sum': ['row-sum'],
  normalise: ['normalise'],
  'output-round': ['output-round'],
};

/** A textbook kernel. Scores rounded to 16 bits are more than is admitted of any correct kernel. */
export function judgedNaive(problem: Problem, model: 'naive-fp32' | 'naive-input'): JudgedKernel {
  const kernel = findKernelModel(model).attribute!(problem, new Map());
  const present = (names: readonly string[]) =>
    names.filter((name) => kernel.techniques.includes(name));
  return {
    kernel,
    arithmetic: modelArithmetic(model, problem),
    anyKernel: model === 'naive-fp32' ? anyKernelArithmetic(problem, kernel.outFormat) : null,
    parts: Object.fromEntries(
      Object.entries(naiveParts).map(([bound, names]) => [bound, present(names)]),
    ) as Record<Technique, string[]>,
  };
}
