import {
  findModelAmong,
  kernelModels,
  type KernelModel,
  type PreparedKernel,
} from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { decodeToFloat64, formats, storageOf } from '../formats/index.js';
import type { Problem, Tensor } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { searchFrom } from './candidate-search.js';
import { candidatesOf, type Candidate } from './kernel-choice.js';
import {
  byLikeness,
  createMatchMeter,
  isEqualThroughout,
  type MatchMeasure,
} from './match-meter.js';
import { candidateKernel, searchTechniques, type TechniqueSearch } from './technique-search.js';
import { checkShapes, readUnknown, roundedTo, type UnknownOutput } from './unknown-output.js';

/** How like a candidate's output the unknown one is. */
export interface Match extends Candidate, MatchMeasure {}

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
  /** Which techniques, each emulated or exact, explain the output best; the likeliest kernel first. */
  readonly searches: readonly TechniqueSearch[];
}

/** What an identification compares with, and how far it looks. */
export interface IdentificationOptions {
  /** Where the models of candidates are looked up; default the library's. */
  readonly models?: readonly KernelModel[];
  /** Default those of the models. */
  readonly candidates?: readonly Candidate[];
  /** The unknown LSE, natural logarithm, [batch, heads, queries]. */
  readonly lse?: Tensor;
  /**
   * Candidates whose techniques are searched; none for an empty list. Default: the candidate that is
   * equal throughout, else for one model after the other the likeliest candidate, going on from its
   * settings to those of others that explain more, until the output's bits are found.
   */
  readonly search?: readonly Candidate[];
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference;
  /** Called with how many candidates are done and how many there are, the search as the last. */
  readonly progress?: (done: number, total: number) => void;
}

/** Compares whatever the candidate makes of the problem with the unknown output. */
function compareCandidate(unknown: UnknownOutput, kernel: PreparedKernel): MatchMeasure {
  const meter = createMatchMeter(unknown);
  const format = formats[kernel.outFormat];
  for (let piece = 0; piece < kernel.pieces; piece++) {
    const { firstRow, out: patterns, lse } = kernel.run(piece);
    const lses = Float64Array.from(lse);
    meter.add(
      firstRow,
      roundedTo(unknown.out.format, decodeToFloat64(storageOf(format, patterns), format)),
      unknown.lse === null ? lses : roundedTo(unknown.lse.format, lses),
    );
  }
  return meter.measure();
}

/** A result, or why there is none. */
function attempt<Result>(make: () => Result): Result | { readonly reason: string } {
  try {
    return make();
  } catch (error) {
    if (error instanceof RequestError) return { reason: error.message };
    throw error;
  }
}

/**
 * The searches of the likeliest candidates: of the one that is equal throughout, or of each model until
 * one gives the output's bits.
 */
function likeliestSearches(
  unknown: UnknownOutput,
  matches: readonly (readonly [Candidate, MatchMeasure])[],
): TechniqueSearch[] {
  const known = matches
    .filter(([candidate]) => !('reason' in attempt(() => candidateKernel(unknown, candidate))))
    .sort(([, a], [, b]) => byLikeness(a, b));
  const [first] = known;
  if (first === undefined) return [];
  if (isEqualThroughout(first[1])) return [searchTechniques(unknown, first[0])];
  const searches: TechniqueSearch[] = [];
  for (const model of new Set(known.map(([{ model: name }]) => name))) {
    const [start, ...others] = known
      .map(([candidate]) => candidate)
      .filter((candidate) => candidate.model === model);
    const search = searchFrom(unknown, start, others);
    searches.push(search);
    if (search.matches.some(isEqualThroughout)) break;
  }
  return searches;
}

/**
 * Compares an output of unknown origin with what the kernel models make of the same problem, then
 * searches which combination of their techniques, each as the kernel has it or exact, explains it best:
 * a kernel that keeps P in fp32, say, looks like fa4 with `p-round` exact. Several candidates or
 * combinations may give the same bits, for instance where no maximum grows; then all are equally near.
 *
 * The search takes some seconds for each kernel model; `searchTechniques` tells what it samples.
 *
 * @throws RequestError when the output or the LSE does not have the problem's shape, for an unknown
 * model, and for a candidate to search that cannot be attributed
 */
export function identifyKernel(
  problem: Problem,
  output: Tensor,
  options: IdentificationOptions = {},
): Identification {
  checkShapes(problem, output, options.lse);
  const { models = kernelModels, progress } = options;
  const { candidates = candidatesOf(models) } = options;
  const reference = options.reference ?? attentionOracle(problem);
  const unknown = readUnknown(problem, reference, output, options.lse, models);
  const measured: [Candidate, MatchMeasure][] = [];
  const skipped: (Candidate & { reason: string })[] = [];
  candidates.forEach((candidate, i) => {
    const model = findModelAmong(models, candidate.model);
    const kernel = attempt(() =>
      model.prepare(problem, new Map(Object.entries(candidate.settings))),
    );
    if ('reason' in kernel) skipped.push({ ...candidate, ...kernel });
    else measured.push([candidate, compareCandidate(unknown, kernel)]);
    progress?.(i + 1, candidates.length + 1);
  });
  const searches =
    options.search?.map((candidate) => searchTechniques(unknown, candidate)) ??
    likeliestSearches(unknown, measured);
  progress?.(candidates.length + 1, candidates.length + 1);
  const { values, correct } = unknown.out;
  return {
    elements: values.length,
    misrounded: values.reduce((count, x, i) => count + (Object.is(x, correct[i]) ? 0 : 1), 0),
    matches: measured
      .map(([candidate, measure]) => ({ ...candidate, ...measure }))
      .sort((a, b) => b.equal - a.equal || b.likeness - a.likeness),
    skipped,
    searches: searches
      .filter(({ matches }) => matches.length > 0)
      .sort((a, b) => byLikeness(a.matches[0], b.matches[0])),
  };
}
