import type { PremiseDeclaration } from '../../../kernels/index.js';
import { formatRoughly } from '../../words/index.js';
import { describeDeclaration } from './declaration.js';
import type { Errors } from './error-sizes.js';
import { SampledErrors, type SampledOutputs } from './sampled-errors.js';

/** How a declared premise compares with what rows err by: medians over the rows that tell. */
export interface PremiseMeasure {
  /** The clause of a sentence: who makes how much. */
  readonly statement: string;
  /** Whether more than a few of the rows err by more than any kernel's. */
  readonly isBorneOut: boolean;
}

/** Rows of which a premise predicts this many times the energy of any kernel's errors tell something; fewer than so many do not. */
const tellingEnergy = 2;
const fewestTelling = 32;
/** The same of an LSE, in its own roundings. */
const tellingLse = 8;
/** A row errs by more than any kernel's from this many times their energy on; of an LSE by this part of what is predicted. */
const visibleEnergy = 2;
const visibleLse = 1 / 16;
/** A premise of which fewer rows show anything is not what they err by: those that do are a few. */
const leastShare = 1 / 8;
/** Tensor cores take in some products at a time, and round less often than a plain sum. */
const order = { chunk: 32, split: 64 };

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** By row: the mean square of what it errs by. */
function energies(out: Float64Array, rows: number): number[] {
  const columns = out.length / rows;
  return Array.from({ length: rows }, (_, row) => {
    let sum = 0;
    for (let at = row * columns; at < (row + 1) * columns; at++) sum += out[at] ** 2;
    return sum / columns;
  });
}

/** What is said of medians: root mean squares. */
function statementOf(
  declared: PremiseDeclaration,
  what: string,
  [found, predicted, usual]: readonly [number, number, number],
  rows: number,
): string {
  const kernel = describeDeclaration(declared).replace('any correct kernel', 'a kernel');
  return `${what} errs by ${formatRoughly(found)}, where ${kernel} errs by ${formatRoughly(predicted)} and one without by ${formatRoughly(usual)} (medians of ${rows} rows)`;
}

/** Errors of the same rows: found, of a plain kernel of the premise, and of one without. */
interface Compared {
  readonly declared: PremiseDeclaration;
  readonly errors: readonly [found: Errors, predicted: Errors, usual: Errors];
  readonly rows: number;
  readonly lseRounding: number;
}

/** By O: null where too few rows tell anything. */
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

/** By the LSE: null where too few rows tell anything. */
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
 * Holds a declared premise against what sampled rows err by, O and LSE: a plain kernel of it is run on them, and one
 * of none. It is borne out where either shows it. Null where it predicts no more in enough of the rows than any kernel makes, so
 * that nothing is told.
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
