import type { Diagnosis, DiagnosisInput } from './diagnosis.js';

/** Whether the output passes every test and the LSE does not. */
export function failsOnlyByLse({ outputs: { out, lse } }: DiagnosisInput): boolean {
  if (lse === null || lse.numbers.outside + lse.numbers.nonFinite === 0) return false;
  const { elements, spread, structure } = out;
  const sound = structure.every(({ statistic, threshold }) => Math.abs(statistic) <= threshold);
  const quiet =
    spread.outside === 0 && spread.results.every(({ measured, limit }) => measured <= limit);
  return sound && quiet && elements.outside === 0 && elements.nonFinite === 0;
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
    candidates: [],
    sentence: `the LSE of rows without keys is ${text} instead of −∞`,
    evidence: [`all ${wrong.length} rows concerned see no key`, 'the output is right'],
  };
}
