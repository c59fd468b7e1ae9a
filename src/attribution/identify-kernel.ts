import { findKernelModel, type PreparedKernel } from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { decodeToFloat64, encodeFromFloat64, formats, storageOf } from '../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../problem.js';
import { RequestError } from '../request-error.js';
import { defaultCandidates, type Candidate } from './candidates.js';
import { ResidualCorrelation } from './residual-correlation.js';

/** How like a candidate's output the unknown one is. */
export interface Match extends Candidate {
  /** Elements with the same value: for outputs of one format, with the same bits but for NaNs. */
  readonly equal: number;
  /**
   * Of the elements that are not correctly rounded in either output, the share that is equal in both:
   * 1 for equal outputs. Where outputs are correctly rounded they agree whatever made them.
   */
  readonly likeness: number;
  /** Largest difference, over elements finite in both. */
  readonly largestDifference: number;
  /**
   * The correlation of output − oracle with the candidate's, in units of Σ p|v|. The rounding of the
   * output is part of both, and alike wherever they round alike.
   */
  readonly correlation: number | null;
  /**
   * The same with the oracle rounded to the format of the output: what is left where the two are not
   * correctly rounded. Null where one of them is, throughout.
   */
  readonly correlationBeyondRounding: number | null;
}

/** Which kernel an output looks like. */
export interface Identification {
  readonly elements: number;
  /** Elements of the output that are not the correctly rounded oracle. */
  readonly misrounded: number;
  /**
   * The most equal elements first, then the highest likeness, then as given. Where none is equal
   * throughout, an accurate candidate may lead an inaccurate output merely by rounding correctly; then
   * likeness and correlation beyond rounding tell more.
   */
  readonly matches: readonly Match[];
  /** Candidates that do not take the problem or do not have the settings, and why. */
  readonly skipped: readonly (Candidate & { readonly reason: string })[];
}

export interface IdentificationOptions {
  /** Default `defaultCandidates`. */
  readonly candidates?: readonly Candidate[];
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference;
  /** Called with how many candidates are done and how many there are. */
  readonly progress?: (done: number, total: number) => void;
}

/** Values of whatever the candidate makes of the problem, [batch, heads, queries, vDim]. */
function candidateOutput(kernel: PreparedKernel, elements: number): Float64Array {
  const out = new Float64Array(elements);
  const format = formats[kernel.outFormat];
  for (let piece = 0; piece < kernel.pieces; piece++) {
    const { firstRow, out: patterns } = kernel.run(piece);
    out.set(decodeToFloat64(storageOf(format, patterns), format), firstRow * kernel.shape.vDim);
  }
  return out;
}

/** The oracle's values rounded to the format, ties to even. */
function rounded(values: Float64Array, format: Tensor['format']): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format]);
}

function compare(
  candidate: Candidate,
  unknown: Float64Array,
  model: Float64Array,
  reference: AttentionReference,
  roundedOracle: Float64Array,
): Match {
  const [whole, beyond] = [new ResidualCorrelation(), new ResidualCorrelation()];
  let [equal, equalMisrounded, misrounded, largestDifference] = [0, 0, 0, 0];
  for (let i = 0; i < unknown.length; i++) {
    const [a, b, correct] = [unknown[i], model[i], roundedOracle[i]];
    const isEqual = Object.is(a, b);
    const isMisrounded = !(Object.is(a, correct) && Object.is(b, correct));
    if (isEqual) equal++;
    if (isMisrounded) misrounded++;
    if (isEqual && isMisrounded) equalMisrounded++;
    const difference = Math.abs(a - b);
    if (Number.isFinite(difference)) largestDifference = Math.max(largestDifference, difference);
    const magnitude = reference.magnitude[i];
    const unit = magnitude === 0 ? 0 : 1 / magnitude;
    whole.add((a - reference.out[i]) * unit, (b - reference.out[i]) * unit);
    beyond.add((a - correct) * unit, (b - correct) * unit);
  }
  return {
    ...candidate,
    equal,
    likeness: misrounded === 0 ? 1 : equalMisrounded / misrounded,
    largestDifference,
    correlation: whole.value(),
    correlationBeyondRounding: beyond.value(),
  };
}

/**
 * Compares an output of unknown origin with what the kernel models make of the same problem. Several
 * candidates may give the same bits, for instance where no maximum grows; then all are equally near.
 *
 * @throws RequestError when the output does not have the problem's shape, and for an unknown model.
 */
export function identifyKernel(
  problem: Problem,
  output: Tensor,
  options: IdentificationOptions = {},
): Identification {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const elements = batch * heads * queries * vDim;
  const size = output.shape.reduce((a, b) => a * b, 1);
  if (size !== elements || output.shape.at(-1) !== vDim)
    throw new RequestError(
      `the output has shape [${output.shape.join(', ')}] but the problem makes [${[batch, heads, queries, vDim].join(', ')}]; give the output of this problem`,
    );
  const { candidates = defaultCandidates, progress } = options;
  const reference = options.reference ?? attentionOracle(problem);
  const unknown = decodeToFloat64(output.data, formats[output.format]);
  const roundedOracle = rounded(reference.out, output.format);
  const matches: Match[] = [];
  const skipped: (Candidate & { reason: string })[] = [];
  candidates.forEach((candidate, i) => {
    const model = findKernelModel(candidate.model);
    const kernel = prepare(() =>
      model.prepare(problem, new Map(Object.entries(candidate.settings))),
    );
    if (typeof kernel === 'string') skipped.push({ ...candidate, reason: kernel });
    else {
      const values = candidateOutput(kernel, elements);
      matches.push(compare(candidate, unknown, values, reference, roundedOracle));
    }
    progress?.(i + 1, candidates.length);
  });
  matches.sort((a, b) => b.equal - a.equal || b.likeness - a.likeness);
  const misrounded = unknown.reduce(
    (count, x, i) => count + (Object.is(x, roundedOracle[i]) ? 0 : 1),
    0,
  );
  return { elements, misrounded, matches, skipped };
}

/** The prepared kernel, or why it cannot be. */
function prepare(make: () => PreparedKernel): PreparedKernel | string {
  try {
    return make();
  } catch (error) {
    if (error instanceof RequestError) return error.message;
    throw error;
  }
}
