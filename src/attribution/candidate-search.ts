import type { Candidate } from './kernel-choice.js';
import { compareRuns } from './compare-runs.js';
import { byLikeness, isEqualThroughout, type MatchMeasure } from './match-meter.js';
import {
  candidateKernel,
  mostSecondWork,
  mostWork,
  piecesFor,
  searchTechniques,
  type TechniqueSearch,
} from './technique-search.js';
import type { UnknownOutput } from './unknown-output.js';

/** How often the search moves on to other settings; each time they explain more than before. */
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

/** Of the likeliest matches the combinations with the fewest exact techniques. */
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
export function searchFrom(
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
