import {
  formats,
  smallestSubnormal,
  unitRoundoff,
  type FormatName,
  type NumberFormat,
} from '../../../formats/index.js';
import { scoreLaw, type Problem, type ProblemShape } from '../../../problem/index.js';
import type { GradientPremises } from './gradient-premises.js';

/** How numbers are rounded to a format on their way, and what they may be multiplied by before. */
export interface OperandRounding {
  /** Null where numbers are not rounded at all, or no further than by the arithmetic. */
  readonly format: NumberFormat | null;
  /** Units that numbers may be rounded in: 1, and a factor where it may come before the rounding. */
  readonly units: readonly number[];
  readonly times: number;
}

/** What the errors of single pairs of a query and a key are made of: section 6 of docs/bounds-backward.md. */
export interface PairArithmetic {
  readonly scale: number;
  readonly softcap: number | null;
  /** 1 / (1 − the probability of dropout); and the relative error of that factor in a product. */
  readonly keptFactor: number;
  readonly dropout: number;
  /** Of dot products over qkDim and vDim, relative to the norms' product: at worst, and as a random walk. */
  readonly scores: number;
  readonly typicalScores: number;
  readonly products: number;
  readonly typicalProducts: number;
  /** What scores and dP lose where they are written. */
  readonly scoreRounding: number;
  readonly productRounding: number;
  readonly weightRounding: number;
  readonly elementwise: number;
  readonly exponential: number;
  readonly tanh: number;
  readonly underflow: number;
  /** Relative error of sums over keys and over the queries of a group, at worst. */
  readonly overKeys: number;
  readonly overQueries: number;
  readonly p: OperandRounding;
  /** Of P before dS is made of it. */
  readonly weights: OperandRounding;
  readonly ds: OperandRounding;
}

/** The rounding to a format, if it is coarser than what the arithmetic does anyway. */
function operandRounding(
  name: FormatName,
  arithmetic: number,
  units: readonly number[],
  times: number,
): OperandRounding {
  const format = formats[name];
  const isCoarser = unitRoundoff(format) > arithmetic;
  const isSame = (unit: number) => Math.log2(Math.abs(unit)) % 1 === 0 && Math.abs(unit) >= 1;
  return {
    format: isCoarser ? format : null,
    units: [1, ...units.filter((unit) => unit !== 0 && !isSame(unit))],
    times,
  };
}

/** The relative error of a product of n factors 1 + a. */
function grown(n: number, a: number): number {
  return Math.expm1(n * a * (1 + 2 ** -10));
}

/** The errors of pairs by premises. */
export function pairArithmetic(
  problem: Problem,
  shape: ProblemShape,
  premises: GradientPremises,
): PairArithmetic {
  const { qkDim, vDim, keys, queries, groupSize } = shape;
  const { accumulation, elementwise, scaleBeforeRounding } = premises;
  const { scale, softcap } = scoreLaw(problem, shape);
  const probability = problem.dropout?.probability ?? 0;
  const share = 1 - probability;
  const written = (name: FormatName) => {
    const roundoff = unitRoundoff(formats[name]);
    return roundoff > elementwise ? roundoff : 0;
  };
  // P may be rounded with dropout's factor, dS before it.
  const factors = problem.dropout === undefined ? [] : [share];
  const multiplied = factors.map((x) => 1 / x);
  return {
    scale,
    softcap,
    keptFactor: 1 / share,
    dropout: problem.dropout === undefined ? 0 : elementwise * (3 + probability / share / 2),
    scores: grown(qkDim, accumulation),
    typicalScores: Math.sqrt(qkDim) * accumulation,
    products: grown(vDim + 1, accumulation),
    typicalProducts: Math.sqrt(vDim + 1) * accumulation,
    scoreRounding: 3 * written(premises.scores),
    productRounding: written(premises.dp),
    weightRounding: written(premises.weights),
    elementwise,
    exponential: premises.exponential,
    tanh: premises.tanh,
    underflow: premises.underflow,
    overKeys: grown(keys + 1, accumulation),
    overQueries: grown(queries * groupSize + 1, accumulation),
    p: operandRounding(premises.p, elementwise, multiplied, premises.pRoundings),
    weights: operandRounding(premises.weights, elementwise, [], 1),
    ds: operandRounding(
      premises.ds,
      elementwise,
      scaleBeforeRounding ? [scale, ...factors, ...factors.map((x) => x * scale)] : factors,
      premises.dsRoundings,
    ),
  };
}

const words = new Uint32Array(2);
const number = new Float64Array(words.buffer);

/** Half an ulp of a format at x ≥ 0: of its subnormals where x is among them. */
export function halfUlp({ precision, minExponent }: NumberFormat, x: number): number {
  number[0] = x;
  const exponent = Math.max((words[1] >>> 20) - 1023, minExponent);
  return 2 ** (exponent - precision);
}

/**
 * x rounded to the precision of a format, signed: one of the two nearest numbers, of which either will do
 * (Theorem 5 of docs/bounds.md).
 */
export function roundedNear(format: NumberFormat, x: number): number {
  const least = smallestSubnormal(format);
  const unit = 2 * halfUlp(format, Math.abs(x));
  return unit <= least ? Math.round(x / least) * least : Math.round(x / unit) * unit;
}
