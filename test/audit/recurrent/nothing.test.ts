import { expect, it } from 'vitest';
import { auditRecurrent } from '../../../src/audit/index.js';
import type { RecurrentProblem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';

/** A problem of so many entries and tokens, with the same value everywhere. */
function linear(batch: number, tokens: number, value: number): RecurrentProblem {
  const of = (x: number) => tensor('bf16', [batch, tokens, 1, 4], () => x);
  return { family: 'linear', q: of(0.5), k: of(0.5), v: of(value) };
}

const zeros = (problem: RecurrentProblem) => tensor('bf16', problem.v.shape, () => 0);

it('passes what must be 0 with a word that it means little', () => {
  const problem = linear(1, 5, 0);
  const { verdict } = auditRecurrent(problem, { results: { out: zeros(problem) } });
  expect(verdict.status).toBe('PASS');
  expect(verdict.sentence).toContain('no exact element of the output is a number other than 0');
});

it('says nothing of the kind where there is something to compute', () => {
  const problem = linear(1, 5, 1);
  const { verdict } = auditRecurrent(problem, { results: { out: zeros(problem) } });
  expect(verdict.status).toBe('FAIL');
  expect(verdict.sentence).not.toContain('other than 0');
});

it('does not judge what has no tokens', () => {
  const problem = linear(1, 0, 1);
  const { verdict } = auditRecurrent(problem, { results: { out: zeros(problem) } });
  expect(verdict).toMatchObject({ status: 'NOT JUDGED', pass: false, judged: false });
});

it('refuses a batch of none, and no results', () => {
  const problem = linear(0, 3, 1);
  expect(() => auditRecurrent(problem, { results: { out: zeros(problem) } })).toThrow(
    'the output has a batch of 0; give at least one entry',
  );
  expect(() => auditRecurrent(linear(1, 3, 1), { results: {} })).toThrow('nothing to judge');
});

it.each([NaN, Infinity])('names no cause for an output that is %s everywhere', (x) => {
  const problem = linear(1, 5, 1);
  const out = tensor('bf16', problem.v.shape, () => x);
  const { verdict } = auditRecurrent(problem, { results: { out } });
  expect(verdict).toMatchObject({ status: 'FAIL', diagnosis: { id: 'unexplained' } });
});

it('has no identity between sums of nothing but zeros', () => {
  const problem = linear(1, 5, 0);
  const final_state = tensor('fp32', [1, 1, 4, 4], () => 0);
  const { identities } = auditRecurrent(problem, { results: { out: zeros(problem), final_state } });
  expect(identities).toEqual([]);
});
