import { describe, expect } from 'vitest';
import { auditRecurrent } from '../../../src/audit/index.js';
import {
  readCapturedRecurrence,
  recurrentFiles,
  type CapturedRecurrence,
  type RecurrentKernel,
} from '../../fixtures/recurrent-captures.js';
import { turns } from '../../setup/turns.js';
import { damages } from './damages.js';

const it = turns(import.meta.url);

/** Every file with every kernel that it holds results of. */
const all = recurrentFiles.flatMap(({ name, outputs }) =>
  outputs.map((kernel) => [name, kernel] as const),
);

const minutes = 60_000;

/** The judgement of a kernel's results, those of the file or damaged ones. */
function judge(
  { problem, gradientInputs }: CapturedRecurrence,
  results: NonNullable<CapturedRecurrence['kernels'][RecurrentKernel]>,
  kernel: RecurrentKernel,
) {
  const form = kernel === 'chunk' ? 'chunked' : 'recurrent';
  return auditRecurrent(
    problem,
    { results, gradientInputs },
    { declared: form === 'chunked' ? { form, chunk: 64 } : { form }, diagnose: false },
  );
}

describe("a kernel's results on an H100", () => {
  it.each(all)(
    'pass in every quantity: %s, %s',
    async (name, kernel) => {
      const captured = await readCapturedRecurrence(name);
      const results = captured.kernels[kernel] ?? {};
      const { problem, gradientInputs } = captured;
      const { verdict, quantities } = auditRecurrent(problem, { results, gradientInputs });
      expect(verdict.findings).toEqual([]);
      expect(verdict.status).toBe('PASS');
      expect(quantities.length).toBe(Object.keys(results).length);
    },
    3 * minutes,
  );

  it.each(all)(
    'err as declared: %s, %s',
    async (name, kernel) => {
      const captured = await readCapturedRecurrence(name);
      const { out, final_state } = captured.kernels[kernel]!;
      const { verdict, quantities } = judge(
        captured,
        { out: out!, final_state: final_state! },
        kernel,
      );
      expect(verdict.findings).toEqual([]);
      const [ofOut] = quantities;
      const { expected, measured } = ofOut.spread;
      expect(expected / measured).toBeGreaterThan(0.8);
      expect(expected / measured).toBeLessThan(1.25);
    },
    minutes,
  );

  it.each(all)(
    'fail once they are damaged: %s, %s',
    async (name, kernel) => {
      const captured = await readCapturedRecurrence(name);
      const tried = Object.entries(damages).flatMap(([title, damage]) => {
        const damaged = damage(captured, captured.kernels[kernel]!);
        return damaged === null ? [] : [[title, judge(captured, damaged, kernel)] as const];
      });
      expect(tried.length).toBeGreaterThanOrEqual(4);
      // What is smaller than the kernel's own errors may stay unseen.
      const unseen = tried.filter(([, { verdict }]) => verdict.status !== 'FAIL');
      const right =
        unseen.length === 0 ? [] : judge(captured, captured.kernels[kernel]!, kernel).quantities;
      const shares = unseen.flatMap(([title, { quantities }]) =>
        quantities.map(({ quantity, values }) => {
          const undamaged = right.find((one) => one.quantity.name === quantity.name)!;
          const squares = values.reduce((sum, x, i) => sum + (x - undamaged.values[i]) ** 2, 0);
          const share = Math.sqrt(squares / values.length) / undamaged.spread.measured;
          return { title, quantity: quantity.name, share };
        }),
      );
      expect(shares.filter(({ share }) => share > 0.5)).toEqual([]);
      expect(unseen.length).toBeLessThanOrEqual(2);
    },
    3 * minutes,
  );
});
