import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  roundSumToFloat32,
  type DoubleDouble,
} from '../../arith/index.js';
import { ln2Words, log2eWords, type ExponentRow } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { exponentsOf, type RowPlace } from './exact-row.js';
import { libdeviceTangents } from './libdevice-tangent.js';
import { power } from './weigh-row.js';

/** A way in which kernels make softcap · tanh(scale · q·k / softcap). */
export interface CapLaw {
  /** The function and its argument, as `tanhf(scale·fp32(1/softcap)·q·k)`. */
  readonly name: string;
  /** A row by this law: several where rounding of a score may decide how its tanh is computed. */
  readonly rowsOf: (place: RowPlace) => readonly ExponentRow[];
}

/** A tanh of kernels: the values that it may have, of which the first is by the number as it is. */
type Tangent = (x: DoubleDouble) => readonly DoubleDouble[];

/** Beyond this the tanh is ±1 to within 2^-127. */
const largestArgument = 44;

/** tanh x = (2^w − 1) / (2^w + 1), w = 2 x log2 e: absolute error some 2^-98. */
const tangents: Tangent = (x) => {
  if (Math.abs(x.high) > largestArgument) return [doubleDouble(Math.sign(x.high))];
  const octaves = multiplyDoubleDouble(multiplyDoubleDoubleByFloat64(log2eWords(), 2), x);
  const grown = power(octaves);
  const [above, below] = [1, -1].map((one) => addFloat64ToDoubleDouble(grown, one));
  return [divideDoubleDouble(below, above)];
};

/** What q·k is multiplied by before the tanh: constants of fp32 in several orders, the exact one first. */
function argumentFactors(
  scale: number,
  softcap: number,
): readonly (readonly [string, DoubleDouble])[] {
  const fp32 = ({ high, low }: DoubleDouble) => roundSumToFloat32(high, low, 'nearest-even');
  const quotient = (x: number) => divideDoubleDoubleByFloat64(doubleDouble(x), softcap);
  const single = Math.fround(scale);
  const reciprocal = fp32(quotient(1));
  const times = (x: number) => multiplyDoubleDoubleByFloat64(doubleDouble(x), reciprocal);
  return [
    ['scale/softcap', quotient(scale)],
    ['scale·fp32(1/softcap)', times(scale)],
    ['fp32(scale)/softcap', quotient(single)],
    ['fp32(scale)·fp32(1/softcap)', times(single)],
    ['fp32(scale/softcap)', doubleDouble(fp32(quotient(scale)))],
    ['fp32(fp32(scale)/softcap)', doubleDouble(fp32(quotient(single)))],
    ['fp32(scale·fp32(1/softcap))', doubleDouble(fp32(times(scale)))],
    ['fp32(fp32(scale)·fp32(1/softcap))', doubleDouble(fp32(times(single)))],
  ];
}

/** The most scores of a row for which both ways of a tanh are tried. */
const mostOpen = 3;

/** Every choice of one from each list; only the first of those that have several beyond `mostOpen` lists. */
function choices<T>(lists: readonly (readonly T[])[]): readonly (readonly T[])[] {
  let open = 0;
  return lists.reduce<readonly (readonly T[])[]>(
    (found, list) => {
      const some = list.length > 1 && ++open > mostOpen ? list.slice(0, 1) : list;
      if (some.length === 1) return found.map((one) => [...one, some[0]]);
      return some.flatMap((item) => found.map((one) => [...one, item]));
    },
    [[]],
  );
}

/** A row with other exponents, natural scores that count from 0. */
function withScores(row: ExponentRow, scores: readonly DoubleDouble[]): ExponentRow {
  const octaves = (natural: DoubleDouble) => multiplyDoubleDouble(natural, log2eWords());
  const { sink } = row;
  return {
    ...row,
    exponents: scores.map(octaves),
    origin: doubleDouble(0),
    sink: sink && { ...sink, exponent: octaves(doubleDouble(sink.logit)) },
  };
}

/** Exponents at the end of what rows without a softcap keep, in octaves. */
const cutExponent = -2000;

/** Natural scores of a row before the softcap; null where they are cut short, infinite or NaN. */
function scoresOf(raw: ExponentRow, capped: ExponentRow): readonly DoubleDouble[] | null {
  if (raw.exponents.length !== capped.exponents.length || raw.specialLse !== null) return null;
  if (raw.exponents.some(({ high }) => !(high > cutExponent))) return null;
  return raw.exponents.map((y) => addDoubleDouble(raw.origin, multiplyDoubleDouble(y, ln2Words())));
}

/**
 * The laws of kernels beside the exact one for a problem with a softcap: `tanh` and libdevice's `tanhf`, with the constants of `argumentFactors`.
 * None without a softcap, and none where something is added to scores.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function capLaws(problem: Problem): readonly CapLaw[] {
  const { softcap, scale } = problem;
  if (softcap === null || scale === 0) return [];
  if (problem.bias !== undefined || problem.alibiSlopes !== undefined) return [];
  const cappedOf = exponentsOf(problem);
  const rawOf = exponentsOf({ ...problem, softcap: null });
  const law = (name: string, ratio: DoubleDouble, tanh: Tangent): CapLaw => ({
    name,
    rowsOf: (place) => {
      const capped = cappedOf(place);
      const scores = scoresOf(rawOf(place), capped);
      if (scores === null) return [capped];
      const ways = scores.map((score) =>
        tanh(multiplyDoubleDouble(score, ratio)).map((one) =>
          multiplyDoubleDoubleByFloat64(one, softcap),
        ),
      );
      return choices(ways).map((one) => withScores(capped, one));
    },
  });
  const factors = argumentFactors(scale, softcap);
  const laws = (name: string, tanh: Tangent) =>
    factors.map(([factor, value]) =>
      law(`${name}(${factor}·q·k)`, divideDoubleDoubleByFloat64(value, scale), tanh),
    );
  // The first one is the problem's own.
  return [...laws('tanh', tangents).slice(1), ...laws('tanhf', libdeviceTangents(tangents))];
}
