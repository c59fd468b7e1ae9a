import { auditRecurrentApart, parseRecurrentDeclaration } from '../../../audit/index.js';
import {
  problemNote,
  printable,
  readRecurrence,
  type ReadRecurrence,
  type RecurrentSettings,
  type TensorFile,
} from '../../../io/tensors/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentTensorName,
  type RecurrentFamily,
} from '../../../problem/index.js';
import {
  createRecurrentFailureReport,
  createRecurrentReport,
  withMachineFindings,
  type Provenance,
  type RecurrentReport,
  type UnusedNames,
} from '../../../report/json/index.js';
import { RequestError } from '../../../request-error.js';
import { rejectShorterFormats, type AuditSettings } from '../audit-settings.js';
import type { AuditWork } from '../audit-work.js';
import { secondsSince } from '../document-head.js';
import { originOf } from '../open-problem.js';
import { share } from '../shared-values.js';
import { runForResults, type KernelFailure, type KernelResults } from './kernel-results.js';
import { readResults } from './read-results.js';

/** What is declared of the kernel: by options, else by the file's note of premises. */
function declarationOf(file: TensorFile, { as, premise, strictPremises }: AuditSettings) {
  if (as !== undefined || premise !== undefined)
    return {
      ...parseRecurrentDeclaration(as ?? '', '--as'),
      ...parseRecurrentDeclaration((premise ?? []).join(','), '--premise'),
    };
  const noted = strictPremises === true ? undefined : problemNote(file, 'premises');
  return noted === undefined ? {} : parseRecurrentDeclaration(noted.text, noted.where);
}

/** @throws RequestError for premises beside a model, which has an arithmetic of its own */
function rejectPremises({ kernel, premise }: AuditSettings): void {
  if (kernel !== undefined && premise !== undefined)
    throw new RequestError(
      `--premise changes what any kernel may do, and ${kernel} says all of itself; leave out one`,
    );
}

/** The settings of the reading of a recurrence. */
function readingSettings({ problem, recurrence, initialState }: AuditSettings): RecurrentSettings {
  const { scale, layout, ignored, inputs = {} } = problem;
  return { ...recurrence, scale, layout, ignored, cuSeqlens: inputs.cu_seqlens, initialState };
}

/** The contents of the file that nothing reads; results under prefixes are those of other kernels, and no inputs. */
function unusedBeside(
  { ofAttention, ofGradients, unknown }: UnusedNames,
  family: RecurrentFamily,
): UnusedNames {
  const nameOf = (name: string) => recurrentTensorName(family, name);
  const gradients = recurrentQuantityNames
    .filter((name) => recurrentQuantities[name].isGradient)
    .map(nameOf);
  const isResult = (name: string) =>
    recurrentQuantityNames.map(nameOf).some((one) => name === one || name.endsWith(`.${one}`));
  const own = unknown.filter((name) => gradients.some((one) => one === name));
  return {
    ofAttention,
    ofGradients: [...ofGradients.filter((name) => !name.includes('.')), ...own],
    unknown: unknown.filter((name) => !isResult(name)),
  };
}

/** Results to judge, of files or of a kernel that was run, and clauses on what is not judged. */
type GivenResults = Pick<KernelResults, 'results' | 'gradientInputs' | 'sources' | 'notes'> &
  Partial<Pick<KernelResults, 'declared' | 'unasked' | 'machine'>>;

/** The results of a kernel that is run, or else those in files. */
async function obtainResults(
  { file, settings }: AuditWork,
  read: ReadRecurrence,
): Promise<GivenResults | KernelFailure> {
  const { source } = settings;
  if (source !== null) return runForResults(file, source.recurrence, settings, read);
  const { withoutInputs, ...given } = await readResults(file, settings, read);
  const notes = withoutInputs.map(
    (name) =>
      `${recurrentTensorName(read.problem.family, name)} is not judged, since there is no dout`,
  );
  return { ...given, notes };
}

/** The origin of a problem and of its results, for the report. */
async function originOfRecurrence(
  work: AuditWork,
  { problem, names }: ReadRecurrence,
  { sources, unasked = [] }: Pick<GivenResults, 'sources' | 'unasked'>,
): Promise<Provenance> {
  const { file, settings, start } = work;
  const recurrence = settings.source?.recurrence ?? null;
  const taken = recurrence === null ? [] : await recurrence.takes();
  const origin = await originOf(
    work,
    { read: { tensors: [...names, ...taken], notes: [] }, unasked },
    sources,
  );
  return {
    ...origin,
    command: recurrence?.command(file.path) ?? null,
    unused: origin.unused ? unusedBeside(origin.unused, problem.family) : null,
    seconds: secondsSince(start),
  };
}

/**
 * Judges a file of linear attention.
 * @throws RequestError for a file that cannot be judged, and for options that are of softmax attention alone
 */
export async function auditRecurrence(
  work: AuditWork,
  family: RecurrentFamily,
): Promise<RecurrentReport> {
  const { file, settings, means, progress } = work;
  const [other] = settings.softmaxOptions;
  if (other !== undefined)
    throw new RequestError(
      `${printable(file.path)}: ${other} is of softmax attention, and this is ${family}; leave it out`,
    );
  rejectPremises(settings);
  const read = await readRecurrence(file, family, readingSettings(settings));
  const { problem, shape } = read;
  const given = await obtainResults(work, read);
  if ('failure' in given)
    return createRecurrentFailureReport(
      problem,
      shape,
      given.failure,
      await originOfRecurrence(work, read, given),
    );
  const { results, gradientInputs, notes, machine } = given;
  rejectShorterFormats(problem, results, settings);
  const { threads, falseAlarmRate } = settings;
  const { count, seed } = settings.rows;
  const rows = typeof count === 'number' ? { rows: count, seed } : undefined;
  const audit = await auditRecurrentApart(
    problem,
    { results, gradientInputs },
    { declared: given.declared ?? declarationOf(file, settings), falseAlarmRate, rows, progress },
    {
      start: (plan, parts) =>
        threads < 2
          ? null
          : means.startThreads(Math.min(threads, parts), 'measureRecurrence', {
              plan: share(plan),
            }),
    },
  );
  const provenance = await originOfRecurrence(work, read, given);
  const report = createRecurrentReport(problem, audit, provenance, notes);
  return machine === undefined ? report : withMachineFindings(report, machine);
}
