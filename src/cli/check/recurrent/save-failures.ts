import { join } from 'node:path';
import {
  describeRecurrence,
  type PosedRecurrence,
  type RecurrentLawId,
  type RecurrentLawResult,
} from '../../../../properties/index.js';
import type { RecurrentExecutionFailure } from '../../../jobs/index.js';
import type { SavedViolation } from '../../../report/json/check/index.js';
import { quoteShellCommand } from '../../../report/layout/index.js';
import { toolVersion } from '../../tool-version.js';
import type { CheckCommandOptions } from '../options.js';
import { kernelWords, mostElements, replayWords, trySaving } from '../save-failures.js';
import { saveRecurrence } from './saved-case.js';

/** A line for each tensor; null where one is too long to be read. */
function valueLines(posed: PosedRecurrence): string[] | null {
  const { q, k, v, g, initialState } = posed.problem;
  const isLong = [q, k, v, g, initialState].some(
    (tensor) => tensor !== undefined && tensor.data.length > mostElements,
  );
  return isLong ? null : describeRecurrence(posed).split('\n').slice(1);
}

/** Saves the problem of every violated property, as <property>-<seed>-<round>.safetensors. */
export async function saveRecurrentFailures(
  results: readonly Pick<RecurrentLawResult, 'id' | 'failure'>[],
  seed: number,
  options: CheckCommandOptions,
): Promise<ReadonlyMap<RecurrentLawId, SavedViolation>> {
  const saved = new Map<RecurrentLawId, SavedViolation>();
  for (const { id, failure } of results) {
    if (failure === null) continue;
    const { lawCase, regime, round } = failure;
    const path = join(options.saveDir, `${id}-${seed}-${round}.safetensors`);
    const kernel = quoteShellCommand(kernelWords(options));
    const done = await trySaving(() =>
      saveRecurrence(path, { lawCase, property: id, regime, seed, kernel, version: toolVersion() }),
    );
    saved.set(id, {
      values: valueLines(lawCase.posed),
      saved: done ? path : null,
      replay: done ? replayWords(options, path) : null,
    });
  }
  return saved;
}

/**
 * Saves the problem that got no answer from a kernel; any law asks for an answer, so the simplest replays it.
 * @returns the failure in words, with the file
 */
export async function saveRecurrentExecutionFailure(
  { reason, posed }: RecurrentExecutionFailure,
  seed: number,
  options: CheckCommandOptions,
): Promise<string> {
  const path = join(options.saveDir, `execution-${seed}.safetensors`);
  const done = await trySaving(() =>
    saveRecurrence(path, {
      lawCase: { posed, choice: 0 },
      property: 'within-bound',
      regime: 'none',
      seed,
      kernel: quoteShellCommand(kernelWords(options)),
      version: toolVersion(),
    }),
  );
  return done ? `${reason}; the problem is saved as ${path}` : reason;
}
