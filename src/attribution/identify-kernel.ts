import { type Candidate, candidatesOf } from './kernel-choice.js';
import { compareRuns } from './compare-runs.js';
import {
  byLikeness,
  checkShapes,
  createMatchMeter,
  isEqualThroughout,
  type MatchMeasure,
  readUnknown,
  roundedTo,
  type UnknownOutput,
} from './match-meter.js';
import {
  candidateKernel,
  mostSecondWork,
  mostWork,
  piecesFor,
  searchTechniques,
  type TechniqueSearch,
} from './technique-search.js';
import {
  findModelAmong,
  type KernelModel,
  kernelModels,
  type PreparedKernel,
} from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { decodeToFloat64, formats, storageOf } from '../formats/index.js';
import type { Problem, Tensor } from '../problem/index.js';
import { RequestError } from '../request-error.js';

/** The most times that the search moves on to other settings, which explain more each time. */
const mostMoves = 4;
/** Combinations that are tried with other settings. */
const movedCombinations = 4;

/** The likeliest of some combinations with a candidate, by their exact techniques. */
interface CandidateMatch {
  readonly candidate: Candidate;
  readonly exact: readonly string[];
  readonly measure: MatchMeasure;
}

function likeliestOf(
  unknown: UnknownOutput,
  candidate: Candidate,
  combinations: readonly (readonly string[])[],
  work: number,
): CandidateMatch {
  const kernel = candidateKernel(unknown, candidate);
  const choices = combinations.map(
    (exact) => new Set(kernel.techniques.filter((name) => !exact.includes(name))),
  );
  const pieces = piecesFor(kernel, combinations.length, work);
  const { measures } = compareRuns(unknown, kernel, choices, pieces);
  return measures
    .map((measure, i) => ({ candidate, exact: combinations[i], measure }))
    .sort((a, b) => byLikeness(a.measure, b.measure))[0];
}

/** The combinations with the fewest exact techniques, from each of the likeliest matches. */
function combinationsToMove({ matches }: TechniqueSearch): (readonly string[])[] {
  return matches.slice(0, movedCombinations).map(({ combinations }) => combinations[0]);
}

/**
 * Searches the techniques of a candidate; unless some combination gives the output's bits, tries the
 * combinations that explain it best with the other candidates too, moves on to the one that explains
 * most, and so on: settings that do not show while a technique hides them may show once it is exact.
 *
 * @param others candidates of the same model
 * @throws RequestError as `searchTechniques`
 */
function searchFrom(
  unknown: UnknownOutput,
  start: Candidate,
  others: readonly Candidate[],
): TechniqueSearch {
  const all = [start, ...others];
  const measured = (search: TechniqueSearch, work: number): CandidateMatch[] =>
    all.map((candidate) =>
      likeliestOf(unknown, candidate, combinationsToMove(search), work / all.length),
    );
  let best = searchTechniques(unknown, start);
  for (let move = 0; move < mostMoves; move++) {
    if (best.matches.length === 0 || isEqualThroughout(best.matches[0])) break;
    const { candidate } = best;
    const [next] = measured(best, mostWork)
      .filter((match) => match.candidate !== candidate)
      .sort((a, b) => byLikeness(a.measure, b.measure));
    if (next === undefined || byLikeness(next.measure, best.matches[0]) >= 0) break;
    const search = searchTechniques(unknown, next.candidate);
    if (byLikeness(search.matches[0], best.matches[0]) >= 0) break;
    best = search;
  }
  if (best.matches.length === 0 || !isEqualThroughout(best.matches[0])) return best;
  const { candidate } = best;
  const alike = measured(best, mostSecondWork)
    .filter((match) => match.candidate !== candidate && isEqualThroughout(match.measure))
    .map(({ candidate: other, exact }) => ({ candidate: other, exact }));
  return { ...best, alike };
}

/** The likeness of the unknown output to a candidate's. */
export interface Match extends Candidate, MatchMeasure {}

/** The kernels that an output looks like. */
export interface Identification {
  readonly elements: number;
  /** Elements of the output that are not the correctly rounded oracle. */
  readonly misrounded: number;
  /**
   * The most equal elements first, then the highest likeness, then as given. Where none is equal
   * throughout, an accurate candidate may lead an inaccurate output merely by rounding correctly; then
   * likeness and correlation beyond rounding are more telling.
   */
  readonly matches: readonly Match[];
  /** Candidates that do not take the problem or do not have the settings, and why. */
  readonly skipped: readonly (Candidate & { readonly reason: string })[];
  /** Searches for the techniques, each emulated or exact, that explain the output best; likeliest kernel first. */
  readonly searches: readonly TechniqueSearch[];
}

/** Candidates and limits of an identification. */
export interface IdentificationOptions {
  /** The models of candidates, to look up by name; default the library's. */
  readonly models?: readonly KernelModel[];
  /** The candidates; default those of the models. */
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
  /** Called with the number of candidates done, and of all candidates, the search counting as the last. */
  readonly progress?: (done: number, total: number) => void;
}

/** Compares the candidate's outputs for the problem with the unknown output. */
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

/** A result, or the reason that there is none. */
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
 * Compares an output of unknown origin with those of the kernel models for the same problem, then
 * searches which combination of their techniques, each as the kernel has it or exact, explains it best:
 * a kernel that keeps P in fp32, say, looks like fa4 with `p-round` exact. Several candidates or
 * combinations may give the same bits, for instance where no maximum grows; then all are equally near.
 *
 * The search takes some seconds for each kernel model; `searchTechniques` describes its samples.
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
