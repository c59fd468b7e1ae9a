import { formats, smallestSubnormal } from '../../formats/index.js';
import type { Diagnosis, DiagnosisInput } from './diagnosis.js';
import { listNumbers, nameHeads, queryOf } from './describe-damage.js';
import { type Loss, type LossSignature, lossSignatures } from './loss-signatures.js';
import { placeOfRows } from '../rows/index.js';
import type { RowReader } from './row-reader.js';

/** Rows per side whose scores are looked at. */
const mostRead = 64;

/** Rows of NaN, infinities or, where the exact row does not round to zero, of zeros only. */
export function lostRows(
  {
    reference,
    outputs: {
      out: { values: out, format: outputFormat },
    },
  }: DiagnosisInput,
  damaged: readonly number[],
): number[] {
  const { vDim } = reference.shape;
  const roundsToZero = smallestSubnormal(formats[outputFormat]) / 2;
  return damaged.filter((row) => {
    const values = out.subarray(row * vDim, (row + 1) * vDim);
    if (values.some((x) => !Number.isFinite(x))) return true;
    const exact = reference.quantities.out.values.subarray(row * vDim, (row + 1) * vDim);
    return values.every((x) => x === 0) && exact.some((x) => Math.abs(x) > roundsToZero);
  });
}

const lossNames: Readonly<Record<Loss, string>> = {
  zero: 'zero',
  nan: 'NaN',
  infinite: 'infinite',
};

function lossOf(
  {
    reference,
    outputs: {
      out: { values: out },
    },
  }: DiagnosisInput,
  row: number,
): Loss {
  const { vDim } = reference.shape;
  const values = out.subarray(row * vDim, (row + 1) * vDim);
  if (values.some(Number.isNaN)) return 'nan';
  return values.every((x) => x === 0) ? 'zero' : 'infinite';
}

/** At most `mostRead` rows, evenly spread. */
function thinned(rows: readonly number[]): number[] {
  const step = Math.max(1, rows.length / mostRead);
  return Array.from(
    { length: Math.min(rows.length, mostRead) },
    (_, i) => rows[Math.floor(i * step)],
  );
}

function describeLost(
  { problem, reference }: DiagnosisInput,
  lost: readonly number[],
  loss: string,
): string {
  const { queries } = reference.shape;
  const rows = problem.rows === undefined ? 'row' : 'sampled row';
  const count = lost.length === 1 ? `1 ${rows} is` : `${lost.length} ${rows}s are`;
  const heads = [...new Set(lost.map((row) => Math.floor(row / queries)))];
  const local = [...new Set(lost.map((row) => queryOf(row, reference.shape, problem)))];
  const whole = lost.length === heads.length * queries;
  const where = whole
    ? ` (all of ${nameHeads(heads, reference.shape)})`
    : ` (${local.length === 1 ? 'query' : 'queries'} ${listNumbers(local)})`;
  return `${count} ${loss}${where}`;
}

/**
 * The cause of rows that are NaN, infinite or zero: the properties of a row that all of them and
 * none of the sound rows have. Zero rows without such a property are reported as not written.
 * Null when nothing is found.
 */
export function explainLostRows(
  input: DiagnosisInput,
  reader: RowReader,
  lost: readonly number[],
  damaged: readonly number[],
): Diagnosis | null {
  const spoilt = new Set(damaged);
  const place = placeOfRows(lost, { ...input.problem, shape: input.reference.shape });
  const sound = Array.from(input.reference.quantities.lse.values.keys()).filter(
    (row) => !spoilt.has(row),
  );
  const read = thinned(lost);
  const compared = thinned(sound);
  const losses = new Set(read.map((row) => lossOf(input, row)));
  const loss = [...losses].map((kind) => lossNames[kind]).join(' or ');
  const candidates = [...lossSignatures(input, reader)];
  const separating = candidates.filter(({ losses: possible, holds, alone }) => {
    if (![...losses].every((kind) => possible.includes(kind))) return false;
    if (compared.length === 0 && alone !== true) return false;
    const ofLost = read.map(holds);
    if (ofLost.includes(false) || !ofLost.includes(true)) return false;
    return compared.every((row) => holds(row) !== true);
  });
  const description = describeLost(input, lost, loss);
  const equivalents = (of: readonly { readonly id: string }[]) =>
    [...new Set(of.map(({ id }) => id))].slice(1);
  if (separating.length > 0) {
    const [first] = separating as [LossSignature, ...LossSignature[]];
    // Tiles of several sizes may be masked for the same rows: the first of each cause stands for all.
    const causes = separating.filter(({ id }, i) => separating.findIndex((s) => s.id === id) === i);
    return {
      id: first.id,
      equivalents: equivalents(causes),
      technique: causes.length === 1 ? first.technique : null,
      place,
      candidates: [],
      sentence: `${description}: ${causes.map(({ statement }) => statement).join(', or ')}`,
      evidence: [
        `true of all ${read.length} lost rows that were looked at and of none of ${compared.length} others`,
      ],
    };
  }
  if (losses.size !== 1 || !losses.has('zero')) return null;
  return {
    id: 'rows-not-written',
    equivalents: [],
    technique: null,
    place,
    candidates: [],
    sentence: `${description} though there are keys to see: never written, or overwritten`,
    evidence: ['zeros exactly, on rows with nothing else in common'],
  };
}

/** Whether the output passes every test and the LSE does not. */
export function failsOnlyByLse({ outputs: { out, lse } }: DiagnosisInput): boolean {
  if (lse === null || lse.numbers.outside + lse.numbers.nonFinite === 0) return false;
  const { elements, spread, structure } = out;
  const sound = structure.every(({ statistic, threshold }) => Math.abs(statistic) <= threshold);
  const quiet =
    spread.outside === 0 && spread.results.every(({ measured, limit }) => measured <= limit);
  return sound && quiet && elements.outside === 0 && elements.nonFinite === 0;
}

/** Whether a row sees no key and yet not one of its elements is zero. */
export function holdsSomethingForNothing(
  {
    reference,
    outputs: {
      out: { values: out },
    },
  }: DiagnosisInput,
  reader: RowReader,
  row: number,
): boolean {
  const { vDim } = reference.shape;
  const isEmpty = reader.ranges(row).length === 0;
  return isEmpty && out.subarray(row * vDim, (row + 1) * vDim).every((x) => x !== 0);
}

/** The cause of an LSE that is not −∞ on rows without keys, when these rows are all that fails; else null. */
export function explainEmptyRows(input: DiagnosisInput): Diagnosis | null {
  const { reference } = input;
  const { numbers, values: lse } = input.outputs.lse!;
  if (numbers.outside > 0) return null;
  const wrong: number[] = [];
  for (let row = 0; row < lse.length; row++) {
    const exact = reference.quantities.lse.values[row];
    if (Number.isFinite(lse[row] - exact) || Object.is(lse[row], exact)) continue;
    if (exact !== -Infinity || reference.quantities.out.magnitude.length === 0) return null;
    wrong.push(row);
  }
  const values = new Set(wrong.map((row) => lse[row]));
  if (values.size !== 1) return null;
  const [value] = values;
  const text = value === Infinity ? '+∞' : String(value);
  return {
    id: 'lse-of-empty-rows',
    equivalents: [],
    technique: 'normalise',
    place: placeOfRows(wrong, { ...input.problem, shape: reference.shape }),
    candidates: [],
    sentence: `the LSE of rows without keys is ${text} instead of −∞`,
    evidence: [`all ${wrong.length} rows concerned see no key`, 'the output is right'],
  };
}
