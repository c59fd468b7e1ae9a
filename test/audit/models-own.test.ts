import { basename } from 'node:path';
import { describe, expect } from 'vitest';
import { runKernelModel } from '../../kernels/index.js';
import { judgedArithmetic, judgeOutputs, modelPremises } from '../../src/audit/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { casePaths, readCase } from './captured-cases.js';

const inTurn = turns(import.meta.url);

const models = ['naive-fp32', 'naive-input', 'fa4'] as const;
const tried = process.env['MODELS'] === 'all' ? casePaths : sampled(casePaths, 1);

describe.each(models)('%s is judged by its own arithmetic', (model) => {
  inTurn.each(tried.map((path) => basename(path)))('and passes on %s', async (name) => {
    const { problem, reference } = await readCase(
      casePaths.find((path) => basename(path) === name)!,
    );
    const outputs = runKernelModel(model, problem, new Map());
    const {
      verdict,
      outputs: {
        out: { elements },
      },
    } = judgeOutputs(problem, outputs, {
      reference: reference(),
      arithmetic: judgedArithmetic(model, problem),
      premises: modelPremises(model),
      diagnose: false,
    });
    expect(verdict.findings).toEqual([]);
    expect(elements.unbounded).toBe(0);
  });
});

inTurn("does not pass what only another model's arithmetic allows", async () => {
  const { problem, reference } = await readCase(casePaths[2]);
  const outputs = runKernelModel('naive-input', problem, new Map());
  const { verdict } = judgeOutputs(problem, outputs, {
    reference: reference(),
    arithmetic: judgedArithmetic('naive-fp32', problem),
    premises: modelPremises('naive-fp32'),
    diagnose: false,
  });
  expect(verdict.pass).toBe(false);
});
