import { describe, expect, it } from 'vitest';
import { kernelModels, runKernelModel, techniques, type KernelModel } from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { scoreProblem } from '../../properties/index.js';
import { judgedArithmetic, judgeOutputs, modelPremises } from '../../src/audit/index.js';
import { encodeFromFloat64, formats, patternsOf } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { toyModel } from './toy-kernel.js';

const inTurn = turns(import.meta.url);

/**
 * More rows and keys than a block has, and a causal mask that ends within one; with unequal lengths where the
 * model takes them.
 */
function problemOf(model: KernelModel): Problem {
  const { formats: taken } = model.promises(new Map());
  const format = taken[testSeed % taken.length];
  const queries = 130;
  const causal = testSeed % 2 === 0;
  const drawn = (keys: number, dim: number): Problem => ({
    ...scoreProblem('normal-1', { queries, keys, dim, format, seed: testSeed }),
    causal,
  });
  const unequal = drawn(150, 32);
  return (
    [unequal, drawn(queries, 32), drawn(150, 64), { ...drawn(128, 64), causal: false }].find(
      (problem) => takes(model, problem),
    ) ?? unequal
  );
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

const settingsOf = (settings: Readonly<Record<string, string>>) =>
  new Map(Object.entries(settings));

describe.each([...kernelModels, toyModel])('the kernel model $name', (model) => {
  const problem = problemOf(model);

  it('has a name and settings of its own, and refuses others', () => {
    const keys = model.settings.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    expect(kernelModels.filter(({ name }) => name === model.name).length).toBeLessThanOrEqual(1);
    const unknown = new Map([['no such setting', '1']]);
    expect(() => model.prepare(problem, unknown)).toThrow(`the ${model.name} model has no setting`);
  });

  it('takes the settings that it names itself', () => {
    const { configurations = [] } = model.promises(new Map());
    const named = [
      ...model.candidates,
      ...configurations,
      ...(model.unlagged ? [model.unlagged] : []),
    ];
    for (const settings of named) {
      const prepared = model.prepare(problem, settingsOf(settings));
      expect(Object.keys(prepared.settings)).toEqual(expect.arrayContaining(Object.keys(settings)));
    }
  });

  it('gives every row once, in rows of its pieces', () => {
    const { shape, pieces, run } = model.prepare(problem, new Map());
    const { rowsOf } = model.attribute(problem, new Map());
    const given = new Int32Array(shape.batch * shape.heads * shape.queries);
    for (let piece = 0; piece < pieces; piece++) {
      const { firstRow, rows, out, lse } = run(piece);
      given.subarray(firstRow, firstRow + rows).forEach((_, i, rows) => rows[i]++);
      expect([out.length, lse.length]).toEqual([rows * shape.vDim, rows]);
    }
    expect([...given].every((count) => count === 1)).toBe(true);
    expect(rowsOf(0).first).toBe(0);
  });

  inTurn('with every technique emulated has its own bits, with none is exact attention', () => {
    const { out, lse } = runKernelModel(model, problem);
    const { quantities } = attentionOracle(problem);
    const kernel = model.attribute(problem, new Map());
    const { vDim } = kernel.shape;
    const run = kernel.prepareRuns([new Set(kernel.techniques), new Set()]);
    const format = formats[kernel.outFormat];
    expect(kernel.outFormat).toBe(out.format);
    for (let index = 0; index < kernel.pieces; index++) {
      const { firstRow, rows, outputs, lse: lses } = run(index);
      const [first, end] = [firstRow * vDim, (firstRow + rows) * vDim];
      expect(patternsOf(encodeFromFloat64(format, outputs[0]), format)).toEqual(
        patternsOf(out.data, format).slice(first, end),
      );
      expect(Float32Array.from(lses[0])).toEqual(lse.data.slice(firstRow, firstRow + rows));
      outputs[1].forEach((x, i) => {
        const { values, magnitude } = quantities.out;
        expect(Math.abs(x - values[first + i])).toBeLessThanOrEqual(1e-11 * magnitude[first + i]);
      });
    }
  });

  it('has a bound for each of its techniques, the last its rounding of the output', () => {
    const { techniques: names, definitions } = model.attribute(problem, new Map());
    expect(names.at(-1)).toBe('output-round');
    for (const name of names)
      expect([...techniques, 'all']).toContain(definitions[name].bound ?? name);
  });

  inTurn('stays within its own bounds', () => {
    const { verdict, outputs } = judgeOutputs(problem, runKernelModel(model, problem), {
      arithmetic: judgedArithmetic(model, problem),
      premises: modelPremises(model),
      diagnose: false,
    });
    expect(verdict.findings).toEqual([]);
    expect(outputs.out.elements.unbounded).toBe(0);
  });
});
