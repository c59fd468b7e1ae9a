import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../../oracles/index.js';
import {
  auditGradients,
  fitGradientPremises,
  type GradientDeclaration,
} from '../../../../src/audit/index.js';
import {
  explainGradients,
  type Unexplained,
} from '../../../../src/audit/gradients/explain-gradients.js';
import type { Finding } from '../../../../src/audit/findings.js';
import { lazily } from '../../../../src/reuse.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem } from '../../../setup/problems.js';
import { bellShaped, gradientCase, roundedGradients } from '../gradient-case.js';
import { replayedOf } from './failed-case.js';

const random = bellShaped(1 + (testSeed % 1_000_003));
const frame = { queries: 7, keys: 9, dim: 4 } as const;

/** Exact gradients, rounded to the format of their problem. */
const exact = lazily(() => gradientCase(filledProblem(frame, random)));

/** Gradients of which dQ has the wrong sign: as those of a sample they may be off by factors alone. */
const failed = lazily((): Unexplained => {
  const one = exact();
  const dq = one.exact.dq.map((x) => -x);
  const { failed: of } = replayedOf(one.problem, roundedGradients(one, { ...one.exact, dq }))!;
  return { ...of, isSample: true, usedBy: null };
});

/** What a kernel is asked to be declared as, and the diagnosis where all passes by that at half of its bounds. */
function explained(changes: Partial<Unexplained['premises']>) {
  const asked: GradientDeclaration[] = [];
  const of = failed();
  const found = explainGradients({
    ...of,
    premises: { ...of.premises, ...changes },
    usedBy: (declared) => {
      asked.push(declared);
      return 0.5;
    },
  });
  return { asked, found };
}

describe('a declared rounding of D', () => {
  it.each([
    ['of its products', { deltaProducts: 'bf16' }],
    ['of its sum', { deltaSums: 'bf16' }],
    ['of both', { deltaProducts: 'bf16', deltaSums: 'fp16' }],
  ] as const)('is not borne out where all passes without it: %s', (_, changes) => {
    const { asked, found } = explained(changes);
    expect(asked).toEqual([{ deltaProducts: 'fp64', deltaSums: 'fp64' }]);
    expect(found.id).toBe('premise-not-borne-out');
    expect(found.sentence).toMatch(/uses 50 % of its bound$/);
  });

  it('is not asked for where D is not rounded, nor where nothing is to be declared', () => {
    const { asked, found } = explained({});
    expect(asked).toEqual([]);
    expect(found.id).toBe('sign');
    const of = failed();
    const premises = { ...of.premises, deltaSums: 'bf16' as const };
    expect(explainGradients({ ...of, premises }).id).toBe('sign');
  });
});

describe('a cause of what dQ, dK and dV fail by', () => {
  it('says of no other gradient that it fails too but of dBias and dSink, where they do', () => {
    const of = failed();
    const told = (...others: Finding['quantity'][]) => {
      const more = others.map((quantity) => ({ ...of.findings[0], quantity }));
      const { id, evidence } = explainGradients({ ...of, findings: [...of.findings, ...more] });
      expect(id).toBe('sign');
      return evidence.filter((clause) => /fails? too/.test(clause));
    };
    expect(told()).toEqual([]);
    const clause = 'too, and whether by this is not tried';
    expect(told('dsink')).toEqual([`dSink fails ${clause}`]);
    expect(told('dbias', 'dsink')).toEqual([`dBias and dSink fail ${clause}`]);
  });
});

describe('narrower premises', () => {
  it('are all tried on gradients that pass, each by an audit', () => {
    const one = exact();
    const tensors = roundedGradients(one, { dq: one.exact.dq });
    const options = { reference: attentionOracle(one.problem) };
    const fits = fitGradientPremises(one.problem, tensors, options);
    expect(fits.map(({ declared }) => declared)).toEqual([
      { delta: 'stored-output' },
      { delta: 'stored-output', weights: 'fp32' },
      { delta: 'weights' },
      { delta: 'weights', weights: 'fp32' },
    ]);
    const [, { declared, isConsistent, spread, worst }] = fits;
    const { verdict, gradients } = auditGradients(one.problem, tensors, { ...options, declared });
    expect(isConsistent).toBe(verdict.pass);
    expect(worst).toBe(Math.max(...gradients.map(({ elements }) => elements.worstRatio)));
    const shares = gradients.map(({ quantity, spread: of }) => [
      quantity.name,
      of.measured / of.expected,
    ]);
    expect(spread).toEqual(Object.fromEntries(shares));
  });
});
