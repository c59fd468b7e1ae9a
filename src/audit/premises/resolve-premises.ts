import {
  formats,
  smallestNormal,
  smallestSubnormal,
  tensorPrecision,
  unitRoundoff,
  type Tensor,
  type FormatName,
} from '../../formats/index.js';
import {
  type AccumulatorFormat,
  largestScore32,
  type PremiseDeclaration,
  type ScalePlace,
  type ValueTiles,
} from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { describeDeclaration } from './declaration.js';
import { fp32Accumulation, premisesByFormat, workingFormat, type Premises } from './premises.js';

/** The magnitude beyond which sums over keys may leave the range of fp32: a kernel may add weights of up to 2^24. */
const largestSum32 = 2 ** 102;

/** Number of keys of the smallest tile, after each of which the maximum may grow. */
const fewestTileKeys = 32;

/** Errors of the named qualities of an exponential, relative to its result. */
const exponentialErrors = {
  'correctly-rounded': 2 ** -24 * (1 + 2 ** -20),
  // ex2.approx on sm_90 silicon: 1.44e-7 over all inputs; the argument's own error is elementwise.
  hardware: 2 ** -22,
} as const;

/**
 * The smallest usual factor of P before it is rounded to a format, which keeps its small weights: FlashAttention-3 and -4
 * take 2^8 (`max_offset`), FlashInfer the format's largest number, 448 of e4m3 (`p_scale`), and 240 is the largest number
 * of another 8-bit format, of AMD's. e5m2 reaches so far down that no factor is needed.
 */
const usualWeightScales: Readonly<Partial<Record<FormatName, number>>> = { e4m3: 2 ** 7 };

/** @throws RequestError for a factor that takes weights of 1 beyond the format */
function weightScaleOf(declared: number | undefined, weightFormat: FormatName): number {
  const { maxFinite } = formats[weightFormat];
  if (declared !== undefined && declared > maxFinite)
    throw new RequestError(
      `weightScale is ${declared}, but the largest number of ${weightFormat} is ${maxFinite}, so that the largest weights would saturate; give no more`,
    );
  return declared ?? usualWeightScales[weightFormat] ?? 1;
}

/** Number of operands of Q·K that are rounded once they hold the scale. */
const operandRoundings: Readonly<Record<ScalePlace, number>> = {
  scores: 0,
  'folded-log2e': 0,
  'q-after-rounding': 0,
  'q-before-rounding': 1,
  'root-of-both': 2,
};

/** Number of times that scores are written on their way: raw, scaled, less the maximum. */
const scoreWrites = 3;

function accumulatorError(format: AccumulatorFormat | undefined, usual: number): number {
  if (format === undefined) return usual;
  return format === 'fp32' ? fp32Accumulation : unitRoundoff(formats[format]);
}

/** The largest loss of a sum in a format where it is subnormal; 0 where the usual format is meant. */
function underflowOf(format: FormatName | undefined): number {
  return format === undefined || format === 'fp32' ? 0 : smallestSubnormal(formats[format]) / 2;
}

function exponentialError(declared: PremiseDeclaration['exponential'], usual: number): number {
  if (declared === undefined) return usual;
  return typeof declared === 'number' ? declared : exponentialErrors[declared];
}

/** Products of P·V that a tensor core adds before it rounds their sum. */
const tileProducts = 16;

/** The sums P·V that tiles of keys have of their own, where they are kept in a shorter format than fp32; else null. */
function valueTilesOf({ pvTile, pvAccumulator }: PremiseDeclaration): ValueTiles | null {
  if (pvTile === undefined || pvAccumulator === undefined) return null;
  if (pvTile % 64 !== 0) throw new RequestError(`pvTile is ${pvTile}; give a multiple of 64 keys`);
  const format = formats[pvAccumulator];
  if (format.precision >= formats.fp32.precision) return null;
  return { keys: pvTile, productsPerSum: tileProducts, roundoff: unitRoundoff(format) };
}

/** Relative error of an element that is rounded once its factors are applied; 0 where that changes nothing. */
function dequantization(tensor: Tensor, format: FormatName): number {
  const isRounded =
    tensor.scales !== undefined && tensorPrecision(tensor) > formats[format].precision;
  return isRounded ? unitRoundoff(formats[format]) : 0;
}

/**
 * The premises of a declaration for a problem with an output in `output`: see `PremiseDeclaration`; where it
 * leaves them open they are those of `premisesByFormat`.
 */
export function resolvePremises(
  { q, k, v, scale }: Problem,
  output: FormatName,
  declared: PremiseDeclaration = {},
): Premises {
  const working = workingFormat(q.format, output);
  const usual = premisesByFormat[working];
  const named = (format: FormatName | 'input' | undefined) =>
    format === 'input' ? working : format;
  const scores = named(declared.scores);
  const stored = scores === undefined || scores === 'fp32' ? null : formats[scores];
  const dequantized = declared.dequantized ?? 'fp32';
  const times = operandRoundings[declared.scale ?? 'scores'];
  const operandFormat = formats[working];
  // Products with a factor below one are subnormal before the numbers are.
  const factor = Math.min(1, times === 2 ? Math.sqrt(Math.abs(scale)) : Math.abs(scale));
  const accumulators = [declared.qkAccumulator, declared.pvAccumulator] as const;
  const [forScores, forValues] = accumulators.map((name) => formats[name ?? 'fp32'].maxFinite) as [
    number,
    number,
  ];
  const weightFormat = named(declared.weights) ?? workingFormat(v.format, output);
  const exponential = exponentialError(declared.exponential, usual.exponential);
  const writes = stored === null ? 0 : scoreWrites;
  const usualScore = working === 'fp64' ? Infinity : largestScore32;
  const largestScore = Math.min(
    usualScore,
    ...[
      stored?.maxFinite ?? Infinity,
      declared.qkAccumulator === undefined ? Infinity : forScores,
    ].map((most) => most * (1 - 2 ** -6)),
  );
  const usualSum = weightFormat === 'fp64' ? Infinity : largestSum32;
  const largestSum = Math.min(
    usualSum,
    declared.pvAccumulator === undefined ? Infinity : forValues,
  );
  const maximum = declared.maximum ?? 'row';
  const scoreLimit = declared.scoreLimit ?? Infinity;
  return {
    ...usual,
    description: describeDeclaration(declared),
    isUsual: Object.values(declared).every((value) => value === undefined),
    isShortRange:
      largestScore < usualScore ||
      largestSum < usualSum ||
      scoreLimit < Infinity ||
      maximum !== 'row',
    usualAccumulation: usual.accumulation,
    scoreAccumulation: accumulatorError(declared.qkAccumulator, usual.accumulation),
    accumulation: accumulatorError(
      valueTilesOf(declared) === null ? declared.pvAccumulator : 'fp32',
      usual.accumulation,
    ),
    // In fp32 where the sums P·V are at least that, whatever the usual sums of 8-bit formats are.
    rowSumAddition: Math.min(
      usual.accumulation,
      accumulatorError(declared.pvAccumulator, usual.accumulation),
    ),
    smallestOperand: Math.max(
      times === 0 ? 0 : smallestNormal(operandFormat) / factor,
      dequantization(q, dequantized) + dequantization(k, dequantized) === 0
        ? 0
        : smallestNormal(formats[dequantized]),
    ),
    sumUnderflow: Math.max(
      usual.underflow,
      // Of 16 products at a time, where bounds count one for each.
      underflowOf(declared.pvAccumulator) /
        (valueTilesOf(declared) === null ? 1 : tileProducts / 2),
      underflowOf(declared.partials),
      dequantization(v, dequantized) === 0 ? 0 : underflowOf(dequantized),
    ),
    operands:
      (times === 0 ? 1 : (1 + unitRoundoff(operandFormat)) ** times) *
        (1 + dequantization(q, dequantized)) *
        (1 + dequantization(k, dequantized)) -
      1,
    scores: stored === null || scores === undefined ? null : scores,
    scoreRounding: stored === null ? 0 : unitRoundoff(stored) * (1 + 2 ** -6),
    // Raw scores are written before the scale.
    scoreFloor:
      (stored === null
        ? 0
        : writes * Math.max(1, Math.abs(scale)) * (smallestSubnormal(stored) / 2)) +
      q.shape.at(-1)! * Math.abs(scale) * underflowOf(declared.qkAccumulator),
    largestScore,
    scoreLimit,
    largestSum,
    exponential,
    factors:
      declared.factors === 'as-weights' ? { error: exponential, tileKeys: fewestTileKeys } : null,
    weightFormat,
    weightScale: weightScaleOf(declared.weightScale, weightFormat),
    rowSumRounded: declared.rowSum === 'after-rounding',
    // A rounding of V is one of each product p·v, and adds up to at most one of their sum.
    partials:
      (declared.partials === undefined ? 0 : unitRoundoff(formats[declared.partials])) +
      dequantization(v, dequantized),
    valueTiles: valueTilesOf(declared),
    maximum,
    outputRounding: declared.outputRounding ?? 'nearest',
  };
}

/** The premises of any correct kernel for a problem's inputs and the format of the output. */
export function problemPremises(problem: Problem, output: FormatName): Premises {
  return resolvePremises(problem, output);
}
