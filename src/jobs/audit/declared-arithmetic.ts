import {
  findModelAmong,
  forwardSettings,
  kernelModels,
  type KernelModel,
  type KernelSettings,
} from '../../../kernels/index.js';
import {
  judgedArithmetic,
  kernelGradientPremises,
  modelPremises,
  parseDeclaration,
  premisePresets,
  type GradientPremises,
  type KernelArithmetic,
  type PremiseDeclaration,
} from '../../audit/index.js';
import type { FormatName } from '../../formats/index.js';
import { problemNote, type TensorFile } from '../../io/tensors/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { nearClause } from '../../words/index.js';
import type { AuditSettings } from './audit-settings.js';

/** Declarations about the arithmetic of a kernel. */
export interface ArithmeticRequest {
  /** The kernel model that made the output. */
  readonly kernel?: string | undefined;
  /** The kernel model whose arithmetic, or the preset whose premises the kernel is judged by. */
  readonly as?: string | undefined;
  /** Premises, each as name=value, or several with commas. */
  readonly premise?: readonly string[] | undefined;
  /** Premises noted in the problem's file, used by default, and their place. */
  readonly noted?: { readonly text: string; readonly where: string } | undefined;
  /** Whether to ignore premises noted in the file, since the kernel's side may have written them. */
  readonly strictPremises?: boolean | undefined;
  /** The settings of a model as text, by key; called for a model only. */
  readonly settings: () => ReadonlyMap<string, string>;
  /** The available kernel models; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
}

/** The arithmetic or premises that a kernel is judged by. */
export interface DeclaredArithmetic {
  /** A model's own arithmetic; null if premises say all that is known. */
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
    `--as is ${JSON.stringify(name)}${nearClause(name, judgedNames(models))}; give a kernel model or a preset: ${judgedNames(models).join(', ')}`,
  );
}

/** The model of a name; the name itself if there is none, for the receiver to report. */
export function modelNamed(
  name: string,
  models: readonly KernelModel[] = kernelModels,
): KernelModel | string {
  return models.find((model) => model.name === name) ?? name;
}

/** The name of the model that a request declares; undefined if premises say all. */
export function declaredModel({ kernel, as, models }: ArithmeticRequest): string | undefined {
  return kernel ?? (as !== undefined && isModel(as, models) ? as : undefined);
}

/**
 * The premises that a request declares: `premise` over `as` over the notes in the problem's file; null
 * for a model, which has its own arithmetic.
 * @throws RequestError for declarations that do not parse or contradict each other
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

/**
 * The premises of gradients by the model that a request declares; undefined if it declares none, or one of the forward
 * pass alone: the gradients are judged as those of any correct kernel then.
 * @param settings of both passes, as text by key
 * @param output the format of dQ, dK and dV
 * @throws RequestError for a problem or settings that the model's backward does not take
 */
export function declaredGradients(
  problem: Problem,
  request: ArithmeticRequest,
  settings: KernelSettings,
  output: FormatName,
): GradientPremises | undefined {
  const name = declaredModel(request);
  const model = name === undefined ? '' : modelNamed(name, request.models);
  if (typeof model === 'string' || model.backward === null) return undefined;
  return kernelGradientPremises(problem, output, model.backward.arithmetic(problem, settings));
}

/**
 * The settings for the forward pass of the model that a request names.
 * @param settings of both passes, as text by key
 * @param withBackward whether settings of its backward pass alone are allowed; they are left out here
 */
export function settingsOfForward(
  { kernel, as, models }: Pick<ArithmeticRequest, 'kernel' | 'as' | 'models'>,
  settings: KernelSettings,
  withBackward: boolean,
): KernelSettings {
  const name = kernel ?? as;
  const model = name === undefined ? '' : modelNamed(name, models);
  const backward = typeof model === 'string' ? null : model.backward;
  return withBackward && backward !== null ? forwardSettings(backward, settings) : settings;
}

/**
 * The request that selects the arithmetic by which results are judged.
 * @param withBackward as for `settingsOfForward`
 */
export function arithmeticRequest(
  file: TensorFile,
  settings: AuditSettings,
  withBackward: boolean,
): ArithmeticRequest {
  const { kernel, as, premise, strictPremises, models } = settings;
  return {
    kernel,
    as,
    premise,
    noted: problemNote(file, 'premises'),
    strictPremises,
    settings: () => settingsOfForward(settings, settings.modelSettings(), withBackward),
    models,
  };
}
