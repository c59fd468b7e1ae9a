import {
  createMutantJudge,
  type Mutant,
  programMutants,
  type MutantJudge,
} from '../../ptx/mutants/index.js';
import { prepareLaunch } from '../../ptx/run/index.js';
import { launchOptions, openRequest, type RunRequest } from './run-launch-file.js';

/** The mutants of a launch file's kernel, before the kernel has run. */
export interface LaunchMutants {
  readonly mutants: readonly Mutant[];
  /** Runs the kernel itself, and is then ready for its mutants. */
  readonly start: () => MutantJudge;
}

/**
 * Reads a launch file, and makes its kernel's mutants.
 *
 * @throws RequestError for files that cannot be read or do not fit, and for everything in the kernel that is not supported
 */
export async function openMutants(request: RunRequest): Promise<LaunchMutants> {
  const opened = await openRequest(request);
  const { options } = launchOptions(request, opened);
  const prepared = prepareLaunch(opened.module, opened.launch, options);
  return {
    mutants: programMutants(prepared.program),
    start: () => createMutantJudge(prepared, options),
  };
}
