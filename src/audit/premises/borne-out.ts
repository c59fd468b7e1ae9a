import type { PremiseDeclaration } from '../../../kernels/index.js';
import { formatRoughly } from '../../words/index.js';
import { describeDeclaration } from './declaration.js';
import type { Errors } from './error-sizes.js';
import { SampledErrors, type SampledOutputs } from './sampled-errors.js';

/** Comparison of a declared premise with the errors of rows: medians over the rows that tell. */
export interface PremiseMeasure {
  /** The clause of a sentence: the errors found, predicted and usual. */
  readonly statement: string;
  /** Whether more than a few of the rows err by more than any kernel's. */
  readonly isBorneOut: boolean;
}

/**
 * The multiple of the energy of any kernel's errors that a premise must predict for a row to tell something; and the fewest such
 * rows that tell something.
 */
const tellingEnergy = 2;
const fewestTelling = 32;
/** The same for an LSE, in its own roundings. */
const tellingLse = 8;
/**
 * The multiple of the energy of any kernel's errors from which on a row errs by more; for an LSE, the part of the predicted
 * error.
 */
const visibleEnergy = 2;
const visibleLse = 1 / 16;
/** The least part of the rows that must show something of a premise that they err by: fewer are exceptions. */
const leastShare = 1 / 8;
/** The order of sums: tensor cores add some products at a time, and round less often than a plain sum. */
const order = { chunk: 32, split: 64 };

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** The mean square of the errors of each row. */
function energies(out: Float64Array, rows: number): number[] {
  const columns = out.length / rows;
  return Array.from({ length: rows }, (_, row) => {
    let sum = 0;
    for (let at = row * columns; at < (row + 1) * columns; at++) sum += out[at] ** 2;
    return sum / columns;
  });
}

/** The statement about medians: root mean squares. */
function statementOf(
  declared: PremiseDeclaration,
  what: string,
  [found, predicted, usual]: readonly [number, number, number],
  rows: number,
): string {
  const kernel = describeDeclaration(declared).replace('any correct kernel', 'a kernel');
  return `${what} errs by ${formatRoughly(found)}, where ${kernel} errs by ${formatRoughly(predicted)} and one without by ${formatRoughly(usual)} (medians of ${rows} rows)`;
}

/** Errors of the same rows: those found, those of a plain kernel of the premise, and those of one without. */
interface Compared {
  readonly declared: PremiseDeclaration;
  readonly errors: readonly [found: Errors, predicted: Errors, usual: Errors];
  readonly rows: number;
  readonly lseRounding: number;
}

/** The comparison by O: null where too few rows tell anything. */
function measureOutput({ declared, errors, rows }: Compared): PremiseMeasure | null {
  const [found, predicted, usual] = errors.map(({ out }) => energies(out, rows));
  const telling = predicted.flatMap((energy, row) =>
    energy > tellingEnergy * usual[row] && Number.isFinite(found[row]) ? [row] : [],
  );
  if (telling.length < fewestTelling) return null;
  const visible = telling.filter((row) => found[row] > visibleEnergy * usual[row]);
  const sizeOf = (all: readonly number[]) => Math.sqrt(median(telling.map((row) => all[row])));
  const sizes = [sizeOf(found), sizeOf(predicted), sizeOf(usual)] as const;
  return {
    statement: statementOf(declared, 'the output', sizes, telling.length),
    isBorneOut: visible.length >= leastShare * telling.length,
  };
}

/** The comparison by the LSE: null where too few rows tell anything. */
function measureLse({ declared, errors, lseRounding }: Compared): PremiseMeasure | null {
  const [found, predicted, usual] = errors.map(({ lse }) => Array.from(lse, Math.abs));
  const telling = predicted.flatMap((size, row) => (size > tellingLse * lseRounding ? [row] : []));
  if (lseRounding === 0 || telling.length < fewestTelling) return null;
  const visible = telling.filter(
    (row) => found[row] > Math.max(visibleLse * predicted[row], (tellingLse * lseRounding) / 2),
  );
  const sizeOf = (all: readonly number[]) => median(telling.map((row) => all[row]));
  const sizes = [sizeOf(found), sizeOf(predicted), sizeOf(usual)] as const;
  return {
    statement: statementOf(declared, 'the LSE', sizes, telling.length),
    isBorneOut: visible.length >= leastShare * telling.length,
  };
}

/**
 * Holds a declared premise against the errors of sampled rows, O and LSE: it runs a plain kernel of the premise on them, and one
 * without. The premise is borne out where either quantity shows it. Null where it does not predict more than any kernel's errors
 * in enough of the rows, so that nothing is told.
 */
export function measurePremise(
  request: SampledOutputs,
  declared: PremiseDeclaration,
): PremiseMeasure | null {
  const sampled = new SampledErrors(request);
  const { found, usual, lseRounding } = sampled;
  const rows = sampled.rows.length;
  if (rows < fewestTelling) return null;
  const predicted = sampled.emulate({ declaration: declared, order }, sampled.rows);
  const compared: Compared = { declared, errors: [found, predicted, usual], rows, lseRounding };
  const [ofOutput, ofLse] = [measureOutput(compared), measureLse(compared)];
  return ofLse?.isBorneOut === true ? ofLse : (ofOutput ?? ofLse);
}
