import {
  declaredIn,
  openTensorArgument,
  problemOutline,
  type ChosenTensor,
  type DeclaredFormats,
  type ProblemSettings,
  type TensorFile,
} from '../../io/index.js';
import {
  declaredArithmetic,
  sampleFile,
  type ArithmeticRequest,
  type DeclaredArithmetic,
  type RowsRequest,
  type SampledFile,
} from '../../jobs/index.js';
import { defaultRows, type SampledRows } from '../../audit/index.js';
import {
  problemShape,
  quantities,
  type Problem,
  type WrittenOutputs,
} from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';
import { outputArguments } from './judged-outputs.js';
import type { AuditCommandOptions } from './options.js';

/** The settings of an audit that select the rows to read, and their sources. */
interface SampleSettings {
  readonly options: AuditCommandOptions;
  readonly problem: ProblemSettings;
  readonly formats: DeclaredFormats;
  readonly rows: RowsRequest;
}

/** Multiply-adds of a sample above which its file is not read whole. */
const fewestMultiplyAdds = 2 ** 28;

/** A sample of a file's problem; its keys and values stay in the file. */
export interface OpenSample {
  readonly outline: Problem;
  readonly file: SampledFile;
  readonly sources: WrittenOutputs<TensorSource>;
  readonly declared: DeclaredArithmetic;
}

/** Whether the request needs more than the sampled rows, or outputs that are not in files. */
function needsWhole(file: TensorFile, options: AuditCommandOptions): boolean {
  const { kernel, exec, launch, identify, compare, html, full, outPartial, lsePartial } = options;
  const others = [kernel, exec, launch, compare, html, outPartial, lsePartial];
  return (
    others.some((option) => option !== undefined) ||
    identify === true ||
    full === true ||
    ['out_partial', 'lse_partial'].some((name) => file.entries.has(name))
  );
}

/** Whether rows are judged together with others, so that parts of one head say too little. */
function sharesRows({ arithmetic, premises }: DeclaredArithmetic): boolean {
  const maximum = arithmetic?.maximum;
  return (
    premises.maximum === 'group' || (maximum?.kind === 'unknown' && maximum.shared === 'group')
  );
}

async function sourceOf({ file, name }: ChosenTensor): Promise<TensorSource> {
  const { format } = file.entries.get(name)!;
  return { path: file.path, tensor: name, sha256: await file.sha256(name), format: format! };
}

/** The sampled rows, and the sources of the outputs; null if the tensors have to be read in the usual way. */
async function readSample(
  file: TensorFile,
  outline: Problem,
  { options }: SampleSettings,
  request: { readonly rows: number; readonly seed: number },
): Promise<{
  readonly sampled: SampledRows;
  readonly sources: WrittenOutputs<TensorSource>;
} | null> {
  const named = outputArguments(options);
  const isOwn = named.out === undefined;
  const opened: ChosenTensor[] = [];
  const choose = async (quantity: string): Promise<ChosenTensor | null> => {
    const argument =
      named[quantity] ?? (isOwn && file.entries.has(quantity) ? `:${quantity}` : null);
    if (argument === null) return null;
    const chosen = await openTensorArgument(argument, file, quantity);
    opened.push(chosen);
    return chosen;
  };
  try {
    const out = await choose(quantities[0].name);
    const lse = await choose(quantities[1].name);
    if (out === null) return null;
    // What is compressed is not read in pieces; what is no tensor of numbers is refused by who reads it.
    const isReadable = opened.every(
      (one) =>
        (one.file.entries.get(one.name)?.format ?? null) !== null &&
        !one.file.path.endsWith('.npz'),
    );
    if (!isReadable) return null;
    const sampled = await sampleFile(file, outline, { out, lse }, request);
    if (sampled === null) return null;
    const sources = { out: await sourceOf(out), lse: lse === null ? null : await sourceOf(lse) };
    return { sampled, sources };
  } finally {
    for (const { close } of opened) await close();
  }
}

/**
 * A sample of the rows of a long problem, reading no more of its file than these rows; null for problems that are read
 * whole: short ones, with features, scales or another layout, in compressed files, judged by more than their rows.
 * @throws RequestError as reading the whole does
 */
export async function openSample(
  file: TensorFile,
  settings: SampleSettings,
  arithmetic: ArithmeticRequest,
): Promise<OpenSample | null> {
  const { options, rows, formats } = settings;
  if (rows.count === 'all' || file.path.endsWith('.npz') || needsWhole(file, options)) return null;
  const outline = problemOutline(file, settings.problem);
  if (outline === null) return null;
  const shape = problemShape(outline);
  const count = rows.count ?? defaultRows(outline, shape);
  if (count === null || count * shape.keys * (shape.qkDim + shape.vDim) < fewestMultiplyAdds)
    return null;
  const declared = declaredArithmetic(outline, arithmetic);
  if (sharesRows(declared)) return null;
  const { seed = Math.floor(Math.random() * 2 ** 31) } = rows;
  const read = await readSample(file, outline, settings, { rows: count, seed });
  if (read === null) return null;
  const { sampled, sources } = read;
  const keys = { path: file.path, formats: declaredIn(file, formats) };
  return { outline, file: { sampled, keys }, sources, declared };
}
