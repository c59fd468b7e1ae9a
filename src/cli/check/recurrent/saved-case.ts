import { dirname } from 'node:path';
import {
  describeRecurrence,
  recurrentLaw,
  recurrentLawIds,
  resolveRecurrentPromises,
  runRecurrentCase,
  type RecurrentCase,
  type RecurrentLawId,
  type RecurrentPromises,
} from '../../../../properties/index.js';
import {
  asFamilyStores,
  makeFolder,
  openTensorFile,
  printable,
  quoted,
  readRecurrence,
  recurrentFamily,
  recurrentTensor,
  writeRecurrence,
  type TensorFile,
} from '../../../io/index.js';
import type { RecurrenceUnderTest } from '../../../jobs/index.js';
import type { RecurrentFamily } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import type { CheckCommandOptions } from '../options.js';

/** A case of a property of linear attention that a kernel violates, and its origin. */
export interface SavedRecurrence {
  readonly lawCase: RecurrentCase;
  readonly property: RecurrentLawId;
  readonly regime: string;
  readonly seed: number;
  /** The options that name the kernel, as a shell reads them. */
  readonly kernel: string;
  /** flashproof's version. */
  readonly version: string;
}

/**
 * Writes a case as a file of its problem, with the case in the metadata. A missing folder is created.
 * @throws RequestError when it cannot be written
 */
export async function saveRecurrence(path: string, saved: SavedRecurrence): Promise<void> {
  const { lawCase, property, regime, seed, kernel, version } = saved;
  await makeFolder(dirname(path), '--save-dir');
  await writeRecurrence(path, lawCase.posed, {
    property,
    choice: String(lawCase.choice),
    regime,
    seed: String(seed),
    kernel,
    flashproof: version,
  });
}

/** The gradients that a file has for a problem to begin with; none where it has no dout. */
async function readGradients(
  file: TensorFile,
  family: RecurrentFamily,
): Promise<RecurrentCase['posed']['gradients']> {
  const [dout, last] = ['dout', 'dfinal_state'].map((name) =>
    recurrentTensor(file, name, { family }),
  );
  if (dout === null) return undefined;
  return {
    dout: await file.read(dout),
    ...(last !== null && {
      dfinalState: asFamilyStores(await file.read(last), 'states', family),
    }),
  };
}

/** A case read back. @throws RequestError for a file that cannot be read or that notes no known case */
async function readCase(
  path: string,
): Promise<{ readonly lawCase: RecurrentCase; readonly property: RecurrentLawId }> {
  const file = await openTensorFile(path);
  try {
    const { property: name = '', choice: form = '0' } = file.metadata;
    const family = recurrentFamily(file, {});
    const property = recurrentLawIds.find((id) => id === name);
    if (family === null || property === undefined)
      throw new RequestError(
        `${printable(path)}: notes property ${quoted(name)} and family ${quoted(family ?? '')}; give a file that flashproof check --contract recurrent saved`,
      );
    const choice = Number(form);
    const { choices } = recurrentLaw(property);
    if (!/^\d+$/.test(form) || choice >= choices)
      throw new RequestError(
        `${printable(path)}: metadata choice is ${quoted(form)}; property ${property} has forms 0 to ${choices - 1}`,
      );
    const { problem } = await readRecurrence(file, family, {});
    const gradients = await readGradients(file, family);
    return { lawCase: { posed: { problem, gradients }, choice }, property };
  } finally {
    await file.close();
  }
}

/**
 * Tries the property of a saved case on it once more, and describes the result in some lines.
 * @returns whether it holds
 * @throws RequestError for a file of no case, a property that is not promised, and a problem that the
 * kernel does not take or the property says nothing of
 */
export async function replayRecurrence(
  path: string,
  { kernel }: RecurrenceUnderTest,
  promises: RecurrentPromises,
  { quiet = false }: Pick<CheckCommandOptions, 'quiet'>,
): Promise<boolean> {
  const { lawCase, property } = await readCase(path);
  const resolved = resolveRecurrentPromises(promises);
  const result = await runRecurrentCase(property, lawCase, kernel, resolved);
  if (result.status !== 'held' && result.status !== 'violated')
    throw new RequestError(`${path}: property ${property} cannot be tried: ${result.reason}`);
  const sentence =
    result.status === 'held'
      ? `PASS: ${property} holds.`
      : `FAIL: ${property} is violated: ${result.statement}.`;
  const { statement, reason } = recurrentLaw(property);
  const more = ['', `Law: ${statement}. ${reason}`, '', describeRecurrence(lawCase.posed)];
  process.stdout.write(`${[sentence, ...(quiet ? [] : more)].join('\n')}\n`);
  return result.status === 'held';
}
