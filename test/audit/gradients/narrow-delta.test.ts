import { describe, expect } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import {
  auditGradients,
  type GradientAuditOptions,
  type GradientDeclaration,
} from '../../../src/audit/index.js';
import { decodeTensor, formats, round, type FormatName } from '../../../src/formats/index.js';
import { normalProblem, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, drawDout, type BackwardOutputs } from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';
import { fromEnvironment, sampled, scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { around, ofDelta, type StepChange } from './planted/planted-bug.js';

const inTurn = turns(import.meta.url);

/** How many problems a kernel is audited on; NARROW_DELTAS=600 for a campaign. */
const problems = fromEnvironment('NARROW_DELTAS', scaled(10));

/** A kernel that rounds the products of dO and O, and their sum in fp32, to these formats. */
function deltaIn(products: FormatName, sums: FormatName): StepChange {
  return (_, __, { vDim }) => ({
    delta: ({ out, dout }) =>
      new Float32Array(out.length / vDim).map((_x, row) => {
        let sum = 0;
        for (let c = row * vDim; c < (row + 1) * vDim; c++)
          sum = Math.fround(sum + round(formats[products], out[c] * dout[c]));
        return round(formats[sums], sum);
      }),
  });
}

/** Correct kernels, by what they declare. */
const narrow: readonly (readonly [GradientDeclaration, StepChange])[] = [
  [{ deltaProducts: 'bf16' }, deltaIn('bf16', 'fp32')],
  [{ deltaSums: 'bf16' }, deltaIn('fp32', 'bf16')],
  [{ deltaProducts: 'bf16', deltaSums: 'bf16' }, deltaIn('bf16', 'bf16')],
  [{ deltaProducts: 'fp16' }, deltaIn('fp16', 'fp32')],
  [{ deltaProducts: 'fp16', deltaSums: 'fp16' }, deltaIn('fp16', 'fp16')],
];

function drawn(seed: number, sizes: { readonly queries: number; readonly keys: number }) {
  const random = seededRandom(seed);
  const problem = {
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, format: 'fp16', ...sizes }),
    // Rows of few keys show their D.
    causal: true,
  };
  const dout = drawDout(random, problem);
  const reference = attentionOracle(problem);
  const audit = (given: BackwardOutputs, options: GradientAuditOptions) =>
    auditGradients(problem, { dout, ...given }, { reference, ...options }).verdict;
  return { problem, dout, audit };
}

const textOf = (declared: GradientDeclaration) =>
  Object.entries(declared)
    .map((pair) => pair.join('='))
    .join(',');
const cases = narrow.map(([declared, change]) => [textOf(declared), declared, change] as const);

describe('a kernel whose D is rounded to 16 bits', () => {
  const { problem, dout, audit } = drawn(11, { queries: 256, keys: 256 });

  inTurn.each(cases)('passes as it declares, and is told so: %s', (text, declared, change) => {
    const given = backwardKernel({ change })(problem, dout);
    expect(audit(given, { declared })).toMatchObject({ pass: true });
    const { pass, diagnosis } = audit(given, {});
    expect(pass).toBe(text.includes('fp16'));
    if (pass) return;
    expect(diagnosis).toMatchObject({ id: 'delta-narrow' });
    expect(diagnosis!.evidence.join()).toContain(`--gradient-premise ${text}`);
    const strict = audit(given, { strictPremises: true });
    expect(strict.diagnosis!.evidence.join()).not.toContain('--gradient-premise');
  });

  inTurn.each([
    ['half of D', ofDelta((d, row) => Math.fround(0.5 * d[row]))],
    ['D of the row before', ofDelta((d, row) => around(d, row - 1))],
    ['D of the next head', ofDelta((d, row, { queries }) => around(d, row + queries))],
  ] as const)('excuses no other D: %s', (_, wrong) => {
    for (const [, declared, change] of cases) {
      const both: StepChange = (steps, ...of) => {
        const changed = { ...steps, ...change(steps, ...of) };
        return { ...changed, ...wrong(changed, ...of) };
      };
      const given = backwardKernel({ change: both })(problem, dout);
      expect(audit(given, { declared, diagnose: false }).pass).toBe(false);
      if (change !== narrow[0][1]) continue;
      const undeclared = audit(given, {});
      expect(undeclared.pass).toBe(false);
      expect(undeclared.diagnosis!.evidence.join()).not.toContain('--gradient-premise');
    }
  });

  inTurn('excuses no factor of dQ', () => {
    for (const [, declared, change] of sampled(cases, 1)) {
      const { dq, ...others } = backwardKernel({ change })(problem, dout);
      const values = decodeTensor(dq);
      const larger = tensor(dq.format, dq.shape, (i) => 1.005 * values[i]);
      expect(audit({ ...others, dq: larger }, { declared, diagnose: false }).pass).toBe(false);
    }
  });

  inTurn('is not one that keeps D in fp32', () => {
    const given = backwardKernel()(problem, dout);
    expect(audit(given, {}).pass).toBe(true);
    const { pass, diagnosis } = audit(given, {
      declared: { deltaProducts: 'bf16', deltaSums: 'bf16' },
    });
    expect(pass).toBe(false);
    expect(diagnosis).toMatchObject({ id: 'premise-not-borne-out' });
  });
});

describe('of kernels that round D as they declare', () => {
  inTurn.each(cases)('none fails: %s', (_, declared, change) => {
    for (let i = 0; i < problems; i++) {
      const { problem, dout, audit } = drawn(testSeed + 101 * i, {
        queries: 20 + (i % 50),
        keys: 17 + (i % 90),
      });
      const given = backwardKernel({ change })(problem, dout);
      const { pass, sentence } = audit(given, { declared });
      expect(pass, `seed ${testSeed + 101 * i}: ${sentence}`).toBe(true);
    }
  });
});
