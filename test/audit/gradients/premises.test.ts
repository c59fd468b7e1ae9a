import { describe, expect, it } from 'vitest';
import {
  anyGradientPremises,
  fitGradientPremises,
  gradientPremiseNames,
  gradientPremiseWords,
  parseGradientDeclaration,
} from '../../../src/audit/index.js';
import { declaredGradientPremises } from '../../../src/audit/gradients/premises/gradient-declaration.js';
import { gradientPremiseHelp } from '../../../src/cli/options/shared-options.js';
import { readCapturedGradients } from '../../fixtures/captured-gradients.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe('premises of gradients', () => {
  inTurn.each([
    [['delta=weights'], { delta: 'weights' }],
    [['delta=weights,ds=fp32', 'delta=any'], { delta: 'any', ds: 'fp32' }],
    [[' '], {}],
  ] as const)('%j are read', (texts, declared) => {
    expect(parseGradientDeclaration(texts, '--gradient-premise')).toEqual(declared);
  });

  inTurn.each([
    ['delta=mine', /^--gradient-premise has delta "mine"; give any, stored-output, weights$/],
    ['delta', /^--gradient-premise has delta ""; give any/],
    [
      'D=weights',
      /^--gradient-premise has "D"; the premises of gradients are delta, deltaProducts, deltaSums, p, /,
    ],
    [
      'delta=weights,deltaSums=bf16',
      /^--gradient-premise has deltaSums, which is of D = dO·O, and delta "weights"; leave out one/,
    ],
    ['toString=x', /^--gradient-premise has "toString"; the premises/],
    ['delta=valueOf', /^--gradient-premise has delta "valueOf"; give any/],
  ])('%s is refused on one line', (text, message) => {
    expect(() => parseGradientDeclaration([text], '--gradient-premise')).toThrow(message);
  });

  it('are what the help says they are', () => {
    const words = gradientPremiseHelp.match(/[a-z-]+/gi);
    expect(words).toEqual(expect.arrayContaining(gradientPremiseNames));
    for (const name of ['delta', 'scale', 'sums', 'tanh'] as const)
      expect(words).toEqual(expect.arrayContaining(Object.keys(gradientPremiseWords[name].values)));
  });

  it('change what they name and nothing else', async () => {
    const { problem } = await readCapturedGradients('softcap.safetensors');
    const any = anyGradientPremises(problem, 'bf16');
    const declare = (...texts: string[]) =>
      declaredGradientPremises(problem, any, parseGradientDeclaration(texts, 'it'));
    expect(declare()).toEqual(any);
    expect(declare('weights=fp32', 'partials=input')).toEqual({
      ...any,
      weights: 'fp32',
      partials: 'bf16',
      description:
        "any correct kernel with dS made of P in fp32 and heads' dK and dV in the inputs' format",
    });
    expect(declare('tanh=any').tanh).toBe(any.tanh);
    expect(declare('tanh=accurate').tanh).toBeLessThan(declare('tanh=hardware').tanh);
    expect(declare('tanh=hardware')).toMatchObject({ tanh: any.tanh, tanhFloor: 0 });
    expect(declare('tanh=promised').tanh).toBeGreaterThan(2 ** -11);
    expect(any.tanh).toBeLessThan(2 ** -16);
  });

  inTurn.each([
    ['torch_flash', 'stored-output'],
    ['torch_math', 'weights'],
  ])('that gradients of %s are consistent with have D of %s', async (kernel, source) => {
    const { problem, dout, kernels } = await readCapturedGradients('large-128.safetensors');
    const fits = fitGradientPremises(problem, { dout, ...kernels[kernel] });
    expect(fits).toHaveLength(4);
    for (const { declared, isConsistent, spread, worst } of fits) {
      expect(isConsistent, JSON.stringify(declared)).toBe(declared.delta === source);
      expect(worst > 1).toBe(!isConsistent);
      expect(Object.keys(spread)).toEqual(['dq', 'dk', 'dv']);
    }
  });

  it('are not looked for of gradients that are wrong', async () => {
    const { problem, dout, kernels } = await readCapturedGradients('large-128.safetensors');
    const { dq, dk } = kernels['torch_flash'];
    expect(fitGradientPremises(problem, { dout, dq: dk, dk: dq })).toEqual([]);
  });
});
