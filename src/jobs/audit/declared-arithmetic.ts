import { findModelAmong, kernelModels, type KernelModel } from '../../../kernels/index.js';
import {
  judgedArithmetic,
  modelPremises,
  parseDeclaration,
  premisePresets,
  type KernelArithmetic,
  type PremiseDeclaration,
} from '../../audit/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';

/** What is said of how a kernel computes. */
export interface ArithmeticRequest {
  /** The kernel model that made the output. */
  readonly kernel?: string | undefined;
  /** A kernel model whose arithmetic, or a preset whose premises the kernel is judged by. */
  readonly as?: string | undefined;
  /** Premises, each as name=value, or several with commas. */
  readonly premise?: readonly string[] | undefined;
  /** What the problem's file notes of premises, where nothing else is said, and its place. */
  readonly noted?: { readonly text: string; readonly where: string } | undefined;
  /** Whether what the file notes of premises is left aside, since the kernel's side may have written it. */
  readonly strictPremises?: boolean | undefined;
  /** The settings of a model as text, by key; called for a model only. */
  readonly settings: () => ReadonlyMap<string, string>;
  /** The kernel models that there are; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
}

/** By what a kernel is judged. */
export interface DeclaredArithmetic {
  /** A model's own arithmetic; null where premises say all that is known. */
  readonly arithmetic: KernelArithmetic | null;
  readonly premises: PremiseDeclaration;
}

/** The models and presets that a kernel can be judged by. */
export function judgedNames(models: readonly KernelModel[] = kernelModels): readonly string[] {
  return [...models.map(({ name }) => name), ...Object.keys(premisePresets)];
}

/** Whether --as names a model, not a preset. @throws RequestError when it names neither */
export function isModel(name: string, models: readonly KernelModel[] = kernelModels): boolean {
  if (models.some((model) => model.name === name)) return true;
  if (Object.hasOwn(premisePresets, name)) return false;
  throw new RequestError(
    `--as is ${JSON.stringify(name)}; give a kernel model or a preset: ${judgedNames(models).join(', ')}`,
  );
}

/** The model of a name; the name itself where there is none, so that whoever takes it says so. */
export function modelNamed(
  name: string,
  models: readonly KernelModel[] = kernelModels,
): KernelModel | string {
  return models.find((model) => model.name === name) ?? name;
}

/** The name of the model that a request declares; undefined where premises say all. */
export function declaredModel({ kernel, as, models }: ArithmeticRequest): string | undefined {
  return kernel ?? (as !== undefined && isModel(as, models) ? as : undefined);
}

/**
 * What a request declares of a kernel's arithmetic: `premise` over `as` over what the problem's file
 * notes; null for a model, which says all of itself.
 * @throws RequestError for what does not parse or does not go together
 */
export function declaredPremises(
  request: Omit<ArithmeticRequest, 'settings'>,
): PremiseDeclaration | null {
  const { as, premise, strictPremises } = request;
  const noted = strictPremises === true ? undefined : request.noted;
  const model = declaredModel({ ...request, settings: () => new Map() });
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
 * The arithmetic that a request declares, for one problem.
 * @throws RequestError for a model that does not exist or does not take the problem, and as
 * `declaredPremises`
 */
export function declaredArithmetic(
  problem: Problem,
  request: ArithmeticRequest,
): DeclaredArithmetic {
  const premises = declaredPremises(request);
  if (premises !== null) return { arithmetic: null, premises };
  const settings = request.settings();
  const model = findModelAmong(request.models ?? kernelModels, (request.kernel ?? request.as)!);
  const ofModel = { premises: modelPremises(model, settings) };
  try {
    return { ...ofModel, arithmetic: judgedArithmetic(model, problem, settings) };
  } catch (error) {
    // A kernel may run where nothing is known of its bounds; who asks for them wants to know.
    if (error instanceof RequestError && request.as === undefined)
      return { ...ofModel, arithmetic: null };
    throw error;
  }
}
