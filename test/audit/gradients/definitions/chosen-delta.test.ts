import { describe, expect, it } from 'vitest';
import {
  anyGradientPremises,
  auditGradients,
  type GradientTensors,
} from '../../../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import {
  backwardKernel,
  drawDout,
  type BackwardOptions,
} from '../../../kernels/gradients/index.js';
import { normalProblem, normalTensor, seededRandom } from '../../../kernels/features/index.js';
import { tensor } from '../../../setup/problems.js';

const random = seededRandom(11);
const frame = { batch: 2, heads: 2, kvHeads: 2, queries: 5, keys: 4, dim: 4 } as const;
const problem = {
  ...normalProblem(random, frame),
  bias: normalTensor(random, 'fp32', [2, 5, 4], 1),
  sink: { logits: tensor('fp32', [2], (head) => head), inLse: true },
};
const dout = drawDout(random, problem);

function changed(of: Tensor, change: (x: number, i: number) => number): Tensor {
  return { ...of, data: encodeFromFloat64(formats[of.format], decodeTensor(of).map(change)) };
}

/** What a kernel gives, all of it. */
function givenBy(options: BackwardOptions) {
  const { out, lse, dq, dbias, dsink } = backwardKernel(options)(problem, dout);
  return { dout, out, lse, dq, dbias: dbias!, dsink: dsink! };
}

const ofStored = lazily(() => givenBy({}));
/** A kernel that does not read its stored O, which is an eighth too large. */
const ofWeights = lazily(() => {
  const given = givenBy({ delta: 'weights' });
  return { ...given, out: changed(given.out, (x) => x * 1.125) };
});

const premises = anyGradientPremises(problem, 'bf16');
const rate = 1e-6;

/** dBias and dSink where all is given. */
function judgedTogether(
  given: GradientTensors,
  delta: 'any' | 'weights' | 'stored-output' = 'any',
) {
  const { gradients, verdict } = auditGradients(problem, given, {
    premises: { ...premises, delta },
    falseAlarmRate: rate,
    diagnose: false,
  });
  return {
    gradients: gradients.filter(({ quantity: { name } }) => name !== 'dq'),
    findings: verdict.findings.filter(({ quantity }) => quantity !== 'dq'),
    names: gradients.map(({ quantity }) => quantity.name),
    ofQueries: verdict.findings.filter(({ quantity }) => quantity === 'dq').map(({ test }) => test),
  };
}

/** dBias and dSink of a kernel that is said to make D in a way, without dQ and its share of false alarms. */
function judgedAlone(given: GradientTensors, delta: 'any' | 'weights' | 'stored-output') {
  const { gradients, verdict } = auditGradients(
    problem,
    { ...given, dq: null },
    {
      premises: { ...premises, delta },
      falseAlarmRate: (rate * 2) / 3,
      diagnose: false,
    },
  );
  return { gradients, findings: verdict.findings };
}

const names = ['dq', 'dbias', 'dsink'];

describe('dBias and dSink of a kernel that may make D in either way', () => {
  it('are judged as of the stored O where that passes', () => {
    const alone = judgedAlone(ofStored(), 'stored-output');
    expect(alone.findings).toEqual([]);
    expect(judgedTogether(ofStored())).toEqual({ ...alone, names, ofQueries: [] });
  });

  it('are judged as of the weights where that finds less', () => {
    const alone = judgedAlone(ofWeights(), 'weights');
    expect(alone.findings).toEqual([]);
    expect(judgedAlone(ofWeights(), 'stored-output').findings).not.toEqual([]);
    expect(judgedTogether(ofWeights())).toMatchObject({ ...alone, names });
    // One of them is wrong either way.
    const wrong = { ...ofWeights(), dsink: changed(ofWeights().dsink, (x) => -x) };
    const fewer = judgedAlone(wrong, 'weights');
    expect(fewer.findings.map(({ quantity }) => quantity)).not.toContain('dbias');
    expect(fewer.findings).not.toEqual([]);
    expect(judgedTogether(wrong)).toMatchObject(fewer);
  });

  it('are judged as of the stored O where both find as much', () => {
    const wrong = { ...ofStored(), dsink: changed(ofStored().dsink, (x) => -5 * x) };
    const [stored, weights] = (['stored-output', 'weights'] as const).map((delta) =>
      judgedAlone(wrong, delta),
    );
    expect(stored.findings).toHaveLength(weights.findings.length);
    expect(stored.gradients).not.toEqual(weights.gradients);
    expect(judgedTogether(wrong)).toMatchObject(stored);
  });

  it('are judged with the others where D is declared, or there is no stored O', () => {
    const share = ({ gradients, ...rest }: ReturnType<typeof judgedTogether>) => ({
      ...rest,
      ratios: gradients.map(({ elements }) => elements.worstRatio),
    });
    const { ratios, names: given } = share(judgedTogether(ofStored(), 'weights'));
    expect(given).toEqual(names);
    expect(ratios).toEqual(
      judgedAlone(ofStored(), 'weights').gradients.map(({ elements }) => elements.worstRatio),
    );
    const without = { ...ofStored(), out: null };
    expect(share(judgedTogether(without)).ratios).toEqual(
      judgedAlone(without, 'any').gradients.map(({ elements }) => elements.worstRatio),
    );
  });

  it('fail beside dQ, each with its own findings', () => {
    const { dq, dbias } = ofStored();
    const wrong = {
      ...ofStored(),
      dq: changed(dq, (x) => -x),
      dbias: changed(dbias, (x) => -x),
    };
    const { findings, ofQueries } = judgedTogether(wrong);
    expect(ofQueries).toContain('dq-scale');
    expect(findings).toEqual(judgedAlone(wrong, 'stored-output').findings);
  });
});
