import { judgeSplits, sampledQuantity, type KernelOutputs } from '../../audit/index.js';
import { ownTensor, problemNote, type TensorFile } from '../../io/tensors/index.js';
import { problemShape, quantities, type Quantity, type Tensor } from '../../problem/index.js';
import { reportedSplits, withSplits, type JudgedReport } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import type { AuditResult } from './audit-kernel.js';
import type { AuditSettings } from './audit-settings.js';
import type { DeclaredArithmetic } from './declared-arithmetic.js';
import {
  canonicalOutput,
  naturalLse,
  readStoredArgument,
  type TensorReading,
} from './read-outputs.js';

const [outQuantity, lseQuantity] = quantities;

/** Partial results of a split problem, as they are read. */
export interface SplitResults {
  /** Results by split, in canonical shapes. */
  readonly parts: readonly KernelOutputs[];
  readonly boundaries: readonly number[] | undefined;
  readonly block: number | undefined;
}

/** The tensors of the splits of [splits, …]. */
function slices({ format, shape: [splits, ...shape], data }: Tensor): Tensor[] {
  const size = shape.reduce((product, one) => product * one, 1);
  return Array.from({ length: splits }, (_, split) => ({
    format,
    shape,
    data: data.subarray(split * size, (split + 1) * size),
  }));
}

/** Positions as text: "0,512,1024". */
function parseBoundaries(text: string, name: string): number[] {
  const positions = text
    .trim()
    .replace(/^\[(.*)\]$/, '$1')
    .split(',')
    .map((part) => (part.trim() === '' ? NaN : Number(part)));
  if (!positions.every((at) => Number.isSafeInteger(at) && at >= 0))
    throw new RequestError(
      `${name} is ${JSON.stringify(text)}; give positions of keys, as in 0,512,1024`,
    );
  return positions;
}

/** The text of an option, or else of the file's metadata, with its place for messages. */
function said(file: TensorFile, given: string | undefined, flag: string, key: string) {
  if (given !== undefined) return { text: given, where: flag };
  return problemNote(file, key);
}

/** The file that holds partial results. */
interface PartsFile {
  readonly file: TensorFile;
  readonly reading: TensorReading;
  /** Whether the judged outputs come from the file too, so that they were merged from its parts. */
  readonly isOwn: boolean;
}

async function readParts(
  argument: string | undefined,
  name: string,
  quantity: Quantity,
  { file, reading, isOwn }: PartsFile,
): Promise<Tensor[] | null> {
  const named = argument ?? (isOwn && file.entries.has(name) ? `:${name}` : null);
  if (named === null) return null;
  const { tensor } = await readStoredArgument(named, file, name);
  if (tensor.shape.length < 3)
    throw new RequestError(
      `${name} has shape [${tensor.shape.join(', ')}]; give [splits, …], as the output with the splits in front`,
    );
  if (tensor.shape[0] === 0)
    throw new RequestError(
      `${name} has shape [${tensor.shape.join(', ')}], which is no split; give one at least, or leave it out`,
    );
  return slices(tensor).map((slice) => canonicalOutput(slice, quantity, reading));
}

/**
 * The partial results that options name, or those with their names in the problem's file, if the outputs are in that
 * file too; null if there are none.
 * @throws RequestError for tensors that cannot be read or do not fit
 */
export async function readSplits(
  file: TensorFile,
  reading: TensorReading,
  settings: AuditSettings,
): Promise<SplitResults | null> {
  const { source, output } = settings;
  const isOwn =
    source === null && (output === undefined || ownTensor(output, file.beside, '') !== null);
  const from = { file, reading, isOwn };
  const out = await readParts(settings.outPartial, 'out_partial', outQuantity, from);
  const lse = await readParts(settings.lsePartial, 'lse_partial', lseQuantity, from);
  if (out === null) {
    if (lse === null) return null;
    throw new RequestError(
      `${file.path}: has lse_partial but no out_partial to judge; name it with --out-partial <file>[:tensor]`,
    );
  }
  if (lse !== null && lse.length !== out.length)
    throw new RequestError(
      `out_partial has ${out.length} splits and lse_partial ${lse.length}; make them equal`,
    );
  const boundaries = said(file, settings.splitBoundaries, '--split-boundaries', 'split_boundaries');
  const block = said(file, settings.splitBlock, '--split-block', 'split_block');
  return {
    parts: out.map((part, split) => ({
      out: part,
      lse: lse === null ? null : naturalLse(lse[split], settings.lseBase),
    })),
    boundaries: boundaries && parseBoundaries(boundaries.text, boundaries.where),
    block: block && parseWhole(block.text, block.where, 1),
  };
}

/** The sampled rows of a part. */
function sampledPart(
  { out, lse }: KernelOutputs,
  { problem, origin }: Pick<AuditResult, 'problem' | 'origin'>,
): KernelOutputs {
  const { sample } = origin;
  if (sample === null || sample === undefined) return { out, lse };
  const whole = { ...problemShape(problem), queries: sample.selection.of };
  return {
    out: sampledQuantity(outQuantity, out, whole, sample),
    lse: lse ? sampledQuantity(lseQuantity, lse, whole, sample) : null,
  };
}

/**
 * The report with the findings on the parts: by the declared arithmetic, and for a sample on the same rows of every
 * part.
 * @param declared the arithmetic that the outputs were judged by
 * @throws RequestError for boundaries and tensors that do not fit the problem
 */
export function judgeSplitResults(
  result: Pick<AuditResult, 'problem' | 'outputs' | 'report' | 'origin'>,
  splits: SplitResults | null,
  { arithmetic, premises }: DeclaredArithmetic,
  falseAlarmRate: number,
): JudgedReport {
  const { problem, outputs, report } = result;
  if (splits === null) return report;
  const { boundaries, block } = splits;
  const parts = splits.parts.map((part) => sampledPart(part, result));
  const judged = judgeSplits(
    { problem, parts, outputs, request: { boundaries, block } },
    { falseAlarmRate, premises, ...(arithmetic === null ? {} : { arithmetic }) },
  );
  return withSplits(report, reportedSplits(judged));
}
