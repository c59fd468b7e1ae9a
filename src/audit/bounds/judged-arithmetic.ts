import type { FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import { anyDropout, type Premises } from '../premises/premises.js';
import { problemPremises } from '../premises/resolve-premises.js';
import {
  type KernelArithmetic,
  type KernelModel,
  kernelModels,
  type PremiseDeclaration,
} from '../../../kernels/index.js';
import { RequestError } from '../../request-error.js';

/**
 * The arithmetic that admits any correct kernel, in any order of operations, with an output in
 * `outputFormat`.
 * @param premises how coarsely it may compute
 */
export function anyKernelArithmetic(
  problem: Problem,
  outputFormat: FormatName,
  premises: Premises = problemPremises(problem, outputFormat),
): KernelArithmetic {
  const { accumulation, elementwise, exponential, logarithm, underflow, tanh } = premises;
  const { operands, scoreRounding, scoreFloor } = premises;
  const softcap = problem.softcap === null ? 0 : 1;
  const adds = problem.bias !== undefined || problem.alibiSlopes !== undefined;
  return {
    description: premises.description,
    scores: {
      kind: 'any-order',
      perProduct: premises.scoreAccumulation,
      ofOperands: operands,
      smallestOperand: premises.smallestOperand,
    },
    scaleError: 0,
    largestScore: premises.largestScore,
    scoreLimit: premises.scoreLimit,
    exponent: {
      // The roundings of writing exponents once the maximum is subtracted.
      ofDistance: scoreRounding,
      // The roundings of writing scores before and after the scale, and once more with their addends.
      ofScore: 4 * elementwise + (adds ? 3 : 2) * scoreRounding,
      // The addends may themselves be written.
      ofAddend: 4 * elementwise + 2 * scoreRounding,
      common: 0,
      ofSoftcap: softcap * (tanh + 4 * elementwise + scoreRounding),
      absolute: scoreFloor * Math.LOG2E,
    },
    exponential: {
      hardware: exponential,
      polynomial: exponential,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: { kind: 'unknown', shared: premises.maximum, factors: premises.factors },
    weightFormat: premises.weightFormat,
    weightScale: premises.weightScale,
    overflow: 'fault',
    values: { kind: 'any-order', perProduct: accumulation, ofOperands: 0, smallestOperand: 0 },
    ...(premises.valueTiles === null ? {} : { valueTiles: premises.valueTiles }),
    rowSumAdditions: 0,
    rowSumAddition: premises.rowSumAddition,
    rowSumRounded: premises.rowSumRounded,
    partials: premises.partials,
    finish: { normalise: 4 * elementwise, logarithm, elementwise: 4 * elementwise },
    ...(problem.dropout === undefined
      ? {}
      : { dropout: anyDropout(problem.dropout.probability, premises) }),
    outputFormat,
    outputRounding: premises.outputRounding,
    largestSum: premises.largestSum,
    underflow: { weights: underflow, sums: premises.sumUnderflow },
  };
}

type Settings = ReadonlyMap<string, string>;

/** The model of a name, or the model itself. @throws RequestError for an unknown name */
function boundedModel(
  model: string | KernelModel,
  models: readonly KernelModel[] = kernelModels,
): KernelModel {
  const found = typeof model === 'string' ? models.find(({ name }) => name === model) : model;
  if (found === undefined)
    throw new RequestError(
      `no bounds for a kernel model ${JSON.stringify(model)}; there are for ${models.map(({ name }) => name).join(', ')}`,
    );
  return found;
}

/**
 * The premises that a kernel model declares, for tests that take no whole arithmetic.
 * @param settings as `modelArithmetic` takes them
 * @throws RequestError for an unknown model
 */
export function modelPremises(
  model: string | KernelModel,
  settings: Settings = new Map(),
): PremiseDeclaration {
  return boundedModel(model).premises(settings);
}

/**
 * The arithmetic of a kernel model on a problem. Settings are as `KernelModel.prepare` takes them; a
 * variant's own settings count, its bug does not.
 * @param model the model, or its name
 * @param models where names are looked up
 * @throws RequestError for an unknown model or one without bounds, and as its `prepare`
 */
export function modelArithmetic(
  model: string | KernelModel,
  problem: Problem,
  settings: Settings = new Map(),
  models: readonly KernelModel[] = kernelModels,
): KernelArithmetic {
  return boundedModel(model, models).arithmetic(problem, settings);
}

/**
 * The arithmetic that a model's output is judged by: without the changes and settings of a variant, and
 * without weights beyond the range of their format.
 * @throws RequestError as `modelArithmetic`
 */
export function judgedArithmetic(
  model: string | KernelModel,
  problem: Problem,
  settings: Settings = new Map(),
): KernelArithmetic {
  const correct = new Map([...settings].filter(([key]) => key !== 'variant'));
  return { ...modelArithmetic(model, problem, correct), overflow: 'fault' };
}
