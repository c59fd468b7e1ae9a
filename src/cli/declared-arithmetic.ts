import { kernelModels } from '../../kernels/index.js';
import {
  judgedArithmetic,
  modelPremises,
  parseDeclaration,
  premisePresets,
  type KernelArithmetic,
  type PremiseDeclaration,
} from '../audit/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { kernelSettings } from './options/kernel-settings.js';

/** The options that say how a kernel computes, of `audit`, `bound` and `check`. */
export interface ArithmeticOptions {
  readonly kernel?: string;
  readonly as?: string;
  readonly premise?: readonly string[];
  readonly set?: readonly string[];
}

/** By what a kernel is judged. */
export interface DeclaredArithmetic {
  /** A model's own arithmetic; null where premises say all that is known. */
  readonly arithmetic: KernelArithmetic | null;
  readonly premises: PremiseDeclaration;
}

/** The models and presets that --as takes. */
export const judgedNames: readonly string[] = [
  ...kernelModels.map(({ name }) => name),
  ...Object.keys(premisePresets),
];

/** Whether --as names a model, not a preset. @throws RequestError when it names neither */
export function isModel(name: string): boolean {
  if (kernelModels.some((model) => model.name === name)) return true;
  if (Object.hasOwn(premisePresets, name)) return false;
  throw new RequestError(
    `--as is ${JSON.stringify(name)}; give a kernel model or a preset: ${judgedNames.join(', ')}`,
  );
}

/**
 * What the options declare of a kernel's arithmetic: --premise over --as over what the problem's file
 * notes; null for a model, which says all of itself.
 * @param noted the metadata `premises` of the problem's file; undefined for none
 * @throws RequestError for options that do not parse or do not go together
 */
export function declaredPremises(
  { kernel, as, premise }: ArithmeticOptions,
  noted?: { readonly text: string; readonly where: string },
): PremiseDeclaration | null {
  const model = kernel ?? (as !== undefined && isModel(as) ? as : undefined);
  if (model !== undefined) {
    if (premise !== undefined)
      throw new RequestError(
        `--premise changes what any kernel may do, and ${model} says all of itself; leave out one`,
      );
    return null;
  }
  if (as === undefined && premise === undefined)
    return noted === undefined ? {} : parseDeclaration(noted.text, noted.where);
  return {
    ...(as === undefined ? {} : premisePresets[as].premises),
    ...parseDeclaration((premise ?? []).join(','), '--premise'),
  };
}

/**
 * The arithmetic that the options declare, for one problem.
 * @param noted as of `declaredPremises`
 * @throws RequestError for a model that does not exist or does not take the problem, and as
 * `declaredPremises`
 */
export function declaredArithmetic(
  problem: Problem,
  options: ArithmeticOptions,
  noted?: { readonly text: string; readonly where: string },
): DeclaredArithmetic {
  const premises = declaredPremises(options, noted);
  if (premises !== null) return { arithmetic: null, premises };
  const model = (options.kernel ?? options.as)!;
  const settings = kernelSettings(options.set);
  const ofModel = { premises: modelPremises(model, settings) };
  try {
    return { ...ofModel, arithmetic: judgedArithmetic(model, problem, settings) };
  } catch (error) {
    // A kernel may run where nothing is known of its bounds; who asks for them wants to know.
    if (error instanceof RequestError && options.as === undefined)
      return { ...ofModel, arithmetic: null };
    throw error;
  }
}
