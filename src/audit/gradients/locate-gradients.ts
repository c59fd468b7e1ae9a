import { rowPlaces, type Problem, type ProblemShape } from '../../problem/index.js';
import type { Coordinates } from '../kernel-outputs.js';
import type { JudgedGradient } from './judge-gradient.js';
import { placeShared, sharedShape } from './shared-gradients.js';

/** Places of rows within their own packed sequence; as they are where there are none. */
function placeIn(problem: Problem, shape: ProblemShape): (at: Coordinates) => Coordinates {
  const { sequences } = problem;
  if (sequences === undefined) return (at) => at;
  const placeOf = rowPlaces(problem, shape);
  return (at) => {
    const { query, key } = at;
    if (query !== undefined) {
      const place = placeOf(at.head, query);
      return { ...at, query: place.query, sequence: place.sequence };
    }
    if (key === undefined) return at;
    const sequence = sequences.findIndex(
      ({ firstKey, keys }) => key >= firstKey && key < firstKey + keys,
    );
    return { ...at, key: key - sequences[sequence].firstKey, sequence };
  };
}

/** What the tests say of gradients, with the places of single elements within their own sequences. */
export function locateGradients(
  gradients: readonly JudgedGradient[],
  problem: Problem,
  shape: ProblemShape,
): readonly JudgedGradient[] {
  const ofRows = placeIn(problem, shape);
  const placeOf = (name: string): ((at: Coordinates) => Coordinates) =>
    name === 'dbias' || name === 'dsink'
      ? placeShared(name, sharedShape(problem, shape, name), problem)
      : ofRows;
  return gradients.map((judged) => {
    const place = placeOf(judged.quantity.name);
    const placed = <T extends { readonly at: Coordinates }>(one: T | null) =>
      one === null ? null : { ...one, at: place(one.at) };
    const { error, elements, spread } = judged;
    const first = elements.firstNonFinite;
    return {
      ...judged,
      error: { ...error, worst: placed(error.worst) },
      elements: {
        ...elements,
        worst: placed(elements.worst),
        firstNonFinite: first === null ? null : place(first),
      },
      spread: { ...spread, worst: placed(spread.worst) },
    };
  });
}
