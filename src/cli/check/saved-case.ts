import { dirname } from 'node:path';
import {
  makeFolder,
  openTensorFile,
  printable,
  quoted,
  readProblem,
  writeProblem,
} from '../../io/index.js';
import {
  describeCase,
  type KernelPromises,
  type Law,
  type LawCase,
  type LawId,
  lawIds,
  laws,
  resolvePromises,
  runCase,
} from '../../../properties/index.js';
import {
  gradientQuantities,
  outputGradient,
  sharedQuantities,
  type KernelOutputs,
} from '../../audit/index.js';
import {
  gatherOutput,
  poseOutput,
  quantities,
  type Problem,
  type Tensor,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import type { CheckCommandOptions } from './options.js';
import type { KernelUnderTest } from '../../jobs/index.js';
import { choiceClause } from '../options/parse-names.js';
import { propertyLists } from './promise-texts.js';

/** A case of a property that a kernel violates, and its origin. */
export interface SavedCase {
  readonly lawCase: LawCase;
  readonly property: LawId;
  readonly regime: string;
  readonly seed: number;
  /** The options that name the kernel, as a shell reads them. */
  readonly kernel: string;
  /** flashproof's version. */
  readonly version: string;
  /** The kernel's outputs for the very problem; null when it did not run on it. */
  readonly outputs: KernelOutputs | null;
}

/** The tensors that a kernel wrote, by name, with the problem's layout. */
function givenTensors(
  problem: Problem,
  outputs: KernelOutputs | null,
): Readonly<Record<string, Tensor>> {
  const tensors: Readonly<Partial<Record<string, Tensor | null>>> = { ...outputs };
  const shared = sharedQuantities.flatMap(({ name }) => {
    const tensor = tensors[name];
    return tensor ? [[name, tensor] as const] : [];
  });
  const posed = Object.fromEntries(
    [...quantities, ...gradientQuantities].flatMap((quantity) => {
      const tensor = tensors[quantity.name];
      return tensor ? [[quantity.name, poseOutput(problem, quantity, tensor)]] : [];
    }),
  );
  return { ...posed, ...Object.fromEntries(shared) };
}

/**
 * Writes a case as a problem file that `flashproof audit` reads too: the problem's tensors and the
 * kernel's outputs, with the problem's settings and the case in the metadata. A missing folder is
 * created.
 * @throws RequestError when it cannot be written
 */
export async function saveCase(path: string, saved: SavedCase): Promise<void> {
  const { lawCase, property, regime, seed, kernel, version, outputs } = saved;
  const { problem } = lawCase;
  await makeFolder(dirname(path), '--save-dir');
  const { dout } = lawCase;
  await writeProblem(path, problem, {
    tensors: {
      ...(dout === undefined ? {} : { dout: poseOutput(problem, outputGradient, dout) }),
      ...givenTensors(problem, outputs),
    },
    metadata: {
      property,
      choice: String(lawCase.choice),
      regime,
      seed: String(seed),
      kernel,
      flashproof: version,
    },
  });
}

/** A case read back. */
interface ReplayedCase {
  readonly lawCase: LawCase;
  readonly property: LawId;
}

/**
 * Reads a case that `saveCase` wrote.
 * @throws RequestError for a file that cannot be read or that notes no known case
 */
export async function readCase(path: string): Promise<ReplayedCase> {
  const file = await openTensorFile(path);
  try {
    const { property: name, choice: form = '0' } = file.metadata;
    if (name === undefined)
      throw new RequestError(
        `${printable(path)}: notes no property to try; give a file that flashproof check saved, or judge it with flashproof audit`,
      );
    const property = lawIds.find((id) => id === name);
    if (property === undefined)
      throw new RequestError(
        `${printable(path)}: metadata property is ${quoted(name)}, which this version has not${choiceClause(name, lawIds, propertyLists.attention)}`,
      );
    const choice = Number(form);
    const { choices } = laws[property];
    if (!/^\d+$/.test(form) || choice >= choices)
      throw new RequestError(
        `${printable(path)}: metadata choice is ${quoted(form)}; property ${property} has forms 0 to ${choices - 1}`,
      );
    const problem = await readProblem(file, { keepsPosed: true });
    const law: Law = laws[property];
    if (law.ofGradients !== true) return { lawCase: { problem, choice }, property };
    if (!file.entries.has('dout'))
      throw new RequestError(
        `${printable(path)}: property ${property} is of gradients, and the file holds no dout; give the gradient of the output`,
      );
    const dout = gatherOutput(problem, outputGradient, await file.read('dout'));
    return { lawCase: { problem, dout, choice }, property };
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
  const more = ['', `Law: ${statement}. ${reason}`, '', describeCase(lawCase)];
  process.stdout.write(`${[sentence, ...(quiet ? [] : more)].join('\n')}\n`);
  return holds;
}
