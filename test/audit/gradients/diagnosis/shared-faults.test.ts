import { describe, expect, it } from 'vitest';
import { attentionGradients, attentionOracle } from '../../../../oracles/index.js';
import {
  anyGradientPremises,
  measureGradients,
  usualFalseAlarmRate,
} from '../../../../src/audit/index.js';
import { diagnoseShared } from '../../../../src/audit/gradients/diagnosis/shared-faults.js';
import { gradientFindings } from '../../../../src/audit/gradients/gradient-findings.js';
import { sharedQuantities } from '../../../../src/audit/gradients/gradient-quantities.js';
import { judgeGradients } from '../../../../src/audit/gradients/judge-gradient.js';
import { noMeanErrors } from '../../../../src/audit/gradients/structure/mean-errors.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';

const [batch, heads, queries, keys, dim] = [3, 2, 24, 8, 4] as const;

/** A problem with a bias and sinks that batch entries share, and what each entry adds to their gradients. */
const made = lazily(() => {
  const random = bellShaped(3);
  const problem = {
    ...filledProblem({ batch, heads, queries, keys, dim }, random),
    bias: tensor('bf16', [heads, queries, keys], random),
    sink: { logits: tensor('fp32', [heads], random), inLse: true },
  };
  const dout = tensor('bf16', [batch, heads, queries, dim], random);
  // A bias of each entry has what this entry adds for a gradient.
  const { shape, ...own } = problem.bias;
  const biases = decodeTensor(problem.bias);
  const apart = {
    ...own,
    shape: [batch, ...shape],
    data: Float64Array.from({ length: batch * biases.length }, (_, i) => biases[i % biases.length]),
    format: 'fp64',
  } as const;
  const { dbias, mean } = attentionGradients({ ...problem, bias: apart }, dout);
  const { denominator } = attentionOracle(problem);
  const logits = decodeTensor(problem.sink.logits);
  const ofSinks = new Float64Array(batch * heads);
  mean.values.forEach((x, row) => {
    const head = Math.floor(row / queries);
    ofSinks[head] -= Math.exp(logits[head % heads] - denominator[row]) * x;
  });
  const entriesOf = (all: Float64Array) =>
    Array.from({ length: batch }, (_, entry) => {
      const size = all.length / batch;
      return all.slice(entry * size, (entry + 1) * size);
    });
  const entries = { dbias: entriesOf(dbias!.values), dsink: entriesOf(ofSinks) };
  const measured = measureGradients(problem, dout, {
    premises: anyGradientPremises(problem, 'bf16'),
    given: { out: null, lse: null },
    shared: { dbias: 'fp64', dsink: 'fp64' },
  });
  const none = noMeanErrors(batch * heads, dim);
  const together = { dk: none, dv: none };
  const judgement = { problem, dout, measured, together, falseAlarmRate: usualFalseAlarmRate };
  return { entries, judgement };
});

type Name = 'dbias' | 'dsink';

/** A gradient of what each batch entry adds, by how often it is there. */
function weighed(name: Name, weights: readonly number[]): Float64Array {
  const entries = made().entries[name];
  return entries[0].map((_, i) =>
    entries.reduce((sum, entry, at) => sum + weights[at] * entry[i], 0),
  );
}

/** The cause that is told of gradients of a bias and of sinks. */
function told(changes: Partial<Record<Name, Float64Array>>) {
  const { judgement } = made();
  const given = sharedQuantities.map((quantity) => {
    const values = changes[quantity.name] ?? weighed(quantity.name, [1, 1, 1]);
    return { quantity, format: 'fp64', values } as const;
  });
  const findings = gradientFindings(judgeGradients(given, judgement), 'any correct kernel');
  return findings.length === 0 ? null : diagnoseShared(given, findings, judgement);
}

const prose = { dbias: 'dBias', dsink: 'dSink' } as const;

describe.each(['dbias', 'dsink'] as const)('the cause of a wrong gradient: %s', (name) => {
  it.each([
    [[-1, -1, -1], 'sign', 'has the wrong sign'],
    [[0, 1, 0], 'batch-entry-only', 'has what batch entry 1 adds, and nothing of the others'],
    [[1, 1, 0], 'batch-entry-missing', 'lacks what batch entry 2 adds'],
    [[3, 0, 0], 'batch-entry-repeated', 'has what batch entry 0 adds in the place of every other'],
  ])('%j times what the batch entries add', (weights, id, clause) => {
    const found = told({ [name]: weighed(name, weights) });
    expect(found).toMatchObject({ id, sentence: `${prose[name]} ${clause}`, equivalents: [] });
  });

  it('is unexplained where it has half of one entry, or is not a number', () => {
    expect(told({ [name]: weighed(name, [1, 1, 0.5]) })?.id).toBe('unexplained');
    const own = weighed(name, [-1, -1, -1]);
    expect(told({ [name]: own.map((x, i) => (i === 1 ? NaN : x)) })?.id).toBe('unexplained');
  });
});

describe('the cause of wrong gradients', () => {
  it('is the scale in that of a bias, which has none', () => {
    const { scale } = made().judgement.problem;
    const all = Array<number>(batch).fill(scale);
    expect(told({ dbias: weighed('dbias', all) })).toMatchObject({
      id: 'scale-in-bias',
      sentence: 'dBias is multiplied by the scale, which it does not have',
    });
    expect(told({ dsink: weighed('dsink', all) })?.id).not.toBe('scale-in-bias');
  });

  it('is unexplained where both are wrong, and none where both are right', () => {
    const wrong = (name: Name) => weighed(name, [-1, -1, -1]);
    expect(told({ dbias: wrong('dbias'), dsink: wrong('dsink') })?.id).toBe('unexplained');
    expect(told({})).toBeNull();
  });
});
