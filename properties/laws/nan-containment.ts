import { describePlace } from '../../src/audit/index.js';
import {
  hasKey,
  problemMask,
  problemShape,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { randomValues, tensorNames, type TensorName } from '../problems/index.js';
import { compareRuns, describeDifference, placeOfRow } from './compare-runs.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import {
  replaceElements,
  specialBits,
  specialValuesOf,
  type ElementPlace,
} from './replace-elements.js';

/** Number of places tried in a tensor, for each kind of special value in each tensor. */
const placeChoices = 16;
/** NaN half of the time, since infinities in Q and K may do no harm. */
const kindChoices = 4;

/** A special value at one place of one tensor. */
interface PlantedValue extends ElementPlace {
  readonly tensor: TensorName;
  readonly value: number;
}

/** The special value that a choice plants; choice 0: NaN in the first element of Q. */
function plantedValue(problem: Problem, choice: number): PlantedValue {
  const tensor = tensorNames[choice % tensorNames.length];
  const { format, shape } = problem[tensor];
  const values = specialValuesOf(format);
  const kind = Math.floor(choice / tensorNames.length) % kindChoices;
  const value = values[Math.max(0, kind - 1) % values.length];
  const isFirst = choice < tensorNames.length * kindChoices;
  const random = randomValues(choice);
  const dims = shape.length === 3 ? [1, ...shape] : shape;
  const [batch, head, row, column] = dims.map((size) =>
    isFirst ? 0 : random.integer(0, size - 1),
  ) as [number, number, number, number];
  return { tensor, value, batch, head, row, column };
}

function withPlanted(problem: Problem, { tensor, value, ...place }: PlantedValue): Problem {
  const bits = specialBits(problem[tensor].format, value);
  const isPlace = (at: ElementPlace) =>
    at.batch === place.batch &&
    at.head === place.head &&
    at.row === place.row &&
    at.column === place.column;
  const changed = replaceElements(problem[tensor], (at) => (isPlace(at) ? bits : null));
  return { ...problem, [tensor]: changed };
}

/** Whether a planted value reaches a row of the output; open where the law leaves it free. */
type Reach = 'out of reach' | 'reached' | 'open';

/**
 * The rows that a value in Q, K or V reaches: those of its query, or of its group of heads that see its
 * key. Rows of the group that do not see the key are left open, for the laws of masked keys; so is a
 * query that sees nothing.
 */
function reachOf(
  problem: Problem,
  shape: ProblemShape,
  planted: PlantedValue,
): (row: number) => Reach {
  const { tensor, batch, head, row: place } = planted;
  const mask = problemMask(problem, shape);
  return (row) => {
    const at = placeOfRow(shape, row);
    const ranges = mask.ranges(Math.floor(row / shape.queries), at.query!);
    if (at.batch !== batch) return 'out of reach';
    if (tensor === 'q') {
      if (at.head !== head || at.query !== place) return 'out of reach';
      return ranges.length > 0 ? 'reached' : 'open';
    }
    if (Math.floor(at.head / shape.groupSize) !== head) return 'out of reach';
    return hasKey(ranges, place) ? 'reached' : 'open';
  };
}

/** The first result that is finite though a planted value reaches it, in a sentence; null for none. */
function swallowed(
  { shape, out, lse }: KernelRun,
  reach: (row: number) => Reach,
  { tensor, column }: PlantedValue,
  words: string,
): string | null {
  const { vDim } = shape;
  const isAffected = (i: number) =>
    reach(Math.floor(i / vDim)) === 'reached' && (tensor !== 'v' || i % vDim === column);
  const element = out.findIndex((x, i) => Number.isFinite(x) && isAffected(i));
  if (element >= 0) {
    const at = { ...placeOfRow(shape, Math.floor(element / vDim)), column: element % vDim };
    return `O at ${describePlace(at)} is ${out[element]}, finite ${words} that it depends on`;
  }
  if (tensor === 'v' || lse === null) return null;
  const row = lse.findIndex((x, i) => Number.isFinite(x) && reach(i) === 'reached');
  if (row < 0) return null;
  return `the LSE at ${describePlace(placeOfRow(shape, row))} is ${lse[row]}, finite ${words} that it depends on`;
}

/**
 * A NaN or an infinity at one place of Q, K or V. Results that it does not reach keep their bits: other
 * rows for one in Q; other groups of heads for one in K; the LSE and other columns of V for one in V.
 * Where special values are promised, reached results must not be finite either, but for an infinity in Q
 * or K, whose score may be −∞.
 */
export const nanContainment: Law = {
  statement:
    'A NaN or an infinity changes what depends on it, which is not finite then, and nothing else',
  reason:
    'A row depends on its query, on the keys that it sees and on their values column by column. Shared maxima and sums spread a NaN; maxima and software exponentials that drop NaNs swallow it.',
  strengths: ['bits'],
  usual: 'bits',
  choices: tensorNames.length * kindChoices * placeChoices,
  without: ['dropout'],
  violation: async ({ problem, choice }, { run, promises }) => {
    const shape = problemShape(problem);
    const planted = plantedValue(problem, choice);
    const { tensor, value, batch, head, row: place, column } = planted;
    const reach = reachOf(problem, shape, planted);
    const [usual, found] = [await run(problem), await run(withPlanted(problem, planted))];
    const isValue = tensor === 'v';
    const { difference, compared } = compareRuns(usual, found, {
      elements: (row, c) => reach(row) === 'out of reach' || (isValue && c !== column),
      rows: (row) => reach(row) === 'out of reach' || isValue,
    });
    const where = `${batch === 0 ? '' : `batch ${batch}, `}${tensor === 'q' ? 'head' : 'kv head'} ${head}, ${tensor === 'q' ? 'query' : 'key'} ${place}, column ${column}`;
    const words = `with ${value} in ${tensor.toUpperCase()} at ${where}`;
    if (difference !== null)
      return describeDifference(difference, 'at first', `${words}, on which it does not depend`);
    const mustShow = promises.specialValues && (Number.isNaN(value) || isValue);
    if (compared === 0 && !mustShow)
      throw new NotApplicable('every result of the problem depends on the special value');
    return mustShow ? swallowed(found, reach, planted, words) : null;
  },
};
