import { levels, type AttentionReference } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { createDeclaredRows } from './declared-row.js';
import { formatRoughly } from '../../words/index.js';
import type { GivenOutputs } from '../kernel-outputs.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import { declarationFlags, describeDeclaration } from './declaration.js';
import { correlation, isWithin, sizesOf, type Errors, type ErrorSizes } from './error-sizes.js';

/** What a failed output would pass as. */
export interface PremiseFit {
  /** The likelier one, where two would pass. */
  readonly declaration: PremiseDeclaration;
  /** A clause: what kind of kernel errs like this, and by which number. */
  readonly statement: string;
  /** The flags that declare it; those of two, joined by "or", where two would pass. */
  readonly flags: string;
}

/**
 * What errs in the LSE alone, or nearly. A row sum of rounded weights is emulated by weights of the row's own maximum; of those of a
 * maximum that runs, roundings are as large and others.
 */
const roundedSums = { rowSum: 'after-rounding' } as const satisfies PremiseDeclaration;
const factors = { factors: 'as-weights' } as const satisfies PremiseDeclaration;

/** What may be declared whose roundings follow from the problem: errors must be those of the emulation. */
const followed: readonly PremiseDeclaration[] = [
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
];

/** The same of those that follow from chance, or from an order of operations: errors must be as large. */
const unforeseen: readonly PremiseDeclaration[] = [
  { outputRounding: 'stochastic' },
  { partials: 'bf16' },
  { partials: 'fp16' },
  { pvAccumulator: 'fp16' },
  { pvAccumulator: 'bf16' },
  { qkAccumulator: 'fp16' },
  { qkAccumulator: 'bf16' },
  { qkAccumulator: 'fp16', pvAccumulator: 'fp16' },
];

/** Errors of one emulation correlate with those found by this much at least, where they follow from it. */
const leastCorrelation = 0.5;

/** What factors as good as the weights may do to an LSE, over some tiles of keys. */
const mostOfFactors = 16 * 2 ** -13.4;

/** Rows that candidates are emulated on, and products of them at most. */
const sampledRows = 32;
const mostProducts = 2 ** 20;
const fewestRows = 8;
/** Rows that a declaration is emulated on first, and the factor that its errors may be off by there. */
const firstRows = 4;
const nearlyAlike = 4;

/** Errors as large as an emulated kernel's, within this factor, are like them. */
const alike = 1.6;
/** Standard errors that a slope may be off by chance. */
const slopeDeviations = 6;
/** Audits that are made again at most. */
const mostJudged = 3;

/** A failed output, and what may be asked of it. */
interface FitRequest {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: GivenOutputs;
  /** Whether the LSE alone fails. */
  readonly onlyLse: boolean;
  /** Whether the output passes the whole audit of a declaration. */
  readonly passes: (declared: PremiseDeclaration) => boolean;
}

/** "A kernel with scores in bf16". */
function kernelOf(declaration: PremiseDeclaration): string {
  return describeDeclaration(declaration).replace('any correct kernel', 'A kernel');
}

function sampleOf({
  shape,
  level,
  quantities: {
    lse: { values: lse },
  },
}: AttentionReference): number[] {
  const { keys, qkDim, vDim } = shape;
  const affordable = Math.floor(mostProducts / Math.max(keys * (qkDim + vDim), 1));
  const count = Math.max(fewestRows, Math.min(sampledRows, affordable));
  const rows = lse.length;
  const step = Math.max(1, Math.floor(rows / count));
  const chosen: number[] = [];
  for (let row = Math.floor(step / 2); row < rows && chosen.length < count; row += step)
    if (levels[level[row]] !== 'special' && Number.isFinite(lse[row])) chosen.push(row);
  return chosen;
}

/** What is told where two explain an output alike. */
function eitherOf(one: PremiseFit, other: PremiseFit): PremiseFit {
  const [first, ...rest] = other.statement;
  return {
    declaration: one.declaration,
    statement: `${one.statement}; ${first.toLowerCase()}${rest.join('')}; nothing here tells one from the other`,
    flags: `${one.flags}, or ${other.flags}`,
  };
}

/**
 * What kind of kernel would pass the audit that this output fails, where its errors are those of such a
 * kernel: root mean squares of O, and of the LSE where there is one, within a factor of 1.6 of those that
 * a plain kernel of that kind makes on a sample of the rows, the LSE's mean no farther off, and, where
 * roundings follow from the problem, errors that correlate with its errors by 1/2 and more; and O not
 * larger or smaller as a whole than its. Null where none does. Where the LSE alone errs, by what factors of rescales may come to,
 * and no errors correlate, these and a row sum of rounded weights are told together.
 * A declaration explains nothing that it merely allows: a row sum that is half a per cent too large lies
 * within what scores in bf16 may do, but errs by one number in all rows, which they do not.
 */
export function fitPremise(request: FitRequest): PremiseFit | null {
  const { problem, reference, outputs } = request;
  const { values: out, format: outputFormat } = outputs.out;
  const lse = outputs.lse?.values ?? null;
  const { shape } = reference;
  const { vDim } = shape;
  const rows = sampleOf(reference);
  if (rows.length === 0) return null;
  const errorsOf = (
    rows: readonly number[],
    outOf: (row: number) => Float64Array,
    lseOf: (row: number) => number,
  ): Errors => {
    const ofRows = rows.flatMap((row) =>
      Array.from(outOf(row), (x, c) => x - reference.quantities.out.values[row * vDim + c]),
    );
    const exact = rows.flatMap((row) =>
      Array.from(reference.quantities.out.values.subarray(row * vDim, (row + 1) * vDim)),
    );
    const ofLse = rows.map((row) =>
      lse === null ? 0 : lseOf(row) - reference.quantities.lse.values[row],
    );
    return {
      out: Float64Array.from(ofRows),
      exact: Float64Array.from(exact),
      lse: Float64Array.from(ofLse),
    };
  };
  const emulate = (declaration: PremiseDeclaration, rows: readonly number[]): Errors => {
    const emulateRow = createDeclaredRows(problem, shape, outputFormat, declaration);
    const emulated = new Map(rows.map((row) => [row, emulateRow(row)]));
    return errorsOf(
      rows,
      (row) => emulated.get(row)!.out,
      (row) => emulated.get(row)!.lse,
    );
  };
  const foundOn = (rows: readonly number[]) =>
    errorsOf(
      rows,
      (row) => out.subarray(row * vDim, (row + 1) * vDim),
      (row) => lse![row],
    );
  const found = foundOn(rows);
  const size = sizesOf(found);
  if (!Number.isFinite(size.out) || !Number.isFinite(size.lse)) return null;
  const usual = emulate({}, rows);
  // Roundings of the LSE itself, and of its sums, come to some ulps of fp32.
  const rounding = 4 * 2 ** -24 * (1 + Math.abs(reference.quantities.lse.values[rows[0]]));
  const nothing = new Float64Array(found.lse.length);
  const isAsLarge = (expected: ErrorSizes): boolean => {
    if (!isWithin(size.out, expected.out, alike)) return false;
    if (!isWithin(size.lse + rounding, expected.lse + rounding, 2 * alike)) return false;
    if (Math.abs(size.slope) > 4 * Math.abs(expected.slope) + slopeDeviations * size.slopeError)
      return false;
    return Math.abs(size.lseMean) <= 2 * (Math.abs(expected.lseMean) + expected.lse / 2 + rounding);
  };
  // To emulate a row takes a while, and most declarations err by another order of magnitude.
  const first = rows.filter((_, i) => i % Math.ceil(rows.length / firstRows) === 0);
  const firstSize = sizesOf(foundOn(first));
  const mayBeAsLarge = (declaration: PremiseDeclaration): boolean =>
    isWithin(firstSize.out, sizesOf(emulate(declaration, first)).out, nearlyAlike);
  /** The declarations whose emulation errs as much, the one that errs most alike first. */
  const fitsAmong = (declarations: readonly PremiseDeclaration[], leastAgreement: number) =>
    declarations
      .flatMap((declaration) => {
        if (!mayBeAsLarge(declaration)) return [];
        const errors = emulate(declaration, rows);
        const expected = sizesOf(errors);
        if (!isAsLarge(expected)) return [];
        const agreement = Math.min(
          correlation(found.out, errors.out, usual.out, 2 ** -4 * size.out),
          correlation(found.lse, errors.lse, nothing, rounding),
        );
        return agreement < leastAgreement ? [] : [{ declaration, expected, agreement }];
      })
      .sort((a, b) => b.agreement - a.agreement)
      .slice(0, mostJudged)
      .filter(({ declaration }) => request.passes(declaration));
  const fitOf = ({ declaration, expected }: ReturnType<typeof fitsAmong>[number]): PremiseFit => {
    const ofLse =
      lse === null
        ? ''
        : `, ${formatRoughly(size.lse)} and ${formatRoughly(expected.lse)} in the LSE`;
    return {
      declaration,
      statement: `${kernelOf(declaration)} would pass: it errs as much (root mean square ${formatRoughly(size.out)}, one like it ${formatRoughly(expected.out)}${ofLse})`,
      flags: declarationFlags(declaration),
    };
  };
  const likest = fitsAmong(followed, leastCorrelation);
  if (likest.length > 0) return fitOf(likest[0]);
  if (request.onlyLse && size.lse <= mostOfFactors && request.passes(factors)) {
    const statement = `${kernelOf(factors)} would pass: the LSE alone errs, by ${formatRoughly(size.lse)} (root mean square), and such factors err by up to ${formatRoughly(2 ** -13.4)} a tile of keys`;
    const fit = { declaration: factors, statement, flags: declarationFlags(factors) };
    const [sums] = fitsAmong([roundedSums], -1);
    return sums === undefined ? fit : eitherOf(fitOf(sums), fit);
  }
  const [alikeByChance] = fitsAmong(unforeseen, -1);
  return alikeByChance === undefined ? null : fitOf(alikeByChance);
}
