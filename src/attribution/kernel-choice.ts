import {
  type AttributedKernel,
  defaultKernelModel,
  type Fa4Configuration,
  fa4Settings,
  findKernelModel,
  type KernelModel,
  kernelModels,
  type KernelSettings,
} from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';

/** The kernel to attribute, with its settings. */
export interface KernelChoice {
  /** A kernel model, or the name of one of the library's; default FlashAttention-4's. */
  readonly kernel?: string | KernelModel;
  /** Values as text, by key; see the model's settings. The kernel chooses the others. */
  readonly settings?: KernelSettings;
  /** For the default kernel, in place of settings: changes to the configuration that it would choose. */
  readonly configuration?: Partial<Fa4Configuration> | undefined;
}

/** A model, and the chosen ones of its settings. */
interface ChosenKernel {
  readonly model: KernelModel;
  readonly settings: KernelSettings;
}

/** @throws RequestError for an unknown kernel, and for a configuration beside settings or a kernel */
export function chosenKernel({ kernel, settings, configuration }: KernelChoice): ChosenKernel {
  const model = findKernelModel(kernel ?? defaultKernelModel);
  if (configuration === undefined) return { model, settings: settings ?? new Map() };
  if (model !== defaultKernelModel || settings !== undefined)
    throw new RequestError(
      'a configuration was given along with another kernel or with settings; give settings only',
    );
  return { model, settings: fa4Settings(configuration) };
}

/**
 * The chosen kernel on a problem, with techniques that can be emulated or exact.
 * @throws RequestError for an unknown kernel, for a problem that it does not take, for settings that it
 * does not have or that cannot be attributed
 */
export function attributedKernel(problem: Problem, choice: KernelChoice = {}): AttributedKernel {
  const { model, settings } = chosenKernel(choice);
  return model.attribute(problem, settings);
}

/** A kernel model with settings, as text by key, that differ from what it would choose. */
export interface Candidate {
  readonly model: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** The candidates of some models, by which an unknown output is compared with them. */
export function candidatesOf(models: readonly KernelModel[]): readonly Candidate[] {
  return models.flatMap(({ name, candidates }) =>
    candidates.map((settings) => ({ model: name, settings })),
  );
}

/** The kernels that an unknown output is compared with by default; the likelier of equals first. */
export const defaultCandidates: readonly Candidate[] = candidatesOf(kernelModels);
