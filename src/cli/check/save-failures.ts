import { join } from 'node:path';
import {
  describeCase,
  isGradientRun,
  type LawCase,
  type LawFailure,
  type LawId,
  type LawResult,
} from '../../../properties/index.js';
import { quoteShellCommand } from '../../report/layout/index.js';
import type { SavedViolation } from '../../report/json/check/index.js';
import { RequestError } from '../../request-error.js';
import {
  checkOptions,
  promiseOptions,
  type CheckCommandOptions,
  type PromiseOptions,
} from './options.js';
import { saveCase, type SavedCase } from './saved-case.js';
import type { ExecutionFailure } from '../../jobs/index.js';
import { toolVersion } from '../tool-version.js';
import { commandWords } from '../options/given-options.js';

/** The most elements of a tensor that is printed. */
export const mostElements = 64;

/** A line for each tensor; null where one is too long to be read. */
function valueLines({ problem, dout }: LawCase): string[] | null {
  const { q, k, v } = problem;
  const tensors = [q, k, v, ...(dout === undefined ? [] : [dout])];
  if (tensors.some(({ data }) => data.length > mostElements)) return null;
  return describeCase({ problem, dout }).split('\n').slice(1);
}

/** The kernel's outputs for the very problem, which laws run before anything derived from it. */
function ownOutputs({ runs, lawCase }: LawFailure): SavedCase['outputs'] {
  const first = runs[0];
  if (first === undefined || first.problem !== lawCase.problem) return null;
  const isOfDout = isGradientRun(first) && first.dout === lawCase.dout;
  return { ...first.outputs, ...(isOfDout ? { ...first.tensors, ...first.shared } : {}) };
}

/** Saves a case; on failure the reason goes to stderr, since the results are worth more. */
export async function trySaving(save: () => Promise<void>): Promise<boolean> {
  try {
    await save();
    return true;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    process.stderr.write(`flashproof: not saved: ${error.message}\n`);
    return false;
  }
}

/** Saves the problem of every violated property, as <property>-<seed>-<round>.safetensors. */
export async function saveFailures(
  results: readonly Pick<LawResult, 'id' | 'failure'>[],
  seed: number,
  options: CheckCommandOptions,
): Promise<ReadonlyMap<LawId, SavedViolation>> {
  const saved = new Map<LawId, SavedViolation>();
  for (const { id, failure } of results) {
    if (failure === null) continue;
    const path = join(options.saveDir, `${id}-${seed}-${failure.round}.safetensors`);
    const done = await trySaving(() =>
      saveCase(path, {
        lawCase: failure.lawCase,
        property: id,
        regime: failure.regime,
        seed,
        kernel: quoteShellCommand(kernelWords(options)),
        version: toolVersion(),
        outputs: ownOutputs(failure),
      }),
    );
    saved.set(id, {
      values: valueLines(failure.lawCase),
      saved: done ? path : null,
      replay: done ? replayWords(options, path) : null,
    });
  }
  return saved;
}

/**
 * Saves the problem that got no answer from a kernel; any law asks for an answer, so the simplest
 * replays it.
 * @returns the failure in words, with the file
 */
export async function saveExecutionFailure(
  { reason, problem }: ExecutionFailure,
  seed: number,
  options: CheckCommandOptions,
): Promise<string> {
  const path = join(options.saveDir, `execution-${seed}.safetensors`);
  const done = await trySaving(() =>
    saveCase(path, {
      lawCase: { problem, choice: 0 },
      property: 'within-bound',
      regime: 'none',
      seed,
      kernel: quoteShellCommand(kernelWords(options)),
      version: toolVersion(),
      outputs: null,
    }),
  );
  return done ? `${reason}; the problem is saved as ${path}` : reason;
}

/** The options that select the kernel. */
const kernelKeys = [
  ...([
    'contract',
    'kernel',
    'exec',
    'launch',
    'as',
    'premise',
    'strictPremises',
    'set',
    'variant',
  ] as const),
];

/** The options for its promises and its time limit. */
const promiseKeys = [
  'timeout',
  ...(Object.keys(promiseOptions) as (keyof PromiseOptions)[]),
] as const;

/** The words of the command line that name the kernel. */
export function kernelWords(options: CheckCommandOptions): string[] {
  return commandWords(checkOptions, options, kernelKeys);
}

/** The words of the command that tries a saved problem again, on the same kernel and promises. */
export function replayWords(options: CheckCommandOptions, path: string): string[] {
  const promised = commandWords(checkOptions, options, promiseKeys);
  return ['flashproof', 'check', ...kernelWords(options), ...promised, '--replay', path];
}
