import { whyUnjudged } from '../../../audit/index.js';
import { withoutIgnored, type ReadRecurrence, type TensorFile } from '../../../io/tensors/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentTensorName,
  type RecurrentGradientInputs,
  type RecurrentQuantityName,
  type RecurrentResults,
} from '../../../problem/index.js';
import type { NoOutput, TensorSource } from '../../../report/json/index.js';
import { listed } from '../../../words/index.js';
import type { AuditSettings } from '../audit-settings.js';
import type { ObtainedRecurrence, RecurrentSource } from '../kernel-source.js';
import { readKernelGradientInputs } from './read-results.js';

/** Results of a kernel that was run, with what its gradients began with, and a clause on each result that is not judged. */
export interface KernelResults extends Omit<ObtainedRecurrence, 'results' | 'sources'> {
  readonly results: RecurrentResults;
  readonly gradientInputs: RecurrentGradientInputs | undefined;
  readonly sources: Readonly<Record<string, TensorSource>>;
  readonly notes: readonly string[];
}

/** A kernel that gave nothing to judge, and the sources of what it was given. */
export interface KernelFailure {
  readonly failure: NoOutput;
  readonly sources: Readonly<Record<string, TensorSource>>;
}

/** The reason that a result is not judged, in a clause that begins with "since"; null where it is. */
function reasonOf(
  name: RecurrentQuantityName,
  isGiven: boolean,
  { problem, shape }: ReadRecurrence,
): string | null {
  const why = whyUnjudged(name, problem, shape);
  if (why !== null) return `since ${why.reason}`;
  return isGiven ? null : 'since the kernel gave none';
}

/** A clause on the results that are not judged for each reason that there is. */
function notesOn(
  wanted: readonly RecurrentQuantityName[],
  results: RecurrentResults,
  read: ReadRecurrence,
): readonly string[] {
  const byReason = new Map<string, string[]>();
  for (const name of wanted) {
    const reason = reasonOf(name, results[name] !== undefined, read);
    if (reason === null) continue;
    const own = recurrentTensorName(read.problem.family, name);
    byReason.set(reason, [...(byReason.get(reason) ?? []), own]);
  }
  return [...byReason].map(
    ([reason, names]) =>
      `${listed(names)} ${names.length === 1 ? 'is' : 'are'} not judged, ${reason}`,
  );
}

/**
 * Runs a kernel of linear attention: its output and its final state, and, where there is dO, its gradients.
 * @throws RequestError for a kernel that cannot be run, or not on this problem
 */
export async function runForResults(
  file: TensorFile,
  source: RecurrentSource,
  settings: AuditSettings,
  read: ReadRecurrence,
): Promise<KernelResults | KernelFailure> {
  const { problem, shape } = read;
  const { ignored } = settings.problem;
  const given = await readKernelGradientInputs(withoutIgnored(file, { ignored }), settings, read);
  const wanted = recurrentQuantityNames.filter(
    (name) =>
      recurrentQuantityShape(name, problem, shape) !== null &&
      (given.gradientInputs !== undefined || !recurrentQuantities[name].isGradient),
  );
  const isJudged = (name: RecurrentQuantityName) => whyUnjudged(name, problem, shape) === null;
  const asksGradients = wanted.some(
    (name) => recurrentQuantities[name].isGradient && isJudged(name),
  );
  const gradientInputs = asksGradients ? given.gradientInputs : undefined;
  const obtained = await source.run({ file, problem, gradientInputs });
  if ('failure' in obtained) return { failure: obtained.failure, sources: given.sources };
  const { results: all, sources } = obtained;
  const judged = wanted.filter((name) => all[name] !== undefined && isJudged(name));
  return {
    ...obtained,
    results: Object.fromEntries(judged.map((name) => [name, all[name]])),
    gradientInputs: judged.some((name) => recurrentQuantities[name].isGradient)
      ? gradientInputs
      : undefined,
    sources: {
      ...Object.fromEntries(judged.map((name) => [name, sources[name]])),
      ...given.sources,
    },
    notes: notesOn(wanted, all, read),
  };
}
