import { findModelAmong, type AttributedKernel, type EmulatedNames } from '../../kernels/index.js';
import type { Candidate } from './kernel-choice.js';
import { compareRuns, samplePieces } from './compare-runs.js';
import {
  byLikeness,
  isEqualThroughout,
  type MatchMeasure,
  significance,
  type UnknownOutput,
} from './match-meter.js';

/** Combinations of techniques that produce the same bits in all compared results. */
export interface TechniqueMatch extends MatchMeasure {
  /** Techniques that are exact in every one of the combinations. */
  readonly exact: readonly string[];
  /** Techniques that are exact in some of them: the choice makes no difference here. */
  readonly either: readonly string[];
  /** The exact techniques of each combination, fewest first. */
  readonly combinations: readonly (readonly string[])[];
}

/** The combinations of a kernel's techniques, each emulated or exact, that an unknown output looks like. */
export interface TechniqueSearch {
  readonly candidate: Candidate;
  /** The techniques that were tried both ways, in the order in which they act. */
  readonly techniques: readonly string[];
  /** Number of combinations of them that were tried. */
  readonly combinations: number;
  /** Rows on which the best combinations were compared, of all rows. */
  readonly rows: number;
  readonly totalRows: number;
  /**
   * The eight likeliest, the nearest and the one with every technique emulated, in this order: equal
   * throughout, then by likeness beyond chance, then by equal elements.
   */
  readonly matches: readonly TechniqueMatch[];
  /**
   * The match that explains the output best: the first if it is equal throughout, else the one with the
   * fewest exact techniques of those that chance may have put behind it: whose number of equal elements
   * is within three standard deviations, each the root of the number that are equal in only one of the
   * two.
   */
  readonly nearest: TechniqueMatch;
  /**
   * Other candidates of the model that were tried and give the output's bits too, each with techniques
   * exact that make it do so.
   */
  readonly alike: readonly { readonly candidate: Candidate; readonly exact: readonly string[] }[];
}

/** The most pairs of a query and a key, times combinations, on the first sample: a second or so. */
export const mostWork = 2 ** 22;
/** The most pairs times combinations on the larger sample, on which the best ones are then compared. */
export const mostSecondWork = 2 ** 24;
/**
 * Number of classes of combinations compared there: the likeliest of those that the first sample
 * distinguishes, and more as long as they hold fewer combinations than this.
 */
const fewestClasses = 4;
const survivors = 96;
/** Matches that are reported. */
const shownMatches = 8;

/** All combinations of techniques, the emulated ones of each; all emulated first, none last. */
function combinationsOf(techniques: readonly string[]): (readonly string[])[] {
  return Array.from({ length: 2 ** techniques.length }, (_, exact) =>
    techniques.filter((_, bit) => ((exact >> bit) & 1) === 0),
  );
}

/** A class of combinations as a match. */
function matchOf(
  techniques: readonly string[],
  emulated: readonly (readonly string[])[],
  measure: MatchMeasure,
): TechniqueMatch {
  const combinations = emulated
    .map((names) => techniques.filter((name) => !names.includes(name)))
    .sort((a, b) => a.length - b.length);
  const share = (name: string): number =>
    combinations.filter((exact) => exact.includes(name)).length / combinations.length;
  return {
    ...measure,
    exact: techniques.filter((name) => share(name) === 1),
    either: techniques.filter((name) => share(name) > 0 && share(name) < 1),
    combinations,
  };
}

/**
 * The nearest of matches, which are given likeliest first.
 * @param discordant for a match the number of elements that are equal only in it or only in the first
 */
function nearestOf(
  matches: readonly TechniqueMatch[],
  discordant: (match: TechniqueMatch) => number,
): TechniqueMatch {
  const [first] = matches;
  if (isEqualThroughout(first)) return first;
  return matches
    .filter(
      (match) => Math.abs(first.equal - match.equal) <= significance * Math.sqrt(discordant(match)),
    )
    .reduce((nearest, match) => (fewerExact(match, nearest) < 0 ? match : nearest));
}

function fewerExact(a: TechniqueMatch, b: TechniqueMatch): number {
  return a.combinations[0].length - b.combinations[0].length;
}

/**
 * The kernel of a candidate, ready to be run with techniques emulated or exact.
 * @throws RequestError for a problem or settings that it refuses, and for an unknown model
 */
export function candidateKernel(
  { problem, models }: UnknownOutput,
  { model, settings }: Candidate,
): AttributedKernel {
  return findModelAmong(models, model).attribute(problem, new Map(Object.entries(settings)));
}

/** The pieces to try some combinations on. */
export function piecesFor(
  kernel: AttributedKernel,
  combinations: number,
  work: number = mostWork,
): number[] {
  return samplePieces(kernel, work / Math.max(combinations, 1));
}

/**
 * Tries every combination of a candidate's techniques, each emulated or exact, on a sample of the
 * problem, and compares those that explain the unknown output best on a larger one. A sample is pieces
 * spread evenly, one at least, up to 2^22 pairs of a query and a key divided by the combinations tried,
 * then 2^24: 128 × 128 for 256 combinations, say, then 256 × 512 for 128 of them. Results are rounded to the
 * format of the output before; where that is the kernel's own format, `output-round` is not tried both
 * ways: an exact output would be rounded too.
 *
 * @throws RequestError as `candidateKernel`
 */
export function searchTechniques(unknown: UnknownOutput, candidate: Candidate): TechniqueSearch {
  const kernel = candidateKernel(unknown, candidate);
  const isOwnFormat = unknown.out.format === kernel.outFormat;
  const techniques = kernel.techniques.filter((name) => !(isOwnFormat && name === 'output-round'));
  const tried = combinationsOf(techniques);
  const chosen = (runs: readonly (readonly string[])[]): EmulatedNames[] =>
    runs.map((names) => new Set(names));

  const sample = piecesFor(kernel, tried.length);
  const first = compareRuns(unknown, kernel, chosen(tried), sample);
  const likeliest = [...first.classes].sort(([a], [b]) =>
    byLikeness(first.measures[a], first.measures[b]),
  );
  const kept: number[] = [];
  likeliest.forEach((members, i) => {
    if (i < fewestClasses || kept.length + members.length <= survivors) kept.push(...members);
  });
  const ofModel = first.classes[0];
  if (!kept.includes(ofModel[0])) kept.push(...ofModel);
  const survived = kept.sort((a, b) => a - b).map((run) => tried[run]);
  const more = piecesFor(kernel, survived.length, mostSecondWork);
  const pieces = [...new Set([...sample, ...more])].sort((a, b) => a - b);
  const second = compareRuns(unknown, kernel, chosen(survived), pieces);
  const found = second.classes
    .map((members) => ({
      run: members[0],
      match: matchOf(
        techniques,
        members.map((run) => survived[run]),
        second.measures[members[0]],
      ),
    }))
    .sort((a, b) => byLikeness(a.match, b.match) || fewerExact(a.match, b.match));
  const matches = found.map(({ match }) => match);
  const runOf = new Map(found.map(({ match, run }) => [match, run]));
  const nearest = nearestOf(matches, (match) =>
    second.discordant(runOf.get(matches[0])!, runOf.get(match)!),
  );
  const { batch, heads, queries } = kernel.shape;
  return {
    candidate,
    techniques,
    combinations: tried.length,
    rows: second.rows,
    totalRows: batch * heads * queries,
    matches: matches.filter(
      (match, i) => i < shownMatches || match.combinations[0].length === 0 || match === nearest,
    ),
    nearest,
    alike: [],
  };
}
