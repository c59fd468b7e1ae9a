import {
  modelNamed,
  naturalLse,
  type ArithmeticRequest,
  type LaunchTemplate,
  readOutputs,
  type JudgedOutputs,
} from '../../jobs/index.js';
import type { NoOutput } from '../../report/json/index.js';
import type { AuditSettings } from './audit-settings.js';
import { emulateOutputs, executeKernel, outputArguments } from './judged-outputs.js';
import { executeLaunch, type LaunchedKernel } from './launched-kernel.js';
import type { OpenProblem } from './open-problem.js';
import type { AuditCommandOptions } from './options.js';

/** Outputs to judge, those of a compiled kernel with the machine's findings; or the reason that a kernel gave none. */
type Obtained =
  | LaunchedKernel
  | { readonly judged: JudgedOutputs; readonly gradients: null; readonly machine?: null }
  | { readonly failure: NoOutput };

/** The outputs of a kernel model, of a process, or of files. */
async function outputsOf(
  { file, problem, reading }: OpenProblem,
  { options, timeoutSeconds }: AuditSettings,
  { settings, models }: ArithmeticRequest,
): Promise<Obtained> {
  const { kernel, exec, threads } = options;
  const alone = (judged: JudgedOutputs): Obtained => ({ judged, gradients: null });
  if (kernel !== undefined) {
    const run = { settings: settings(), threads };
    return alone(await emulateOutputs(modelNamed(kernel, models), problem, run));
  }
  if (exec === undefined) return alone(await readOutputs(file, outputArguments(options), reading));
  const execution = await executeKernel(exec, problem, timeoutSeconds);
  if (execution.ok) return alone(execution.outputs);
  const reason = `the kernel's process ${execution.reason}; replay with the problem ${file.path}`;
  return { failure: { reason, isDeclined: execution.cause === 'unsupported' } };
}

/** Outputs whose LSE is a natural logarithm, by --lse-base. */
export function withNaturalLse(
  judged: JudgedOutputs,
  { kernel, lseBase }: AuditCommandOptions,
): JudgedOutputs {
  const { lse } = judged.outputs;
  if (lse === null || kernel !== undefined) return judged;
  return { ...judged, outputs: { ...judged.outputs, lse: naturalLse(lse, lseBase) } };
}

/**
 * Outputs of a compiled kernel, of a kernel model, of a process, or of files; their LSE is a natural logarithm.
 * @param template of the compiled kernel; null where it is none
 * @throws RequestError for files that cannot be read, and kernels that cannot be run
 */
export async function obtainOutputs(
  open: OpenProblem,
  audit: AuditSettings,
  arithmetic: ArithmeticRequest,
  template: LaunchTemplate | null,
): Promise<Obtained> {
  const { options } = audit;
  const obtained =
    template === null
      ? await outputsOf(open, audit, arithmetic)
      : await executeLaunch(template, open, options);
  if ('failure' in obtained || obtained.judged === null) return obtained;
  return { ...obtained, judged: withNaturalLse(obtained.judged, options) };
}
