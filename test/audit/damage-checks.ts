import { expect } from 'vitest';
import { judgeOutputs, KernelBound, type Verdict } from '../../src/audit/index.js';
import { decode, type Case } from './damage.js';

/** Checks that an audit of a kernel's outputs passes and finds nothing. */
export function expectPass({ problem, outputs, reference }: Case): void {
  const { verdict } = judgeOutputs(problem, outputs, { reference: reference() });
  expect(verdict.findings).toEqual([]);
  expect(verdict.pass).toBe(true);
}

/** Whether the diagnosis names one of the causes, alone or among what looks the same. */
export function namesCause({ diagnosis }: Verdict, causes: readonly string[]): boolean {
  if (diagnosis === null) return false;
  return [diagnosis.id, ...diagnosis.equivalents].some((id) => causes.includes(id));
}

/** Checks that a damage which passes is small: at every element at most the rounding of P and O. */
export function expectBelowRounding({ problem, outputs, reference }: Case, spoilt: Case): void {
  const exact = reference();
  const { values, magnitude } = exact.quantities.out;
  const bound = new KernelBound(problem, exact, outputs.out.format);
  const before = decode(outputs.out);
  const { vDim } = exact.shape;
  const tooLarge: string[] = [];
  let weightRounding = 0;
  decode(spoilt.outputs.out).forEach((x, i) => {
    if (i % vDim === 0) ({ weightRounding } = bound.row(i / vDim));
    const rounding = weightRounding * magnitude[i] + 2 ** -8 * Math.abs(values[i]);
    if (!(Math.abs(x - before[i]) <= rounding))
      tooLarge.push(`${i}: ${before[i]} to ${x}, by more than ${rounding}`);
  });
  expect(tooLarge).toEqual([]);
}
