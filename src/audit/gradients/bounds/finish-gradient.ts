import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import { createAllocator, instantiator } from '../../../reuse.js';
import { placeCount, type TechniqueShares } from './gradient-techniques.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import type { PairArithmetic, SumErrors } from './pair-arithmetic.js';
import { mostOtherUnits, pairParts, type PairSums } from './pairs/pair-sums.js';
import {
  binary,
  finishedRow,
  finishRules,
  format as formatStruct,
  type FinishedRow,
} from './pairs/pairs.generated.js';

/** A factor that covers, many times over, what fp64 leaves uncertain in all of this. */
export const up = 1 + 2 ** -12;

/** The most known parts that an element has beside the first: by each other factor, and again for shares of heads that are not stored. */
const mostKnown = 2 * mostOtherUnits + 1;

/** Errors of an element before it is rounded. The object is used again from element to element. */
export interface ElementErrors {
  /** The shift by the stored forward, signed. */
  shift: number;
  /** Errors of the pairs that it is a sum over: all techniques together at worst, and the variance without the known part. */
  pairs: number;
  pairVariance: number;
  /** The known part of the roundings of pairs, signed, and the technique place that it belongs to. */
  known: number;
  readonly knownOf: number;
  /** The known part where no head's share is stored, if one may be: the larger of both counts. */
  unstored: number;
  /** The known part by each of the other factors; where a head's share may be stored, the same once more for shares that are not. */
  readonly byOthers: Float64Array;
  /** The magnitude of the sum: its terms with their errors; and the number of terms that may err alike. */
  magnitude: number;
  /** The mean square of its partial sums; Infinity where nothing but the magnitude is known. */
  partials: number;
  readonly alike: number;
  /** Errors at worst, and variances, of techniques that are not of pairs. */
  lseInput: number;
  lseVariance: number;
  delta: number;
  deltaVariance: number;
  groupSum: number;
  groupVariance: number;
  /** The part that does not average out, without the sum's and the scale's. */
  systematic: number;
  /** The largest total of numbers that underflow. */
  floor: number;
}

/** An element without errors. */
export function noErrors(of: Pick<ElementErrors, 'knownOf' | 'alike'>): ElementErrors {
  return {
    ...of,
    shift: 0,
    pairs: 0,
    pairVariance: 0,
    known: 0,
    unstored: 0,
    byOthers: new Float64Array(mostKnown),
    magnitude: 0,
    partials: Infinity,
    lseInput: 0,
    lseVariance: 0,
    delta: 0,
    deltaVariance: 0,
    groupSum: 0,
    groupVariance: 0,
    systematic: 0,
    floor: 0,
  };
}

/** The errors of an element, in the order of the loop, and columns before them, behind them and that it writes. */
const errorColumns = [
  ...(['shift', 'pairs', 'pairVariance', 'known', 'unstored', 'magnitude', 'partials'] as const),
  ...(['lseInput', 'lseVariance', 'delta', 'deltaVariance', 'groupSum', 'groupVariance'] as const),
  ...(['systematic', 'floor'] as const),
] as const satisfies readonly (keyof ElementErrors)[];
const [exactColumn, radiusColumn, firstError] = [0, 1, 2];
const firstOther = firstError + errorColumns.length;
const firstWritten = firstOther + mostKnown;
const writtenColumns = [
  ...(['total', 'systematic', 'known', 'deviation', 'reach', 'shift', 'operands'] as const),
] as const satisfies readonly (keyof GradientTechniqueBound)[];
const firstOtherWritten = firstWritten + writtenColumns.length;
const columnCount = firstOtherWritten + mostKnown;

/** Sums of elements, in the order of the loop: of parts of pairs, and what storing shares of heads loses. */
const firstStored = pairParts.length + 1;
const sumCount = firstStored + 2 + 1 + mostOtherUnits;

/** The loops that finish rows. */
interface FinishKernels {
  readonly memory: WebAssembly.Memory;
  errQueries(rules: number, row: number, count: number): void;
  errKeys(rules: number, row: number, count: number): void;
  finishElements(rules: number, alike: number, count: number): void;
}

const instantiate = instantiator<FinishKernels>(binary, 'the bounds of elements of gradients');

/** The loss of storing the shares of query heads, element by element: at worst, its variance, and what is known by each factor. */
export interface StoredLoss {
  readonly worst: Float64Array;
  readonly variance: Float64Array;
  readonly known: readonly Float64Array[];
}

/** Facts about a row of a gradient, without those that are the finish's. */
export type RowFacts = Omit<FinishedRow, 'isOfSums' | 'isStored'>;

/** The bounds of rows of a gradient. */
export interface RowFinish {
  /** Writes the bound of element `at` of a row from its errors. */
  readonly element: (
    bound: GradientTechniqueBound,
    row: number,
    at: number,
    exact: Gradient,
    errors: ElementErrors,
  ) => void;
  /** Writes those of a row of dQ, or of dK or dV, whose sums are those from `first` on. */
  readonly row: (
    of: 'queries' | 'keys',
    to: { readonly bound: GradientTechniqueBound; readonly row: number; readonly exact: Gradient },
    from: {
      readonly sums: PairSums;
      readonly stored: StoredLoss | null;
      readonly first: number;
    },
    facts: RowFacts,
  ) => void;
}

/** What all elements of a gradient have in common. */
interface FinishSettings {
  /** Errors of any sum of the gradient. */
  readonly sum: SumErrors;
  /** The factor by which storing a head's share may enlarge errors before it. */
  readonly growth: number;
  /** The elements of a row; the place of the technique whose roundings are known; default: one of `element`'s. */
  readonly columns?: number;
  readonly knownOf?: number;
  /** The number of known parts beside the first: by other factors, and of them all where shares may be stored. */
  readonly ownOthers?: number;
  readonly others?: number;
}

/** Places what all rows have in common. */
function placeFinish(
  { elementwise, elementwiseVariance }: PairArithmetic,
  name: FormatName,
  { sum, growth, columns = 1, knownOf = 0, ownOthers = 0, others = ownOthers }: FinishSettings,
) {
  const table = formats[name];
  const kernels = instantiate();
  const stride = 2 * Math.ceil(columns / 2);
  const numbers = (columnCount + sumCount) * stride + 2 * placeCount;
  const { allocate, struct } = createAllocator(kernels.memory, 8 * numbers);
  const block = (length: number) => {
    const address = allocate(8 * length);
    return { address, view: new Float64Array(kernels.memory.buffer, address, length) };
  };
  const [elements, sums] = [block(columnCount * stride), block(sumCount * stride)];
  const shares = block(2 * placeCount);
  const { precision, minExponent, maxExponent, maxFinite, specials } = table;
  const isFinite = specials === 'finite';
  const placed = struct(finishRules);
  const fields = {
    format: struct(formatStruct).write({
      precision,
      minExponent,
      maxExponent,
      maxFinite,
      isFinite,
    }),
    // A number halfway to the next one beyond the largest becomes infinite.
    infinite: maxFinite * (1 + unitRoundoff(table) / 2),
    isFp64: name === 'fp64',
    elementwise,
    elementwiseVariance,
    sumWorst: sum.worst,
    sumToZero: sum.toZero,
    sumWalk: sum.walk,
    grown: growth * up,
    elements: elements.address,
    sums: sums.address,
    stride: 8 * stride,
    shares: shares.address,
    ownOthers,
    others,
  };
  const write = (place: number, count: number) =>
    placed.write({ ...fields, knownOf: place, others: count });
  return {
    kernels,
    write,
    rules: write(knownOf, others),
    finished: struct(finishedRow),
    columns,
    /** Column `k` of the elements, and of the sums. */
    element: (k: number) => elements.view.subarray(k * stride, k * stride + columns),
    sum: (k: number) => sums.view.subarray(k * stride, k * stride + columns),
    shares: shares.view,
  };
}

/** Moves the shares of a row to the loop's memory, and back once `work` has added to them. */
function withShares(
  { worst, variance }: TechniqueShares,
  row: number,
  memory: Float64Array,
  work: () => void,
): void {
  const [from, to] = [row * placeCount, (row + 1) * placeCount];
  memory.set(worst.subarray(from, to));
  memory.set(variance.subarray(from, to), placeCount);
  work();
  worst.set(memory.subarray(0, placeCount), from);
  variance.set(memory.subarray(placeCount), from);
}

/** Makes functions that write the bounds of rows: `accumulate`, `scale` and `output-round`, Theorems 8 and 9. */
export function createFinish(
  arithmetic: PairArithmetic,
  format: FormatName,
  settings: FinishSettings,
): RowFinish {
  const memory = placeFinish(arithmetic, format, settings);
  const { kernels, columns, rules } = memory;
  const columnsOf = Array.from({ length: columnCount }, (_, k) => memory.element(k));
  const sumsOf = Array.from({ length: sumCount }, (_, k) => memory.sum(k));
  const copyBack = (bound: GradientTechniqueBound, at: number, count: number) => {
    const written = (k: number) => columnsOf[k].subarray(0, count);
    writtenColumns.forEach((name, k) => bound[name].set(written(firstWritten + k), at));
    bound.byOthers.forEach((of, k) => of.set(written(firstOtherWritten + k), at));
  };
  return {
    element: (bound, row, at, { values, radius }, errors) => {
      columnsOf[exactColumn][0] = values[at];
      columnsOf[radiusColumn][0] = radius[at];
      errorColumns.forEach((name, k) => (columnsOf[firstError + k][0] = errors[name]));
      errors.byOthers.forEach((x, k) => (columnsOf[firstOther + k][0] = x));
      withShares(bound.techniques, row, memory.shares, () =>
        kernels.finishElements(
          memory.write(errors.knownOf, bound.byOthers.length),
          errors.alike,
          1,
        ),
      );
      copyBack(bound, at, 1);
    },
    row: (of, { bound, row, exact }, { sums, stored, first }, facts) => {
      const at = row * columns;
      columnsOf[exactColumn].set(exact.values.subarray(at, at + columns));
      columnsOf[radiusColumn].set(exact.radius.subarray(at, at + columns));
      const load = (k: number, numbers: Float64Array) => {
        if (numbers.length > 0) sumsOf[k].set(numbers.subarray(first, first + columns));
      };
      pairParts.forEach((part, k) => load(k, sums[part]));
      load(pairParts.length, sums.largest);
      if (stored !== null)
        [stored.worst, stored.variance, ...stored.known].forEach((numbers, k) =>
          load(firstStored + k, numbers),
        );
      const address = memory.finished.write({
        ...facts,
        isOfSums: sums.ofScores.length > 0,
        isStored: stored !== null,
      });
      withShares(bound.techniques, row, memory.shares, () => {
        if (of === 'queries') kernels.errQueries(rules, address, columns);
        else kernels.errKeys(rules, address, columns);
        kernels.finishElements(rules, facts.alike, columns);
      });
      copyBack(bound, at, columns);
    },
  };
}

/** Facts about a row of keys, which has no errors of its own: they are among its pairs'. */
export function keyFacts({
  scale,
  alike,
  isUnknown,
  floor,
}: Pick<RowFacts, 'scale' | 'alike' | 'isUnknown' | 'floor'>): RowFacts {
  return {
    scale,
    alike,
    isUnknown,
    floor,
    weightShift: 0,
    meanShift: 0,
    weight: 0,
    weightVariance: 0,
    worstMean: 0,
    meanVariance: 0,
    typicalMean: 0,
    typicalWeight: 0,
  };
}
