import { formats, type FormatName } from '../../formats/index.js';
import { problemNote, type TensorFile } from '../../io/tensors/index.js';
import type { Problem, Tensor } from '../../problem/index.js';
import { withNote, type JudgedReport } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import type { AuditSettings } from './audit-settings.js';

/**
 * Refuses a tensor that whoever wrote it made shorter than Q, of more bits than 8: by a format of its own choice a kernel would
 * choose how coarse it is judged.
 */
function rejectShorter(name: string, format: FormatName, { q }: Problem): void {
  if (formats[format].precision >= formats[q.format].precision) return;
  throw new RequestError(
    `${name} is ${format}, which is shorter than ${q.format}, the format of Q, and makes bounds wider; write it in ${q.format}, or leave out --strict-premises`,
  );
}

/**
 * Applies --strict-premises, if it is given, to the outputs of a kernel.
 * @throws RequestError for an output or a gradient in a shorter format than Q's
 */
export function rejectShorterFormats(
  problem: Problem,
  given: Readonly<Record<string, Tensor | null | undefined>>,
  { strictPremises }: AuditSettings,
): void {
  if (strictPremises !== true) return;
  for (const [name, tensor] of Object.entries(given))
    if (tensor && name !== 'lse') rejectShorter(name, tensor.format, problem);
}

/** A report that says so if --strict-premises sets the file's notes of premises aside. */
export function withStrictNote(
  report: JudgedReport,
  file: TensorFile,
  { as, premise, kernel, strictPremises }: AuditSettings,
): JudgedReport {
  const isSaid = [as, premise, kernel].some((option) => option !== undefined);
  if (strictPremises !== true || isSaid || problemNote(file, 'premises') === undefined)
    return report;
  return withNote(
    report,
    "the file's metadata names premises, which --strict-premises leaves aside",
  );
}
