import { auditRecurrentApart, parseRecurrentDeclaration } from '../../../audit/index.js';
import {
  problemNote,
  printable,
  readRecurrence,
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
  createRecurrentReport,
  type RecurrentReport,
  type UnusedNames,
} from '../../../report/json/index.js';
import { RequestError } from '../../../request-error.js';
import { rejectShorterFormats, type AuditSettings } from '../audit-settings.js';
import type { AuditWork } from '../audit-work.js';
import { secondsSince } from '../document-head.js';
import { originOf } from '../open-problem.js';
import { share } from '../shared-values.js';
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

/**
 * Judges a file of linear attention.
 * @throws RequestError for a file that cannot be judged, and for options that are of softmax attention alone
 */
export async function auditRecurrence(
  work: AuditWork,
  family: RecurrentFamily,
): Promise<RecurrentReport> {
  const { file, settings, means, progress, start } = work;
  const [other] = settings.softmaxOptions;
  if (other !== undefined)
    throw new RequestError(
      `${printable(file.path)}: ${other} is of softmax attention, and this is ${family}; leave it out`,
    );
  const read = await readRecurrence(file, family, readingSettings(settings));
  const { results, gradientInputs, sources, withoutInputs } = await readResults(
    file,
    settings,
    read,
  );
  rejectShorterFormats(read.problem, results, settings);
  const { threads } = settings;
  const audit = await auditRecurrentApart(
    read.problem,
    { results, gradientInputs },
    { declared: declarationOf(file, settings), falseAlarmRate: settings.falseAlarmRate, progress },
    {
      start: (plan, parts) =>
        threads < 2
          ? null
          : means.startThreads(Math.min(threads, parts), 'measureRecurrence', {
              plan: share(plan),
            }),
    },
  );
  const origin = await originOf(work, { read: { tensors: read.names, notes: [] } }, sources);
  const notes = withoutInputs.map(
    (name) => `${recurrentTensorName(family, name)} is not judged, since there is no dout`,
  );
  return createRecurrentReport(
    read.problem,
    audit,
    {
      ...origin,
      unused: origin.unused ? unusedBeside(origin.unused, family) : null,
      seconds: secondsSince(start),
    },
    notes,
  );
}
