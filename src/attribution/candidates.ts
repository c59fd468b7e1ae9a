import { kernelModels, type KernelModel } from '../../kernels/index.js';

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
