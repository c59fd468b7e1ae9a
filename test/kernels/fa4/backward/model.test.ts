import { describe, expect, it } from 'vitest';
import {
  fa4Model,
  runBackward,
  type BackwardInputs,
  type KernelSettings,
} from '../../../../kernels/index.js';
import { auditGradients, kernelGradientPremises } from '../../../../src/audit/index.js';
import { decodeToFloat64, formats, patternsOf } from '../../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../../../audit/gradients/gradient-case.js';
import { backwardCases, prepareCase } from './backward-cases.js';
import { turns } from '../../../setup/turns.js';

const inTurn = turns(import.meta.url);

const patterns = ({ data, format }: Tensor) => Array.from(patternsOf(data, formats[format]));

function run(problem: Problem, inputs: BackwardInputs, settings: Record<string, string> = {}) {
  const { dq, dk, dv } = runBackward('fa4', problem, inputs, new Map(Object.entries(settings)));
  return { dq: patterns(dq), dk: patterns(dk), dv: patterns(dv) };
}

/** A problem of several blocks, with dO. */
function ofBlocks(changes: Partial<Problem> = {}, dim = 128) {
  const frame = { heads: 2, kvHeads: 1, queries: 150, keys: 300, dim, vDim: 32 };
  const problem = filledProblem(frame, bellShaped(31), changes);
  return { problem, dout: tensor('bf16', [1, 2, 150, 32], bellShaped(37)), forward: null };
}

describe("the backward of fa4's model", () => {
  inTurn.each(backwardCases)('passes an audit by its own premises: $name', (chosen) => {
    const { problem, tensors } = prepareCase(chosen);
    const { dout, ...forward } = tensors;
    const { dq, dk, dv, prepared } = runBackward('fa4', problem, { dout, forward });
    const arithmetic = fa4Model.backward!.arithmetic(problem, new Map());
    const premises = kernelGradientPremises(problem, prepared.format, arithmetic);
    const { verdict } = auditGradients(problem, { ...tensors, dq, dk, dv }, { premises });
    expect(verdict.findings).toEqual([]);
    expect(verdict.pass).toBe(true);
    expect(prepared.evidence.length).toBeGreaterThan(5);
  });

  it('with pairs of CTAs has another dQ, and nothing else', () => {
    const { problem, ...inputs } = ofBlocks();
    const [one, two] = ['1', '2'].map((ctas) => run(problem, inputs, { ctas }));
    expect(two.dq).not.toEqual(one.dq);
    expect({ ...two, dq: null }).toEqual({ ...one, dq: null });
    expect(run(problem, inputs)).toEqual(two);
  });

  it('adds tiles of dQ from the last keys on where a causal mask is deterministic', () => {
    const { problem, ...inputs } = ofBlocks({ causal: true }, 64);
    const free = run(problem, inputs);
    const fixed = run(problem, inputs, { deterministic: 'true' });
    expect(fixed.dq).not.toEqual(free.dq);
    expect({ ...fixed, dq: null }).toEqual({ ...free, dq: null });
    const { problem: plain } = ofBlocks({}, 64);
    expect(run(plain, inputs, { deterministic: 'true' })).toEqual(run(plain, inputs));
  });

  it('gives pieces that do not depend on one another', () => {
    const { problem, tensors } = prepareCase(backwardCases.find(({ name }) => name === 'batches')!);
    const { dout, ...forward } = tensors;
    const settings: KernelSettings = new Map([['deterministic', 'true']]);
    const prepare = () => fa4Model.backward!.prepare(problem, { dout, forward }, settings);
    const [up, down] = [prepare(), prepare()];
    const pieces = Array.from({ length: up.pieces }, (_, i) => up.run(i));
    expect(pieces.map(({ kvHead }) => kvHead)).toEqual([0, 1, 2, 3]);
    const others = pieces.map((_, i) => down.run(pieces.length - 1 - i)).reverse();
    expect(others).toEqual(pieces);
    expect(up.someOrder).toBeNull();
  });

  it('is linear in powers of two of dO, and zero for a dO of zeros', () => {
    const { problem, dout, forward } = ofBlocks({}, 32);
    const times = (factor: number): Tensor => {
      const fill = bellShaped(37);
      return tensor('bf16', dout.shape, () => factor * fill());
    };
    const exponent = 1 << 7;
    const [once, thrice] = [1, 8].map((factor) => run(problem, { dout: times(factor), forward }));
    for (const name of ['dq', 'dk', 'dv'] as const)
      expect(thrice[name]).toEqual(
        once[name].map((x) => ((x & 0x7fff) === 0 ? x : x + 3 * exponent)),
      );
    const zero = run(problem, { dout: times(0), forward });
    expect([...zero.dq, ...zero.dk, ...zero.dv].every((x) => (x & 0x7fff) === 0)).toBe(true);
  });

  it('gives keys that no query sees zeros', () => {
    const { problem, ...inputs } = ofBlocks({ window: { left: 20, right: 0 } }, 32);
    const { dk, dv } = run(problem, inputs);
    // The first query sits on key 150.
    expect(dk.slice(0, 130 * 32).every((x) => x === 0)).toBe(true);
    expect(dv.slice(0, 130 * 32).every((x) => x === 0)).toBe(true);
    expect(dk.slice(130 * 32).every((x) => x === 0)).toBe(false);
  });

  it.each([
    ['e4m3 operands', { q: 'e4m3' }, {}, /takes bf16 and fp16/],
    ['pairs of CTAs of a short head', {}, { ctas: '2' }, /pairs thread blocks from/],
    ['three CTAs', {}, { ctas: '3' }, /ctas is "3"; give 1, 2/],
    ['an unknown setting', {}, { atoms: '1' }, /no setting "atoms"/],
    ['an odd block', {}, { 'backward.blockKeys': '20' }, /multiple of 16/],
    ['a block of 7', {}, { 'backward.blockQueries': '7' }, /^backward.blockQueries is 7; give a/],
    ['an O of another format', {}, { 'out.format': 'fp16' }, /^out.format is fp16.*reads bf16/],
  ] as const)('refuses %s', (_, formatOf, settings, message) => {
    const { problem, ...inputs } = ofBlocks({}, 32);
    const changed =
      'q' in formatOf
        ? filledProblem({ queries: 150, keys: 9, dim: 32, heads: 2, format: 'e4m3' }, () => 1)
        : problem;
    expect(() => run(changed, inputs, settings)).toThrow(message);
    const bounds = () =>
      fa4Model.backward!.arithmetic(changed, new Map<string, string>(Object.entries(settings)));
    expect(bounds).toThrow(message);
  });

  it('refuses head dimensions that the kernel has not', () => {
    for (const [dim, vDim] of [
      [256, 128],
      [192, 192],
      [36, 32],
    ]) {
      const problem = filledProblem({ queries: 4, keys: 4, dim, vDim }, () => 1);
      const dout = tensor('bf16', [1, 1, 4, vDim], () => 1);
      expect(() => run(problem, { dout, forward: null })).toThrow(/head dimensions/);
      expect(() => fa4Model.backward!.arithmetic(problem, new Map())).toThrow(/head dimensions/);
    }
  });

  it('says what was compared with the compiled kernel, and what was not', () => {
    const { problem, ...inputs } = ofBlocks();
    const evidenceOf = (changes: Partial<Problem>, settings: Record<string, string> = {}) => {
      const texts = new Map(Object.entries(settings));
      return fa4Model
        .backward!.prepare({ ...problem, ...changes }, inputs, texts)
        .evidence.filter((line) => /compiled kernel|no kernel was compared/.test(line));
    };
    const all = (lines: readonly string[]) => lines.map((line) => line.includes('compiled kernel'));
    expect(all(evidenceOf({}))).toEqual([true, true, true]);
    expect(all(evidenceOf({}, { deterministic: 'true' }))).toEqual([true, true, true, true]);
    expect(all(evidenceOf({ prefix: 3 }))).toEqual([false, false, false]);
    expect(all(evidenceOf({}, { architecture: 'sm_90' }))).toEqual([false, false]);
  });

  it('refuses what the kernels for head dimension 256 lack', () => {
    const problem = filledProblem({ queries: 4, keys: 4, dim: 256 }, () => 1);
    const dout = tensor('bf16', [1, 1, 4, 256], () => 1);
    const logits = tensor('fp32', [1], () => 1);
    for (const [changes, settings, message] of [
      [{ window: { left: 2, right: 0 } }, {}, /which take no window$/],
      [{ softcap: 3 }, {}, /which take no softcap$/],
      [{ prefix: 2 }, {}, /which take no mask of its own$/],
      [{ sink: { logits, inLse: true } }, {}, /which take no sink$/],
      [{}, { deterministic: 'false' }, /^deterministic is false; .* add in one order always$/],
      [{}, { ctas: '1' }, /^ctas is 1; head dimension 256 has pairs/],
    ] as const) {
      const asked = { ...problem, ...changes };
      expect(() => run(asked, { dout, forward: null }, settings)).toThrow(message);
    }
  });

  it('scales dS of head dimension 256 before it is rounded, for dQ alone', () => {
    const [dim, scale] = [256, 1 + 2 ** -9];
    const first = (i: number): number => (i % dim === 0 ? 1 : 0);
    const problem = {
      ...filledProblem({ queries: 1, keys: 1, dim }, () => 0),
      scale,
      q: tensor('bf16', [1, 1, 1, dim], (i) => first(i - 1)),
      k: tensor('bf16', [1, 1, 1, dim], first),
      // dP is 1 + 2^-8, amid two numbers of bf16, and with an LSE of 0 so is dS.
      v: tensor('bf16', [1, 1, 1, dim], (i) => first(i) + 2 ** -8 * first(i - 1)),
    };
    const inputs = {
      dout: tensor('bf16', [1, 1, 1, dim], (i) => first(i) + first(i - 1)),
      forward: {
        out: tensor('bf16', [1, 1, 1, dim], () => 0),
        lse: tensor('fp32', [1, 1, 1], () => 0),
      },
    };
    const { dq, dk, dv } = runBackward('fa4', problem, inputs);
    const numbers = ({ data, format }: Tensor) => decodeToFloat64(data, formats[format]);
    // Scaled it is nearer to 1 + 2^-7; rounded first it is 1, and so is 1 + 2^-9.
    expect(numbers(dq)[0]).toBe(1 + 2 ** -7);
    expect(numbers(dk)[1]).toBe(1);
    expect(numbers(dv)[0]).toBe(1);
  });

  it('refuses inputs of fp32 and a sink that is not in the LSE, before anything is run', () => {
    const { problem } = ofBlocks({}, 32);
    const logits = tensor('fp32', [2], () => 1);
    const wide = filledProblem({ queries: 4, keys: 4, dim: 32, format: 'fp32' }, () => 1);
    for (const [changed, message] of [
      [wide, /^q is fp32; the backward of fa4 takes bf16 and fp16$/],
      [{ ...problem, sink: { logits, inLse: false } }, /^fa4 has the sink in its LSE/],
    ] as const)
      expect(() => fa4Model.backward!.arithmetic(changed, new Map())).toThrow(message);
  });
});
