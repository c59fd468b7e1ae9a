import {
  describeProblem,
  laws,
  resolvePromises,
  runCase,
  type KernelPromises,
} from '../../../properties/index.js';
import { RequestError } from '../../request-error.js';
import type { CheckCommandOptions } from './options.js';
import { readCase } from './case-file.js';
import type { KernelUnderTest } from '../../jobs/index.js';

/**
 * Tries the property of a saved case on it once more, and says in some lines what came of it.
 * @returns whether it holds
 * @throws RequestError for a file of no case, a property that is not promised, and a problem that the
 * kernel does not take or the property says nothing of
 */
export async function runReplay(
  path: string,
  { kernel }: KernelUnderTest,
  promises: KernelPromises,
  { quiet = false }: Pick<CheckCommandOptions, 'quiet'>,
): Promise<boolean> {
  const { lawCase, property } = await readCase(path);
  const result = await runCase(property, lawCase, kernel, resolvePromises(promises), {
    diagnose: false,
  });
  if (result.status === 'unsupported' || result.status === 'inapplicable')
    throw new RequestError(`${path}: property ${property} cannot be tried: ${result.reason}`);
  const holds = result.status === 'held';
  const sentence = holds
    ? `PASS: ${property} holds.`
    : `FAIL: ${property} is violated: ${result.statement}.`;
  const { statement, reason } = laws[property];
  const more = ['', `Law: ${statement}. ${reason}`, '', describeProblem(lawCase.problem)];
  process.stdout.write(`${[sentence, ...(quiet ? [] : more)].join('\n')}\n`);
  return holds;
}
