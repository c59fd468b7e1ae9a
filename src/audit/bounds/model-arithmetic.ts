import { fa4SettingsConfiguration, kernelModels } from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { PremiseDeclaration } from '../premise-declaration.js';
import { polynomialErrors } from './exp2-polynomial.js';
import { fa4Arithmetic } from './fa4-arithmetic.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';
import { naiveArithmetic } from './naive-arithmetic.js';

type Settings = ReadonlyMap<string, string>;

/** How each kernel model computes, by name. */
const arithmetics: Readonly<
  Record<string, (problem: Problem, settings: Settings) => KernelArithmetic>
> = {
  fa4: (problem, settings) => fa4Arithmetic(problem, fa4SettingsConfiguration(problem, settings)),
  'naive-fp32': (problem) => naiveArithmetic(problem, 'fp32'),
  'naive-input': (problem) => naiveArithmetic(problem, problem.q.format),
};

/** What each kernel model declares of itself beside its arithmetic, by name. */
const premises: Readonly<Record<string, (settings: Settings) => PremiseDeclaration>> = {
  fa4: (settings) => {
    const degree = settings.get('exp2.degree') ?? '3';
    const known = Object.entries(polynomialErrors).find(([name]) => name === degree);
    // Degrees from 3 on are as good as any kernel's.
    return known === undefined || known[1].largest <= 2 ** -13.4
      ? {}
      : { exponential: known[1].largest };
  },
  'naive-fp32': () => ({ weights: 'fp32' }),
  'naive-input': () => ({ scores: 'input', weights: 'input' }),
};

/**
 * What a kernel model declares of itself, for tests that take no whole arithmetic.
 * @param settings as `modelArithmetic` takes them
 */
export function modelPremises(model: string, settings: Settings = new Map()): PremiseDeclaration {
  return premises[model]?.(settings) ?? {};
}

/**
 * The arithmetic of a kernel model on a problem. Settings are as `KernelModel.prepare` takes them; a
 * variant's own settings count, its bug does not.
 * @throws RequestError for an unknown model or one without bounds, and as its `prepare`
 */
export function modelArithmetic(
  model: string,
  problem: Problem,
  settings: Settings = new Map(),
): KernelArithmetic {
  const known = kernelModels.filter(({ name }) => Object.hasOwn(arithmetics, name));
  const arithmetic = known.some(({ name }) => name === model) ? arithmetics[model] : undefined;
  if (arithmetic === undefined)
    throw new RequestError(
      `no bounds for a kernel model ${JSON.stringify(model)}; there are for ${known.map(({ name }) => name).join(', ')}`,
    );
  return arithmetic(problem, settings);
}

/**
 * The arithmetic that a model's output is judged by: without what a variant does or sets, and without
 * weights beyond the range of their format.
 * @throws RequestError as `modelArithmetic`
 */
export function judgedArithmetic(
  model: string,
  problem: Problem,
  settings: Settings = new Map(),
): KernelArithmetic {
  const correct = new Map([...settings].filter(([key]) => key !== 'variant'));
  return { ...modelArithmetic(model, problem, correct), overflow: 'fault' };
}
