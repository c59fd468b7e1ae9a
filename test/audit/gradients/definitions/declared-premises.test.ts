import { describe, expect, it } from 'vitest';
import {
  anyGradientPremises,
  declaredGradientPremises,
  eagerGradientPremises,
  gradientPremiseNames,
  gradientPremiseWords,
  kernelGradientPremises,
  parseGradientDeclaration,
  type GradientDeclaration,
  type GradientPremises,
} from '../../../../src/audit/gradients/index.js';
import { formats, type FormatName } from '../../../../src/formats/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';

/** Inputs, outputs and the format that a kernel of these works in: fp64 with a shorter output is widened fp32. */
const pairs = [
  ['bf16', 'bf16', 'bf16'],
  ['fp16', 'fp32', 'fp16'],
  ['fp32', 'fp32', 'fp32'],
  ['fp64', 'bf16', 'fp32'],
  ['fp64', 'fp64', 'fp64'],
] as const satisfies readonly (readonly [FormatName, FormatName, FormatName])[];

function problemOf(format: FormatName, changes: Partial<Problem> = {}): Problem {
  const frame = { queries: 1, keys: 1, dim: 1, format };
  return filledProblem(frame, () => 1, changes);
}

/** What is changed by a declaration. */
function changedBy(
  declared: GradientDeclaration,
  [input, output]: readonly [FormatName, FormatName, FormatName],
): Partial<GradientPremises> {
  const problem = problemOf(input);
  const any = anyGradientPremises(problem, output);
  const found = declaredGradientPremises(problem, any, declared);
  const entries = Object.entries(found).filter(
    ([name, value]) => name !== 'description' && any[name as keyof GradientPremises] !== value,
  );
  return Object.fromEntries(entries);
}

/** Numbers of a change that say what any kernel does already are none. */
function beside(
  wanted: Partial<GradientPremises>,
  [input, output]: readonly [FormatName, FormatName, FormatName],
): Partial<GradientPremises> {
  const any = anyGradientPremises(problemOf(input), output);
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => any[name as 'p'] !== value),
  );
}

describe('premises of any kernel', () => {
  it.each(pairs)('of %s that gives %s are those of %s', (input, output, working) => {
    const any = anyGradientPremises(problemOf(input), output);
    const wide = working === 'fp64' ? 'fp64' : 'fp32';
    const own = { p: working, ds: working, weights: working, o: output, partials: output, output };
    const written = { deltaProducts: wide, deltaSums: wide, scores: wide, dp: wide };
    const open = { delta: 'any', sinkTerms: 'any', sums: 'any', scaleBeforeRounding: true };
    const roundings = { pRoundings: 1, dsRoundings: 1 };
    for (const part of [own, written, open, roundings]) expect(any).toMatchObject(part);
    const ofFp64 = working === 'fp64';
    expect(any.elementwise).toBe(ofFp64 ? 2 ** -52 : 2 ** -23);
    expect(any.tanh).toBe(ofFp64 ? 2 ** -51 : 2 ** -16.4);
    expect(any.tanhFloor).toBe(ofFp64 ? 2 ** -51 : 2 ** -21);
  });

  it.each(pairs)('written out in a framework, of %s that gives %s', (input, output, working) => {
    const dropout = {
      kept: { shape: [1, 1, 1, 1], data: Uint8Array.of(1) },
      probability: 0.5,
    };
    const of = (changes: Partial<Problem>) =>
      eagerGradientPremises(problemOf(input, changes), output);
    const own = { delta: 'weights', scores: working, dp: working };
    expect(of({})).toMatchObject({ ...own, pRoundings: 1, dsRoundings: 2 });
    expect(of({ dropout })).toMatchObject({ ...own, pRoundings: 2, dsRoundings: 2 });
    expect(of({ softcap: 3 })).toMatchObject({ ...own, pRoundings: 1, dsRoundings: 4 });
  });

  it('are a kernel’s own where it declares them', () => {
    const problem = problemOf('bf16');
    const declared = { description: 'mine', ds: 'fp16', scaleBeforeRounding: false } as const;
    const found = kernelGradientPremises(problem, 'bf16', declared);
    expect(found).toEqual({ ...anyGradientPremises(problem, 'bf16'), ...declared });
  });
});

const ofFormats = [
  'deltaProducts',
  'deltaSums',
  'p',
  'ds',
  'weights',
  'sinkTerms',
  'scores',
  'dp',
  'partials',
] as const;

describe('a declaration changes what it names, and nothing else', () => {
  it.each(pairs)('of %s that gives %s', (...pair) => {
    const [input, output, working] = pair;
    const ofO = { delta: 'stored-output' } as const;
    for (const name of ofFormats) {
      const more = name === 'deltaProducts' || name === 'deltaSums' ? ofO : {};
      for (const format of Object.keys(formats) as FormatName[])
        expect(changedBy({ [name]: format }, pair), `${name} ${format}`).toEqual(
          beside({ [name]: format, ...more }, pair),
        );
      expect(changedBy({ [name]: 'input' }, pair), name).toEqual(
        beside({ [name]: working, ...more }, pair),
      );
    }
    for (const delta of ['any', 'stored-output', 'weights'] as const)
      expect(changedBy({ delta }, pair)).toEqual(beside({ delta }, pair));
    expect(changedBy({ sinkTerms: 'any' }, pair)).toEqual({});
    expect(changedBy({ scale: 'any' }, pair)).toEqual({});
    expect(changedBy({ scale: 'after-rounding' }, pair)).toEqual({ scaleBeforeRounding: false });
    expect(changedBy({ sums: 'any' }, pair)).toEqual({});
    expect(changedBy({ sums: 'nearest' }, pair)).toEqual({ sums: 'nearest' });
    const { elementwise } = anyGradientPremises(problemOf(input), output);
    const ofFp64 = working === 'fp64';
    // What the instruction promises, and what is rounded around it.
    const promised = ofFp64 ? 2 ** -51 : 2 ** -10.9;
    expect(changedBy({ tanh: 'any' }, pair)).toEqual({});
    expect(changedBy({ tanh: 'promised' }, pair)).toEqual(beside({ tanh: promised }, pair));
    expect(changedBy({ tanh: 'hardware' }, pair)).toEqual({ tanhFloor: 0 });
    expect(changedBy({ tanh: 'accurate' }, pair)).toEqual(
      beside({ tanh: 2 * elementwise, tanhFloor: 0 }, pair),
    );
  });

  it('and several change what all of them name, the widest tanh again by "any"', () => {
    const problem = problemOf('bf16');
    const any = anyGradientPremises(problem, 'bf16');
    const accurate = declaredGradientPremises(problem, any, { tanh: 'accurate', ds: 'fp32' });
    expect(accurate.ds).toBe('fp32');
    const again = declaredGradientPremises(problem, accurate, { tanh: 'any', sinkTerms: 'fp16' });
    expect(again).toMatchObject({ tanh: any.tanh, tanhFloor: any.tanhFloor, sinkTerms: 'fp16' });
    const back = declaredGradientPremises(problem, again, { sinkTerms: 'any', delta: 'any' });
    expect([back.sinkTerms, back.delta]).toEqual(['any', 'any']);
  });
});

describe('a declaration in words', () => {
  const wordsOf = (declared: GradientDeclaration) => {
    const problem = problemOf('bf16');
    const any = anyGradientPremises(problem, 'bf16');
    return declaredGradientPremises(problem, any, declared).description;
  };

  it.each<[string, GradientDeclaration]>([
    ['any correct kernel', {}],
    ['any correct kernel with D of P dP', { delta: 'weights' }],
    ['any correct kernel with D of the stored O', { delta: 'stored-output' }],
    ['any correct kernel with D of the stored O or of P dP', { delta: 'any' }],
    ["any correct kernel with dS in the inputs' format", { ds: 'input' }],
    ["any correct kernel with sinks' P and dS as D has them", { sinkTerms: 'any' }],
    ["any correct kernel with sinks' P and dS in fp16", { sinkTerms: 'fp16' }],
    ['any correct kernel with the scale anywhere', { scale: 'any' }],
    ['any correct kernel with the scale after dS is rounded', { scale: 'after-rounding' }],
    ['any correct kernel with any sums', { sums: 'any' }],
    ['any correct kernel with sums that round to nearest', { sums: 'nearest' }],
    ['any correct kernel with any tanh', { tanh: 'any' }],
    ['any correct kernel with a tanh within 2^-11', { tanh: 'promised' }],
    ["any correct kernel with the hardware's tanh", { tanh: 'hardware' }],
    ['any correct kernel with a tanh as good as elementwise operations', { tanh: 'accurate' }],
    [
      'any correct kernel with products dO·O in bf16, P for dV in fp16 and dP in fp32',
      { dp: 'fp32', p: 'fp16', deltaProducts: 'bf16' },
    ],
    ['any correct kernel with P for dV in fp16 and scores in bf16', { scores: 'bf16', p: 'fp16' }],
  ])('is "%s"', (words, declared) => {
    expect(wordsOf(declared)).toBe(words);
  });

  it('is read with spaces, empty parts and later ones in the place of earlier ones', () => {
    const read = (...texts: string[]) => parseGradientDeclaration(texts, 'it');
    expect(read('delta=weights', ' ds=fp32 ,, p=fp16 ')).toEqual({
      delta: 'weights',
      ds: 'fp32',
      p: 'fp16',
    });
    expect(read('ds=fp32,ds=input')).toEqual({ ds: 'input' });
    expect(read()).toEqual({});
    // D of products and sums is of the stored O.
    for (const name of ['deltaProducts', 'deltaSums'] as const) {
      const { [name]: value, ...others } = read(`${name}=bf16,delta=stored-output`);
      expect([value, others]).toEqual(['bf16', { delta: 'stored-output' }]);
      expect(read(`${name}=bf16`)).toEqual({ [name]: 'bf16' });
      for (const delta of ['any', 'weights'])
        expect(() => read(`${name}=bf16`, `delta=${delta}`)).toThrow(
          `it has ${name}, which is of D = dO·O, and delta "${delta}"; leave out one`,
        );
    }
  });

  it.each([
    ['delta=mine', 'it has delta "mine"; give any, stored-output, weights'],
    ['delta', 'it has delta ""; give any, stored-output, weights'],
    ['delta=valueOf', 'it has delta "valueOf"; give any'],
    ['toString=x', 'it has "toString"; the premises of gradients are delta, deltaProducts'],
    ['D=weights', 'it has "D"; the premises of gradients are delta, deltaProducts, deltaSums, p, '],
  ])('is refused where it is %s', (text, message) => {
    expect(() => parseGradientDeclaration([text], 'it')).toThrow(message);
  });

  it('has a subject and values for every name', () => {
    for (const name of gradientPremiseNames) {
      expect(gradientPremiseWords[name].description).not.toBe('');
      for (const value of Object.keys(gradientPremiseWords[name].values))
        expect(parseGradientDeclaration([`${name}=${value}`], 'it')).toEqual({ [name]: value });
    }
    expect(gradientPremiseNames).toHaveLength(13);
  });
});
