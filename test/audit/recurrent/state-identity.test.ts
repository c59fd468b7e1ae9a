import { expect, it } from 'vitest';
import { findRecurrentModel, roundingTo, runRecurrence } from '../../../kernels/index.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import {
  recurrence,
  type DrawnRecurrence,
  type Range,
} from '../../oracles/recurrent/drawn-recurrences.js';
import { tensor } from '../../setup/problems.js';

const drawn: DrawnRecurrence = {
  family: 'simple-gla',
  lengths: [130, 40],
  isPacked: true,
  keyHeads: 1,
  groupSize: 1,
  keyDim: 64,
  valueDim: 64,
  format: 'bf16',
  isNormalised: false,
  hasState: true,
  seed: 11,
};

/** Decays that leave all of a state's elements errors of much the same size. */
const even: Range = {
  gate: () => -1 / 64,
  strength: () => 1,
  keySize: (keyDim) => 1 / Math.sqrt(3 * keyDim),
};

/** The verdict on a right kernel whose final states have moved by `share` of their errors, against what the last outputs read. */
function judge(share: number) {
  const problem = recurrence(drawn, even);
  const { arithmetic } = findRecurrentModel('naive-recurrent')!;
  const stored = { ...arithmetic(problem), outputs: { out: 'fp32' as const } };
  const values = runRecurrence(problem, stored, roundingTo(stored));
  const out = tensor('fp32', problem.v.shape, (i) => values.out![i]);
  const { keyDim, valueDim } = drawn;
  const size = keyDim * valueDim;
  const right = values.final_state!;
  const judged = (finalState: Float64Array) =>
    auditRecurrent(
      problem,
      {
        results: {
          out,
          final_state: tensor('fp32', [2, 1, keyDim, valueDim], (i) => finalState[i]),
        },
      },
      { declared: { form: 'recurrent' } },
    );
  if (share === 0) return judged(right);
  const spread = judged(right).quantities[1].spread.measured;
  const [q, v] = [decodeTensor(problem.q), decodeTensor(problem.v)];
  const ends = [130, 170];
  return judged(
    right.map((x, i) => {
      const token = ends[Math.floor(i / size)] - 1;
      const [k, c] = [Math.floor((i % size) / valueDim), i % valueDim];
      return x + share * spread * Math.sign(q[token * keyDim + k] * v[token * valueDim + c]);
    }),
  );
}

it('sees alone a final state that moved where the last outputs read it', () => {
  const { verdict, identities } = judge(0);
  expect(verdict.status).toBe('PASS');
  expect(identities.map(({ sides }) => sides)).toEqual([['⟨O_T, V_T⟩', '⟨Q_T V_Tᵀ, S_T⟩']]);
  const moved = judge(0.3);
  expect(moved.verdict.status).toBe('FAIL');
  expect(moved.verdict.findings.map(({ test }) => test)).toEqual(['final_state-pairing']);
});
