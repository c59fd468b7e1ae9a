import { unexplained, type Diagnosis } from './diagnosis.js';
import type { DiagnosisInput } from './diagnosis-input.js';

/** Facts of a row that a wrong LSE may be made of; natural units. */
interface LseFacts {
  readonly lse: number;
  readonly maximum: number;
  readonly scale: number;
}

interface LseSignature {
  readonly id: string;
  readonly statement: string;
  readonly value: (facts: LseFacts) => number;
}

/** Formulas that kernels have been seen to give for the LSE, or that one slip makes of it. */
const signatures: readonly LseSignature[] = [
  {
    id: 'lse-base-2',
    statement: 'the LSE is in base 2',
    value: ({ lse }) => lse / Math.LN2,
  },
  {
    id: 'lse-twice-ln2',
    statement: 'the LSE is multiplied by ln 2 twice',
    value: ({ lse }) => lse * Math.LN2,
  },
  {
    id: 'lse-sign',
    statement: 'the LSE has the wrong sign',
    value: ({ lse }) => -lse,
  },
  {
    id: 'lse-maximum-only',
    statement: 'the LSE is the row maximum, without the logarithm of the row sum',
    value: ({ maximum }) => maximum,
  },
  {
    id: 'lse-without-maximum',
    statement: 'the LSE is the logarithm of the row sum, without the row maximum',
    value: ({ lse, maximum }) => lse - maximum,
  },
  {
    id: 'lse-maximum-unscaled',
    statement: "the LSE's maximum is that of the unscaled scores",
    value: ({ lse, maximum, scale }) => maximum / scale + (lse - maximum),
  },
  {
    id: 'lse-mixed-bases',
    statement: "the LSE's logarithm of the row sum is in base 2, its maximum in natural units",
    value: ({ lse, maximum }) => maximum + (lse - maximum) / Math.LN2,
  },
  {
    id: 'lse-mixed-bases',
    statement: "the LSE's maximum is in base 2, its logarithm of the row sum in natural units",
    value: ({ lse, maximum }) => maximum / Math.LN2 + (lse - maximum),
  },
];

/** Whether the output passes every test and the LSE does not. */
export function failsOnlyByLse({ elements, spread, structure, lseTest }: DiagnosisInput): boolean {
  if (lseTest === null || lseTest.outside + lseTest.nonFinite === 0) return false;
  const sound = structure.every(
    ({ test, statistic, threshold }) => test === 'lse-mean' || Math.abs(statistic) <= threshold,
  );
  const quiet =
    spread.outside === 0 && spread.results.every(({ measured, limit }) => measured <= limit);
  return sound && quiet && elements.outside === 0 && elements.nonFinite === 0;
}

/** Largest |given − predicted| over the rows relative to what the bound admits, twice over. */
function fits(input: DiagnosisInput, predicted: (row: number) => number): boolean {
  const { reference, lse, bound } = input;
  return reference.lse.every((exact, row) => {
    if (!Number.isFinite(exact) || !Number.isFinite(lse![row]!)) return true;
    const value = predicted(row);
    return Math.abs(lse![row]! - value) <= 2 * bound.row(row).lse + 2 ** -20 * Math.abs(value);
  });
}

/** The rows without keys whose LSE is not −∞, when they are all that fails. */
function explainEmptyRows(input: DiagnosisInput): Diagnosis | null {
  const { reference, lse, lseTest } = input;
  if (lseTest!.outside > 0) return null;
  const wrong: number[] = [];
  for (let row = 0; row < lse!.length; row++) {
    const exact = reference.lse[row]!;
    if (Number.isFinite(lse![row]! - exact) || Object.is(lse![row], exact)) continue;
    if (exact !== -Infinity || reference.magnitude.length === 0) return null;
    wrong.push(row);
  }
  const values = new Set(wrong.map((row) => lse![row]!));
  if (values.size !== 1) return null;
  const [value] = values;
  const text = value === Infinity ? '+∞' : String(value);
  return {
    id: 'lse-of-empty-rows',
    equivalents: [],
    technique: 'normalise',
    sentence: `the LSE of rows without keys is ${text} instead of −∞`,
    evidence: [`all ${wrong.length} rows concerned see no key`, 'the output is right'],
  };
}

/**
 * The cause of an LSE that fails beside a sound output, or null when the output fails too, the LSE
 * passes, or it is wrong in another way.
 */
export function explainLse(input: DiagnosisInput): Diagnosis | null {
  if (!failsOnlyByLse(input)) return null;
  const { reference, lse, problem, lseTest } = input;
  if (lseTest!.nonFinite > 0)
    return explainEmptyRows(input) ?? unexplained(['the output is right, the LSE is not']);
  const facts = (row: number): LseFacts => ({
    lse: reference.lse[row]!,
    maximum: reference.maximum[row]!,
    scale: problem.scale,
  });
  const found = signatures.filter(({ value }) => fits(input, (row) => value(facts(row))));
  const common = { technique: 'normalise', equivalents: [] as string[] };
  const evidence = ['the output is right', `all ${lse!.length} rows fit`];
  if (found.length > 0) {
    const sentence = [...new Set(found.map(({ statement }) => statement))].join(' or ');
    const ids = [...new Set(found.map(({ id }) => id))];
    return { ...common, id: ids[0]!, equivalents: ids.slice(1), sentence, evidence };
  }
  const { mean } = lseTest!;
  if (!fits(input, (row) => reference.lse[row]! + mean)) return null;
  const size = Number(Math.abs(mean).toPrecision(3));
  const bits = mean / Math.LN2;
  const whole = Math.round(bits);
  const shift =
    whole !== 0 && Math.abs(bits - whole) < 1e-3
      ? `, ${Math.abs(whole)} powers of two: a shift of P that is not taken back`
      : '';
  return {
    ...common,
    id: 'lse-offset',
    sentence: `the LSE is ${size} too ${mean > 0 ? 'high' : 'low'} on every row${shift}`,
    evidence,
  };
}
