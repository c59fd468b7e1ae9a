import type { Diagnosis } from '../diagnosis/index.js';
import { usualOrder, type SumOrder } from './declared-row.js';
import { formatRoughly } from '../../words/index.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import { declarationFlags, describeDeclaration } from './declaration.js';
import { isOwnCause } from './own-causes.js';
import { errsRowByRow, fewestRows, isTypical } from './row-fit.js';
import { correlation, isWithin, sizesOf, type ErrorSizes } from './error-sizes.js';
import {
  SampledErrors,
  sampledRowsOf,
  type Candidate,
  type SampledOutputs,
} from './sampled-errors.js';

/** The premise that a failed output would pass by. */
export interface PremiseFit {
  /** The likelier one, where two would pass. */
  readonly declaration: PremiseDeclaration;
  /** A clause: the kind of kernel that errs like this, and by which number. */
  readonly statement: string;
  /** The flags that declare it; those of two, joined by "or", where two would pass. */
  readonly flags: string;
}

/**
 * Premises that show in the LSE alone, or nearly. A row sum of rounded weights is emulated by weights relative to the row's own
 * maximum; the roundings of weights relative to a running maximum are as large, but others.
 */
const roundedSums = { rowSum: 'after-rounding' } as const satisfies PremiseDeclaration;
const factors = { factors: 'as-weights' } as const satisfies PremiseDeclaration;

/** Candidates of a premise with each of some orders. */
function inOrders(declaration: PremiseDeclaration, orders: readonly Partial<SumOrder>[]) {
  return orders.map((order) => ({ declaration, order: { ...usualOrder, ...order } }));
}

const chunks = [1, 8, 16].map((chunk) => ({ chunk }));
const splits = [16, 32, 48, 64, 96, 128, 192, 256, 512, 1024].map((split) => ({ split }));

/** Declarations whose roundings follow from the problem: errors must be those of the emulation, by some order. */
const followed: readonly Candidate[] = [
  ...(
    [
      roundedSums,
      { outputRounding: 'truncated' },
      { weightScale: 1 },
      { dequantized: 'bf16' },
      { dequantized: 'fp16' },
      { scale: 'q-before-rounding' },
      { scale: 'root-of-both' },
      { weights: 'bf16' },
      { weights: 'fp16' },
      { scores: 'fp16' },
      { scores: 'bf16' },
      { scores: 'bf16', scale: 'root-of-both' },
      { scores: 'fp16', scale: 'root-of-both' },
    ] as const satisfies readonly PremiseDeclaration[]
  ).flatMap((declaration) => inOrders(declaration, [{}])),
  ...inOrders({ partials: 'bf16' }, splits),
  ...inOrders({ partials: 'fp16' }, splits),
  ...inOrders({ pvAccumulator: 'fp16' }, chunks),
  ...inOrders({ pvAccumulator: 'bf16' }, chunks),
  ...inOrders({ qkAccumulator: 'fp16' }, chunks),
  ...inOrders({ qkAccumulator: 'bf16' }, chunks),
  ...inOrders({ qkAccumulator: 'fp16', pvAccumulator: 'fp16' }, chunks),
];

/** Declarations whose roundings are random: errors must be as large. */
const unforeseen: readonly Candidate[] = inOrders({ outputRounding: 'stochastic' }, [{}]);

/** The least correlation of the errors found with those of an emulation, where errors follow from it. */
const leastCorrelation = 0.5;

/** The largest error of an LSE from factors as good as the weights, over some tiles of keys. */
const mostOfFactors = 16 * 2 ** -13.4;

/** Number of rows that a declaration is emulated on first, and the factor by which its errors may differ there. */
const firstRows = 4;
const nearlyAlike = 4;

/** The factor within which the size of errors is like that of an emulated kernel's. */
const alike = 1.6;
/** Standard errors by which a slope may be off by chance. */
const slopeDeviations = 6;
/** The largest number of audits that are repeated. */
const mostJudged = 3;

/** A failed output, and the callbacks about it. */
interface FitRequest extends SampledOutputs {
  /** Whether the LSE alone fails. */
  readonly onlyLse: boolean;
  /** The cause that was found; null where none was looked for. */
  readonly cause: Diagnosis | null;
  /** Whether the output passes the whole audit with a declaration. */
  readonly passes: (declared: PremiseDeclaration) => boolean;
}

/** "A kernel with scores in bf16". */
function kernelOf(declaration: PremiseDeclaration): string {
  return describeDeclaration(declaration).replace('any correct kernel', 'A kernel');
}

/** The fit where two premises explain an output alike. */
function eitherOf(one: PremiseFit, other: PremiseFit): PremiseFit {
  const [first, ...rest] = other.statement;
  return {
    declaration: one.declaration,
    statement: `${one.statement}; ${first.toLowerCase()}${rest.join('')}; nothing here tells one from the other`,
    flags: `${one.flags}, or ${other.flags}`,
  };
}

/** Whether the sizes are those expected, and O is neither larger nor smaller as a whole. */
function isAsLarge(size: ErrorSizes, expected: ErrorSizes, lseRounding: number): boolean {
  if (!isWithin(size.out, expected.out, alike)) return false;
  if (!isWithin(size.lse + lseRounding, expected.lse + lseRounding, 2 * alike)) return false;
  if (Math.abs(size.slope) > 4 * Math.abs(expected.slope) + slopeDeviations * size.slopeError)
    return false;
  const { lseMean, lse } = expected;
  return Math.abs(size.lseMean) <= 2 * (Math.abs(lseMean) + lse / 2 + lseRounding);
}

/** A candidate whose prediction fits, and how well. */
interface Fitting extends Candidate {
  readonly expected: ErrorSizes;
  readonly agreement: number;
}

/** The candidates whose emulation errs as the output does, the one that errs most alike first. */
function fitsAmong(
  candidates: readonly Candidate[],
  leastAgreement: number,
  sampled: SampledErrors,
  { cause, passes }: FitRequest,
): readonly Fitting[] {
  const { rows, found, size, usual, lseRounding } = sampled;
  // Emulating a row takes a while, and most declarations err by another order of magnitude.
  const first = rows.filter((_, i) => i % Math.ceil(rows.length / firstRows) === 0);
  const firstSize = sizesOf(sampled.foundOn(first));
  const nothing = new Float64Array(found.lse.length);
  const heads = sampled.heads();
  const fitting = candidates.flatMap((candidate): Fitting[] => {
    if (!isOwnCause(cause, candidate.declaration)) return [];
    const few = sizesOf(sampled.emulate(candidate, first));
    if (!isWithin(firstSize.out, few.out, nearlyAlike)) return [];
    const predicted = sampled.emulate(candidate, rows);
    const expected = sizesOf(predicted);
    if (!isAsLarge(size, expected, lseRounding)) return [];
    const agreement = Math.min(
      correlation(found.out, predicted.out, usual.out, 2 ** -4 * size.out),
      correlation(found.lse, predicted.lse, nothing, lseRounding),
    );
    if (agreement < leastAgreement) return [];
    const compared = { found, predicted, usual, heads, lseRounding };
    if (!errsRowByRow(compared, leastAgreement > 0) || !isTypical(compared)) return [];
    return [{ ...candidate, expected, agreement }];
  });
  const best = [...fitting].sort((a, b) => b.agreement - a.agreement);
  // The order that fits best for each premise, or none.
  const premises = best.filter(
    (one, i) => best.findIndex(({ declaration }) => declaration === one.declaration) === i,
  );
  return premises.slice(0, mostJudged).filter(({ declaration }) => passes(declaration));
}

/** Whether an LSE errs as factors of rescales do: by little, in one direction as often as in the other. */
function errsAsFactors({ size, found, rows, lseRounding }: SampledErrors): boolean {
  const nothing = {
    ...found,
    out: new Float64Array(found.out.length),
    lse: new Float64Array(rows.length),
  };
  const onlyLse = { ...found, out: nothing.out };
  const heads = rows.map(() => 0);
  return (
    size.lse <= mostOfFactors &&
    isTypical({ found: onlyLse, predicted: nothing, usual: nothing, heads, lseRounding })
  );
}

/**
 * The kind of kernel that would pass the audit which this output fails, where its errors are those of such a kernel, and no other
 * cause was found: root mean squares of O, and of the LSE where there is one, within a factor of 1.6 of those that a plain kernel
 * of that kind makes on a sample of the rows; row by row as large, in most rows and in every head; where roundings follow from the
 * problem in one of the usual orders, errors that correlate with its errors by 1/2 and more; and the rest without a common part.
 * Null where none does. Where the LSE alone errs, by no more than factors of rescales may cause, as often up as down, and no
 * errors correlate, these and a row sum of rounded weights are told together. A declaration does not explain what it merely
 * allows: a row sum that is half a per cent too large lies within the bounds of scores in bf16, but errs by one number in all
 * rows, which they do not.
 */
export function fitPremise(request: FitRequest): PremiseFit | null {
  if (sampledRowsOf(request.reference).length < fewestRows) return null;
  const sampled = new SampledErrors(request);
  const { size } = sampled;
  if (!Number.isFinite(size.out) || !Number.isFinite(size.lse)) return null;
  const fitOf = ({ declaration, expected }: Fitting): PremiseFit => {
    const ofLse =
      request.outputs.lse === null
        ? ''
        : `, ${formatRoughly(size.lse)} and ${formatRoughly(expected.lse)} in the LSE`;
    return {
      declaration,
      statement: `${kernelOf(declaration)} would pass: it errs as much (root mean square ${formatRoughly(size.out)}, one like it ${formatRoughly(expected.out)}${ofLse})`,
      flags: declarationFlags(declaration),
    };
  };
  const [likest] = fitsAmong(followed, leastCorrelation, sampled, request);
  if (likest !== undefined) return fitOf(likest);
  const mayBeFactors =
    request.onlyLse && isOwnCause(request.cause, factors) && errsAsFactors(sampled);
  if (mayBeFactors && request.passes(factors)) {
    const statement = `${kernelOf(factors)} would pass: the LSE alone errs, by ${formatRoughly(size.lse)} (root mean square), and such factors err by up to ${formatRoughly(2 ** -13.4)} a tile of keys`;
    const fit = { declaration: factors, statement, flags: declarationFlags(factors) };
    const [sums] = fitsAmong(inOrders(roundedSums, [{}]), -1, sampled, request);
    return sums === undefined ? fit : eitherOf(fitOf(sums), fit);
  }
  const [byChance] = fitsAmong(unforeseen, -1, sampled, request);
  return byChance === undefined ? null : fitOf(byChance);
}
