import { basename } from 'node:path';
import { describe, expect } from 'vitest';
import { findKernelModel, runKernelModel, type KernelModel } from '../../kernels/index.js';
import { judgeOutputs, premiseNames, type PremiseDeclaration } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { casePaths, readCase } from './captured-cases.js';

const inTurn = turns(import.meta.url);

/** Models that promise another arithmetic than any fused kernel, and those that need no promise. */
const models = ['flashinfer', 'naive-input', 'naive-fp32', 'fa2', 'fa3', 'fa4'] as const;
const tried = process.env['MODELS'] === 'all' ? casePaths : sampled(casePaths, 2);

/** The premises that a suggestion names. */
function named(flags: string): string[] {
  return premiseNames.filter((name) => flags.includes(`${name}=`));
}

function takes(model: KernelModel, problem: Problem): boolean {
  try {
    model.prepare(problem, new Map());
    return true;
  } catch (error) {
    if (error instanceof RequestError) return false;
    throw error;
  }
}

describe.each(models)('an output of %s that is judged as any kernel', (name) => {
  const model = findKernelModel(name);
  const own: PremiseDeclaration = model.premises(new Map());

  inTurn.each(tried.map((path) => basename(path)))(
    'is told none but premises of its own, or beside them: %s',
    async (file) => {
      const { problem, reference } = await readCase(
        casePaths.find((path) => basename(path) === file)!,
      );
      if (!takes(model, problem)) return;
      const outputs = runKernelModel(name, problem, new Map());
      const { verdict } = judgeOutputs(problem, outputs, { reference: reference() });
      if (Object.keys(own).length === 0) expect(verdict.sentence).toMatch(/^PASS/);
      if (verdict.premise === null) return;
      const { flags } = verdict.premise;
      expect(
        named(flags).some((one) => one in own),
        `${name}, ${file}: ${verdict.sentence}`,
      ).toBe(true);
    },
  );
});
