import { outputGradient } from '../../audit/index.js';
import type { LaunchTensor, OutputFile } from '../../ptx/launch/index.js';
import { recurrentResults, templateQuantities } from './contract-names.js';
import { type GivenContract, openContract } from './open-contract.js';
import {
  chainOf,
  chainOutputs,
  type LaunchPaths,
  type LaunchTemplate,
  linkLaunches,
  type OpenedLaunch,
  openTemplate,
  openWithTensors,
} from './open-launch.js';
import { openOnProblem, takesTensor } from './tensors-beside.js';

/** The launches to open. */
export interface ChainRequest extends LaunchPaths {
  /** The files of the launches behind the first, in their order; default: those that `next` names. */
  readonly following?: readonly string[] | undefined;
  /** The file of a problem to open a template on; `tensors` is ignored then. */
  readonly problem?: string | undefined;
  /** The file that says what the tensors are, in place of the launches' own contract. */
  readonly contractFile?: string | undefined;
}

/** Launches, ready to run one after another: tensors of one name are one buffer. */
export interface OpenedChain {
  /** At least one. */
  readonly launches: readonly OpenedLaunch[];
  /**
   * The chain as one launch: the last, with the tensors as the first to name them finds them, with the contract of the last that has one,
   * and with the results of the chain for outputs. A launch by itself as it is.
   */
  readonly whole: OpenedLaunch;
}

/** Names that results have in contracts. */
const resultNames: readonly string[] = [
  ...new Set([...templateQuantities.map(({ name }) => name), ...recurrentResults]),
];

/** The tensors in which a chain leaves its results: by its problem, by its contract, or else those of the last launch. */
function resultsOf(
  launches: readonly OpenedLaunch[],
  contract: GivenContract['file'] | null,
  outputs: readonly OutputFile[],
): readonly string[] {
  const [last] = launches.slice(-1);
  if (contract === null)
    return last.posed?.outputs.map(({ name }) => name) ?? last.file.outputs.map(({ name }) => name);
  return outputs
    .map(({ name }) => name)
    .filter((name) => resultNames.some((one) => contract.views.get(one)?.tensor === name));
}

/**
 * Launches as a chain.
 *
 * @param launches at least one
 * @param given what the tensors are, in place of the launches' own contract; null for none
 */
export function chainLaunches(
  launches: readonly OpenedLaunch[],
  given: GivenContract | null = null,
): OpenedChain {
  const [last] = launches.slice(-1);
  if (launches.length === 1) return { launches, whole: last };
  const outputs = chainOutputs(linkLaunches(launches));
  const own = launches.map(({ file }) => file.contract).filter((one) => one !== null);
  const contract = own.at(-1) ?? null;
  const results = resultsOf(launches, given?.file ?? contract, outputs);
  const tensors = new Map<string, LaunchTensor>();
  for (const one of launches)
    for (const [name, tensor] of one.tensors) if (!tensors.has(name)) tensors.set(name, tensor);
  const buffers = launches.flatMap(({ file }) => file.buffers);
  return {
    launches,
    whole: {
      ...last,
      tensors,
      file: { ...last.file, outputs, buffers, contract },
      launch: {
        ...last.launch,
        outputs: results.map((name) => ({ name, as: null, format: null })),
      },
    },
  };
}

/** How many launches of a template run on a problem: where it has no dO, those before the first that takes it. */
export function countLaunches(template: LaunchTemplate, beside: readonly LaunchTensor[]): number {
  if (beside.some(({ name }) => name === outputGradient.name)) return Infinity;
  const first = chainOf(template).findIndex((one) => takesTensor(one, outputGradient.name));
  return first <= 0 ? Infinity : first;
}

/** The launches of a request, as templates. */
async function templatesOf({ following = [], ...first }: ChainRequest): Promise<LaunchTemplate> {
  const templates = [await openTemplate(first)];
  for (const path of following) templates.push(await openTemplate({ path }));
  return linkLaunches(templates);
}

/**
 * Reads the files that a request names: a launch, and those that follow it.
 *
 * @throws RequestError for files that cannot be read or do not fit
 */
export async function openChain(request: ChainRequest): Promise<OpenedChain> {
  const { problem, tensors, contractFile } = request;
  const template = await templatesOf(request);
  const given = contractFile === undefined ? null : await openContract(contractFile);
  if (problem !== undefined) {
    const countOf = (beside: readonly LaunchTensor[]) => countLaunches(template, beside);
    return chainLaunches(await openOnProblem(template, problem, countOf), given);
  }
  const launches: OpenedLaunch[] = [];
  const known = new Map<string, LaunchTensor>();
  for (const [i, one] of chainOf(template).entries()) {
    const opened = await openWithTensors(one, i === 0 ? tensors : undefined, known);
    for (const [name, tensor] of opened.tensors) if (!known.has(name)) known.set(name, tensor);
    launches.push(opened);
  }
  return chainLaunches(launches, given);
}
