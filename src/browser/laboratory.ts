import { assembleKernelPieces, findKernelModel, type KernelSettings } from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import {
  attributedKernel,
  createTechniqueTable,
  type TechniqueTable,
} from '../attribution/index.js';
import { auditAccuracy, decodeOutputs, forEachRowsBound, modelArithmetic } from '../audit/index.js';
import { encodeFromFloat64, formats, type FormatName } from '../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../problem/index.js';
import { createUlpHistogram, type UlpHistogram } from '../report/html/index.js';

/** A random problem, and the tuning of FlashAttention-4's forward for it. */
export interface ExperimentRequest {
  /** The format of Q, K and V. */
  readonly format: FormatName;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  /** The standard deviation of the scores after scaling. */
  readonly spread: number;
  readonly seed: number;
  /** Settings of the model `fa4`, as text by key. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Outputs of a run, compared with exact results. */
export interface ExperimentOutputs {
  /** Errors in ulps of the output's format. */
  readonly histogram: UlpHistogram;
  /** Statistics of O, over all elements. */
  readonly largestError: number;
  readonly rmsError: number;
  readonly largestOutput: number;
}

/** Normally distributed numbers by Box and Muller, from uniform ones by a linear congruence (Numerical Recipes). */
function normalNumbers(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** The problem of a request: Q, K and V of normal numbers, rounded to the format. */
export function randomProblem({
  format,
  queries,
  keys,
  dim,
  spread,
  seed,
}: Omit<ExperimentRequest, 'settings'>): Problem {
  const next = normalNumbers(seed);
  const tensor = (rows: number): Tensor => ({
    format,
    shape: [1, 1, rows, dim],
    data: encodeFromFloat64(formats[format], Float64Array.from({ length: rows * dim }, next)),
  });
  // Q·K of independent normal numbers deviates by √dim.
  const scale = spread / Math.sqrt(dim);
  const [q, k, v] = [tensor(queries), tensor(keys), tensor(keys)];
  return { q, k, v, scale, causal: false, window: null, softcap: null };
}

/** The errors of outputs relative to exact ones. */
function compared(problem: Problem, out: Tensor, reference: AttentionReference): ExperimentOutputs {
  const outputs = decodeOutputs({ out, lse: null }, problemShape(problem));
  const { values } = outputs.out;
  const exact = reference.quantities.out.values;
  let [largestError, squares, largestOutput] = [0, 0, 0];
  values.forEach((value, i) => {
    const error = Math.abs(value - exact[i]);
    largestError = Math.max(largestError, error);
    squares += error * error;
    largestOutput = Math.max(largestOutput, Math.abs(exact[i]));
  });
  return {
    histogram: createUlpHistogram({ reference, outputs }),
    largestError,
    rmsError: Math.sqrt(squares / values.length),
    largestOutput,
  };
}

/** Results that depend only on the problem and the output's format, which most knobs leave as they are. */
interface ExactResults {
  /** The part of a request that determines the problem, as text. */
  readonly random: string;
  readonly outputFormat: FormatName;
  readonly problem: Problem;
  readonly reference: AttentionReference;
}

/** The results of an experiment. */
export interface Experiment {
  readonly outputs: ExperimentOutputs;
  /** Measures the bound and the effect of each technique on the output, which takes longer. */
  readonly measureTechniques: () => TechniqueTable;
}

/**
 * A laboratory, which runs FlashAttention-4's forward on random problems. It keeps the last problem with its exact
 * results, for the next experiment on it.
 * @returns a function that runs an experiment; it throws a RequestError for settings that the model does not take
 */
export function createLaboratory(): (request: ExperimentRequest) => Experiment {
  const model = findKernelModel('fa4');
  let kept: ExactResults | null = null;
  return ({ settings: words, ...random }) => {
    const settings: KernelSettings = new Map(Object.entries(words));
    const text = JSON.stringify(random);
    const known = kept?.random === text ? kept : null;
    const problem = known?.problem ?? randomProblem(random);
    const prepared = model.prepare(problem, settings);
    const assembly = assembleKernelPieces(problem, prepared);
    for (let piece = 0; piece < prepared.pieces; piece++) assembly.add(prepared.run(piece));
    const { out } = assembly.results();
    const arithmetic = modelArithmetic(model, problem, settings);
    const { outputFormat } = arithmetic;
    const reference =
      known?.outputFormat === outputFormat
        ? known.reference
        : attentionOracle(problem, { accuracy: auditAccuracy(outputFormat) });
    kept = { random: text, outputFormat, problem, reference };
    return {
      outputs: compared(problem, out, reference),
      measureTechniques: () => {
        const kernel = attributedKernel(problem, { kernel: model, settings });
        const meter = createTechniqueTable(reference, arithmetic.description, { kernel });
        forEachRowsBound(problem, reference, arithmetic, meter.visit);
        return meter.table();
      },
    };
  };
}
