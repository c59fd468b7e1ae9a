import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import { nameTolerance, relativeDistance, type NamedFactor } from '../contracts/index.js';
import type { RecurrentProblem, RecurrentShape } from '../../problem/index.js';
import {
  hasGates,
  possibleConstants,
  possibleScales,
  scaleOf,
  type RecurrentConstants,
} from './constants.js';
import {
  distanceFrom,
  elementsOf,
  type ExactElement,
  type RecurrentOutput,
  type RecurrentRealOf,
} from './exact-elements.js';

/** The factor of an output. */
export interface OutputScale {
  readonly value: DoubleDouble;
  /** By `possibleScales`; null for none of these. */
  readonly name: string | null;
  /** value / scale − 1; 0 for a scale of 0. */
  readonly fromExact: number;
}

/** States and columns by which the constants are found, spread over all. */
const [mostProbes, probeColumns] = [4, 1];

/** An element that is a smaller part of what its errors are relative to tells no scale. */
const leastShare = 2 ** -20;

/** Constants at this distance or less fit, and no later ones are taken for them. */
const fittingDistance = 1e-27;

/** So many numbers from 0 on, equally far apart. */
export function spread(all: number, most: number): readonly number[] {
  const count = Math.min(all, most);
  return Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * all) / count));
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)] ?? 0;
}

/** A scale with its name, if it is one that a correct kernel may have. */
function nameScale(value: DoubleDouble, scale: number): OutputScale {
  const named = possibleScales(scale).find(
    (one) => Math.abs(relativeDistance(value, one.value)) <= nameTolerance,
  );
  const known = named?.value ?? value;
  return {
    value: known,
    name: named?.name ?? null,
    fromExact: scale === 0 ? 0 : relativeDistance(known, doubleDouble(scale)),
  };
}

/** The first known scale that all elements of `out` fit; else of the known ones, and of those that the elements which say most give, the one that most fit. */
function findScale(
  elements: readonly ExactElement[],
  realOf: RecurrentRealOf,
  scale: number,
): OutputScale {
  const reals = elements.flatMap((element) => {
    const { output, place, column, exact, size } = element;
    const real = output === 'out' ? realOf(output, place, column) : null;
    const share = Math.abs(exact.high) / size;
    const isTelling = real !== null && Number.isFinite(real.high) && share > leastShare;
    return isTelling ? [{ element, real, share }] : [];
  });
  const distancesWith = ({ value }: OutputScale) =>
    reals.map(({ element, real }) => distanceFrom(element, real, value));
  const known = possibleScales(scale).map(({ value }) => nameScale(value, scale));
  const fitting = known.find((one) =>
    distancesWith(one).every((distance) => distance <= fittingDistance),
  );
  if (fitting !== undefined) return fitting;
  const telling = [...reals].sort((a, b) => b.share - a.share).slice(0, mostProbes);
  const found = telling.map(({ element, real }) =>
    nameScale(divideDoubleDouble(real, element.exact), scale),
  );
  return [...known, ...found]
    .map((one) => ({ one, distance: median(distancesWith(one)) }))
    .reduce((a, b) => (b.distance < a.distance ? b : a)).one;
}

/** Some constants with the scale that fits them, and how far elements are from their real values. */
export interface Fit {
  readonly constants: RecurrentConstants;
  readonly scale: OutputScale;
  readonly median: number;
  readonly worst: number;
}

/** The constants that the real values of some columns fit, and whether they are no others'. */
export function findConstants(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  outputs: readonly RecurrentOutput[],
  realOf: RecurrentRealOf,
): { readonly fit: Fit; readonly isGateTold: boolean } {
  const probes = spread(shape.sequences.length * shape.valueHeads, mostProbes).map((state) => ({
    sequence: Math.floor(state / shape.valueHeads),
    head: state % shape.valueHeads,
    columns: spread(shape.valueDim, probeColumns),
  }));
  const fitOf = (constants: RecurrentConstants): Fit => {
    const elements = probes.flatMap((at) => elementsOf(problem, shape, at, constants, outputs));
    const scale = findScale(elements, realOf, scaleOf(problem, shape.keyDim));
    const distances = elements.flatMap((element) => {
      const real = realOf(element.output, element.place, element.column);
      return real === null ? [] : [distanceFrom(element, real, scale.value)];
    });
    return { constants, scale, median: median(distances), worst: Math.max(0, ...distances) };
  };
  const fits: Fit[] = [];
  for (const constants of possibleConstants(problem)) {
    fits.push(fitOf(constants));
    if (fits.at(-1)!.worst <= fittingDistance) break;
  }
  const last = fits.at(-1)!;
  const fit =
    last.worst <= fittingDistance ? last : fits.reduce((a, b) => (b.median < a.median ? b : a));
  const { logarithm } = fit.constants;
  if (!hasGates(problem) || logarithm === null || fit.worst > fittingDistance)
    return { fit, isGateTold: true };
  const doubled: NamedFactor = {
    name: 'doubled',
    value: addDoubleDouble(logarithm.value, logarithm.value),
  };
  const other = fitOf({ ...fit.constants, logarithm: doubled });
  return { fit, isGateTold: other.worst > fittingDistance };
}
