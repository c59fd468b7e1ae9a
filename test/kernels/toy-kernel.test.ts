import { describe, expect, it } from 'vitest';
import { kernelModels, runKernelModel } from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import {
  checkKernel,
  describeFailures,
  modelPromises,
  scoreProblem,
} from '../../properties/index.js';
import {
  attributedKernel,
  attributeError,
  createTechniqueTable,
  identifyKernel,
} from '../../src/attribution/index.js';
import {
  anyKernelArithmetic,
  auditOutputs,
  forEachRowsBound,
  judgedArithmetic,
  modelArithmetic,
  modelPremises,
} from '../../src/audit/index.js';
import { emulate } from '../../src/emulate/index.js';
import { scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { toyModel } from './toy-kernel.js';

const inTurn = turns(import.meta.url);

const models = [...kernelModels, toyModel];
const problemOf = (format: 'bf16' | 'fp32') =>
  scoreProblem('normal-1', { queries: 24, keys: 100, dim: 16, format, seed: testSeed });
const problem = problemOf('bf16');

describe('a kernel that one entry adds', () => {
  it('is emulated, on one thread whatever their number', async () => {
    const emulated = await emulate(problem, toyModel, { threads: 4 });
    expect(emulated).toMatchObject({ model: 'toy', settings: { blockKeys: 16 } });
    expect(emulated.out).toEqual(runKernelModel(toyModel, problem).out);
  });

  it('computes by its settings', () => {
    const whole = runKernelModel(toyModel, problem, new Map([['blockKeys', '128']]));
    expect(whole.lse.data).not.toEqual(runKernelModel(toyModel, problem).lse.data);
  });

  it('passes an audit by its own arithmetic, and by that of any kernel', () => {
    const outputs = runKernelModel(toyModel, problem);
    const own = {
      arithmetic: judgedArithmetic(toyModel, problem),
      premises: modelPremises(toyModel),
    };
    expect(auditOutputs(problem, outputs, own).verdict.findings).toEqual([]);
    expect(auditOutputs(problem, outputs).verdict.findings).toEqual([]);
  });

  it('fails an audit where only another kernel is as coarse as that', () => {
    const coarse = runKernelModel('naive-input', problem);
    const own = {
      arithmetic: judgedArithmetic(toyModel, problem),
      premises: modelPremises(toyModel),
    };
    expect(auditOutputs(problem, coarse, own).verdict.pass).toBe(false);
  });

  it('has bounds by technique, below those of any kernel, and stays within', () => {
    const reference = attentionOracle(problem);
    const kernel = attributedKernel(problem, { kernel: toyModel });
    const arithmetic = modelArithmetic(toyModel, problem);
    const meter = createTechniqueTable(reference, arithmetic.description, { kernel });
    forEachRowsBound(problem, reference, arithmetic, meter.visit);
    const { techniques, total } = meter.table();
    expect(techniques.map(({ technique }) => technique)).toEqual(['arithmetic', 'output-round']);
    for (const { bound, measured } of [...techniques, total]) {
      expect(measured!.used).toBeGreaterThan(0);
      expect(measured!.used).toBeLessThanOrEqual(1);
      expect(bound.max).toBeGreaterThan(0);
    }
    const any = createTechniqueTable(reference, 'any kernel');
    forEachRowsBound(problem, reference, anyKernelArithmetic(problem, 'bf16'), any.visit);
    expect(total.bound.rms).toBeLessThan(any.table().total.bound.rms);
  });

  it('owns its error, the greater part by the rounding of its output', () => {
    const { kernel, exact, total, techniques } = attributeError(problem, { kernel: toyModel });
    expect(kernel).toBe('toy');
    expect(exact.relative.rms).toBeLessThan(1e-12);
    expect(total.relative.rms).toBeGreaterThan(1e-5);
    expect(techniques.at(-1)!.whole.share).toBeGreaterThan(0.99);
  });

  it('is told from the other kernels by the bits of its output', () => {
    const float32 = problemOf('fp32');
    const { out, lse } = runKernelModel(toyModel, float32);
    const { matches, searches } = identifyKernel(float32, out, { models, lse });
    const [first, second] = matches;
    expect(first).toMatchObject({ model: 'toy', settings: {}, equal: out.data.length });
    expect(second.equal).toBeLessThan(out.data.length);
    expect(matches.map(({ model }) => model)).toContain('naive-fp32');
    expect(searches.map(({ candidate, nearest }) => [candidate.model, nearest.exact])).toEqual([
      ['toy', []],
    ]);
  });

  inTurn('obeys the laws that it promises, in its other settings too', async () => {
    const { kernel, promises } = modelPromises(toyModel);
    expect(Object.keys(promises.configurations!)).toEqual(['blockKeys=1', 'blockKeys=64']);
    const result = await checkKernel(kernel, promises, { runs: scaled(1), seed: testSeed });
    expect(describeFailures(result)).toBe('');
    expect(result.pass).toBe(true);
  });
});
