import {
  formats,
  smallestSubnormal,
  unitRoundoff,
  type FormatName,
  type NumberFormat,
} from '../../../formats/index.js';
import { scoreLaw, type Problem, type ProblemShape } from '../../../problem/index.js';
import { hardwareTanh, type GradientPremises } from './gradient-premises.js';

/** A format that numbers of fp64 are rounded to. */
export interface ShortFormat {
  /** Half an ulp relative to the power of two below, and of subnormals. */
  readonly unit: number;
  readonly least: number;
  readonly maxFinite: number;
}

/** The constants that rounding to a format needs. */
export function shortFormat(format: NumberFormat): ShortFormat {
  return {
    unit: unitRoundoff(format),
    least: smallestSubnormal(format) / 2,
    maxFinite: format.maxFinite,
  };
}

/** The rounding of numbers to a format on their way, and the factors that they may be multiplied by before. */
export interface OperandRounding {
  /** Null where numbers are not rounded at all, or no further than by the arithmetic. */
  readonly format: ShortFormat | null;
  /** Magnitudes of factors that numbers may have when they are rounded, beside 1; and the largest of all. */
  readonly units: readonly number[];
  readonly largestUnit: number;
  /** The smallest of 1 and `units`, which leaves the least of subnormals; and the others of them, each once. */
  readonly smallestUnit: number;
  readonly otherUnits: readonly number[];
  readonly times: number;
}

/**
 * Errors of a sum of products: at worst, relative to Σ|products|; `toZero`, relative to the sum itself: the part that adders
 * that cut off may take away from all sums alike; `walk`, the deviation, relative to the largest that a partial sum may be,
 * which is (Σ|products| + |sum|) / 2.
 */
export interface SumErrors {
  readonly worst: number;
  readonly toZero: number;
  readonly walk: number;
}

/** Arithmetic that the errors of single pairs of a query and a key follow from: section 6 of docs/theory/bounds-backward.md. */
export interface PairArithmetic {
  readonly scale: number;
  readonly softcap: number | null;
  /** The relative error of dropout's factor in a product. */
  readonly dropout: number;
  /** Errors of dot products over qkDim and vDim, and of sums over keys and over the queries of a group. */
  readonly scores: SumErrors;
  readonly products: SumErrors;
  readonly overKeys: SumErrors;
  readonly overQueries: SumErrors;
  /**
   * Errors that all scores without a softcap, and all dP, may share, relative to themselves, from sums that cut off and constants that are
   * rounded; and whether these are told from the error of each: beside roundings of operands they are too little for that.
   */
  readonly tellsApart: boolean;
  readonly commonScores: number;
  readonly commonProducts: number;
  /** Loss of the operations on a score, relative to it: at worst, and its variance. */
  readonly operations: number;
  readonly operationVariance: number;
  /** Relative errors of writing dP and P. */
  readonly productRounding: number;
  readonly weightRounding: number;
  /**
   * Scores (raw, scaled or with their addends) and dP from here on are beyond the range of the format that they are written in.
   */
  readonly largestScore: number;
  readonly largestProduct: number;
  readonly elementwise: number;
  /** The variance of an elementwise operation's relative error. */
  readonly elementwiseVariance: number;
  readonly exponential: number;
  /**
   * The error of the softcap's tanh: at worst with the operations about it, the part that does not average out, the variance of
   * the rest.
   */
  readonly tanh: number;
  /** The absolute error beside that; its roundings are of numbers near 1, and random. */
  readonly tanhFloor: number;
  readonly typicalTanh: number;
  readonly tanhVariance: number;
  readonly underflow: number;
  readonly p: OperandRounding;
  /** The rounding of P before dS is made of it. */
  readonly weights: OperandRounding;
  readonly ds: OperandRounding;
}

/**
 * The variance of a rounding's relative error over u², where only its format is known: a third of the mean of 1/x² over x of a
 * binade whose logarithms are uniform, which is 3 / (8 ln 2).
 */
export const meanRounding = 1 / (8 * Math.LN2);

/** The rounding to a format, if it is coarser than the arithmetic itself. */
export function operandRounding(
  name: FormatName,
  arithmetic: number,
  units: readonly number[],
  times: number,
): OperandRounding {
  const format = formats[name];
  const isCoarser = unitRoundoff(format) > arithmetic;
  const sizes = units.map(Math.abs);
  // A power of two leaves significands as they are, but for subnormals.
  const isOther = (unit: number) => unit !== 0 && !(Math.log2(unit) % 1 === 0 && unit >= 1);
  const open = sizes.filter(isOther);
  const smallestUnit = Math.min(1, ...open);
  return {
    format: isCoarser ? shortFormat(format) : null,
    units: open,
    largestUnit: Math.max(1, ...sizes),
    smallestUnit,
    otherUnits: isCoarser ? [...new Set([1, ...open])].filter((unit) => unit !== smallestUnit) : [],
    times,
  };
}

/** The errors of sums of n products. */
export function sumErrors(
  n: number,
  { accumulation, sums }: Pick<GradientPremises, 'accumulation' | 'sums'>,
): SumErrors {
  return {
    worst: Math.expm1(n * accumulation * (1 + 2 ** -10)),
    toZero: sums === 'nearest' ? 0 : (n * accumulation) / 4,
    walk: Math.sqrt(n) * accumulation,
  };
}

/** The errors of pairs by premises. */
export function pairArithmetic(
  problem: Problem,
  shape: ProblemShape,
  premises: GradientPremises,
): PairArithmetic {
  const { qkDim, vDim, keys, queries, groupSize } = shape;
  const { elementwise, scaleBeforeRounding, tanh, tanhFloor } = premises;
  const { scale, softcap } = scoreLaw(problem, shape);
  const probability = problem.dropout?.probability ?? 0;
  const share = 1 - probability;
  const written = (name: FormatName) => {
    const roundoff = unitRoundoff(formats[name]);
    return roundoff > elementwise ? roundoff : 0;
  };
  const ofScores = written(premises.scores);
  const operations = 4 * elementwise + 3 * ofScores;
  const typicalTanh = Math.min(tanh, hardwareTanh) + elementwise;
  // P may be rounded with dropout's factor, dS before it.
  const factors = problem.dropout === undefined ? [] : [share];
  const multiplied = factors.map((x) => 1 / x);
  const dropout = problem.dropout === undefined ? 0 : elementwise * (3 + probability / share / 2);
  const scores = sumErrors(qkDim, premises);
  const products = sumErrors(vDim + 1, premises);
  const ds = operandRounding(
    premises.ds,
    elementwise,
    scaleBeforeRounding ? [scale, ...factors, ...factors.map((x) => x * scale)] : factors,
    premises.dsRoundings,
  );
  return {
    scale,
    softcap,
    dropout,
    tellsApart: ds.format === null,
    commonScores: scores.toZero + elementwise,
    commonProducts: products.toZero + dropout,
    scores,
    products,
    overKeys: sumErrors(keys + 1, premises),
    overQueries: sumErrors(queries * groupSize + 1, premises),
    operations,
    operationVariance: meanRounding * (elementwise ** 2 + 2 * ofScores ** 2),
    productRounding: written(premises.dp),
    weightRounding: written(premises.weights),
    largestScore: formats[premises.scores].maxFinite * (1 - 2 ** -6),
    largestProduct: formats[premises.dp].maxFinite * (1 - 2 ** -6),
    elementwise,
    elementwiseVariance: meanRounding * elementwise ** 2,
    exponential: premises.exponential,
    tanh: tanh + operations,
    tanhFloor,
    typicalTanh,
    tanhVariance: (tanh ** 2 + ofScores ** 2) / 3,
    underflow: premises.underflow,
    p: operandRounding(premises.p, elementwise, multiplied, premises.pRoundings),
    weights: operandRounding(premises.weights, elementwise, [], 1),
    ds,
  };
}

/** 2^e for x in [2^e, 2^(e+1)), 2^-900 < x < 2^900: x to one bit, by Veltkamp's splitting. */
function binade(x: number): number {
  const split = x * (2 ** 52 + 1);
  const nearest = split - (split - x);
  return nearest > x ? nearest / 2 : nearest;
}

/** Half an ulp of a format at 0 ≤ x < 2^900: of its subnormals where x is among them. */
export function halfUlp({ unit, least }: ShortFormat, x: number): number {
  return x * unit <= least ? least : Math.max(binade(x) * unit, least);
}

/**
 * The rounding of x to a format without a largest number: one of the two nearest numbers, either of which will do (Theorem 5 of
 * docs/theory/bounds.md).
 */
export function roundedNear(format: ShortFormat, x: number): number {
  // The ulp of the number that is added is that of the format at x.
  const far = 1.5 * 2 ** 53 * halfUlp(format, Math.abs(x));
  return x + far - far;
}
