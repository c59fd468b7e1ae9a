import { describe, expect, it } from 'vitest';
import {
  findRecurrentModel,
  recurrentFaults,
  roundingTo,
  runRecurrence,
} from '../../../kernels/index.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import {
  families,
  recurrence,
  type DrawnRecurrence,
  type Range,
} from '../../oracles/recurrent/drawn-recurrences.js';
import { tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Gates and strengths of models: a token is forgotten after some tens of others. */
const usual: Range = {
  gate: (uniform) => -uniform / 16,
  strength: (uniform) => 0.3 + uniform,
  keySize: (keyDim) => 1 / Math.sqrt(3 * keyDim),
};

const drawn = (family: DrawnRecurrence['family']): DrawnRecurrence => ({
  family,
  lengths: [150, 70],
  isPacked: true,
  keyHeads: 2,
  groupSize: 1,
  keyDim: 16,
  valueDim: 16,
  format: 'bf16',
  isNormalised: false,
  hasState: true,
  seed: 7,
});

/** What a chunked kernel with a fault gives, in its formats. */
function faultyResults(problem: RecurrentProblem, id: string): RecurrentResults | null {
  const fault = recurrentFaults.find((one) => one.id === id)!;
  if (!fault.appliesTo({ problem, chunk: 64 })) return null;
  const arithmetic = findRecurrentModel('chunked')!.arithmetic(problem);
  const values = runRecurrence(problem, arithmetic, roundingTo(arithmetic), { fault });
  const shape = recurrentShape(problem);
  const tensors = recurrentQuantityNames.flatMap((name) => {
    const sizes = recurrentQuantityShape(name, problem, shape);
    const of = values[name];
    if (sizes === null || of === undefined) return [];
    let at = 0;
    return [[name, tensor(arithmetic.outputs[name] ?? 'fp32', sizes, () => of[at++])] as const];
  });
  return Object.fromEntries(tensors);
}

/** Faults that formats hide, or that no problem of this kind shows: they are within what a right kernel may round. */
const fine =
  /bf16|fp16|fp8|e4m3|epsilon|clamped|scale-of-value-dimension|key-head|first-dimension|other-dimension|tail/;

const forward = recurrentFaults.filter(({ id, isOfGradients }) => !isOfGradients && !fine.test(id));

describe.each(families)('a kernel of %s', (family) => {
  const problem = recurrence(drawn(family), usual);

  inTurn(
    'with a fault fails, and its cause is the fault or one of the same results',
    () => {
      let tried = 0;
      const missed: string[] = [];
      for (const { id } of forward) {
        const results = faultyResults(problem, id);
        if (results === null) continue;
        const { verdict } = auditRecurrent(
          problem,
          { results },
          { declared: { form: 'chunked', chunk: 64 } },
        );
        const { status, diagnosis } = verdict;
        tried++;
        const names = [diagnosis?.id, ...(diagnosis?.equivalents ?? [])];
        if (status !== 'FAIL' || !names.includes(id))
          missed.push(`${id}: ${status} ${diagnosis?.id}`);
      }
      expect(tried).toBeGreaterThan(10);
      expect(missed).toEqual([]);
    },
    240_000,
  );

  inTurn('without a fault has no cause', () => {
    const arithmetic = findRecurrentModel('chunked')!.arithmetic(problem);
    const values = runRecurrence(problem, arithmetic, roundingTo(arithmetic));
    let at = 0;
    const out = tensor('bf16', problem.v.shape, () => values.out![at++]);
    const { verdict } = auditRecurrent(problem, { results: { out } });
    expect(verdict).toMatchObject({ status: 'PASS', diagnosis: null });
  });
});

describe('a declaration', () => {
  const problem = recurrence(drawn('delta'), usual);
  const zeros = tensor('bf16', problem.v.shape, () => 0);

  it.each([
    [{ state: 'e2m1' }, 'the declared state is e2m1; give fp32, bf16, fp16'],
    [{ intermediate: 'e4m3' }, 'the declared intermediate is e4m3; give fp32, tf32, bf16, fp16'],
    [
      { chunk: 1e9 },
      'the declared chunk is 1000000000; give a whole number of tokens from 1 to 1024',
    ],
  ] as const)('of %j is refused', (declared, message) => {
    const judge = () =>
      auditRecurrent(problem, { results: { out: zeros } }, { declared: declared as object });
    expect(judge).toThrow(message);
  });

  inTurn.each([{ state: 'bf16' }, { intermediate: 'bf16', chunk: 1024, form: 'chunked' }] as const)(
    'of %j does not let zeros pass',
    (declared) => {
      const { verdict } = auditRecurrent(
        problem,
        { results: { out: zeros } },
        { declared, diagnose: false },
      );
      expect(verdict.status).toBe('FAIL');
    },
  );
});
