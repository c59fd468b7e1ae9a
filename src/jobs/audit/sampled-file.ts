import { chooseRows, defaultRows, sampledRowNumbers, type SampledRows } from '../../audit/index.js';
import { allocateStorage, formats, patternsOf, storageOf } from '../../formats/index.js';
import {
  declaredIn,
  openTensorArgument,
  problemOutline,
  type ChosenTensor,
  type DeclaredFormats,
  type TensorFile,
} from '../../io/tensors/index.js';
import {
  problemShape,
  quantities,
  type Problem,
  type Tensor,
  type WrittenOutputs,
} from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';
import type { AuditSettings } from './audit-settings.js';
import {
  declaredArithmetic,
  type ArithmeticRequest,
  type DeclaredArithmetic,
} from './declared-arithmetic.js';
import { namedOutputs } from './read-outputs.js';

/** The file that a problem's keys and values stay in. */
export interface KeysFile {
  readonly path: string;
  readonly formats: DeclaredFormats;
}

/** A sample of rows of a problem whose keys and values stay in their file. */
export interface SampledFile {
  readonly sampled: SampledRows;
  readonly keys: KeysFile;
}

/** A tensor of an open file. */
interface TensorPlace {
  readonly file: TensorFile;
  readonly name: string;
}

/** Some rows of a tensor, in a shape of their own. */
async function readRows(
  { file, name }: TensorPlace,
  rows: Float64Array,
  leading: readonly number[],
  dim: number | null,
): Promise<Tensor> {
  const entry = file.entries.get(name)!;
  const format = formats[entry.format!];
  const width = dim ?? 1;
  const data = allocateStorage(format, rows.length * width);
  const target = patternsOf(data, format);
  const words = (target.length / data.length) * width;
  for (const [to, row] of rows.entries())
    target.set(patternsOf(await file.readElements(name, row * width, width), format), to * words);
  return {
    format: format.name,
    shape: dim === null ? leading : [...leading, dim],
    data: storageOf(format, target),
  };
}

/**
 * A sample of the rows of a problem in a file: its rows of q, of the output and of the LSE are read, and nothing of
 * k and v.
 * @param outline the problem by `problemOutline`
 * @returns null where the sample would be all rows
 * @throws RequestError as `sampleRows`
 */
export async function sampleFile(
  file: TensorFile,
  outline: Problem,
  outputs: { readonly out: TensorPlace; readonly lse: TensorPlace | null },
  request: { readonly rows: number; readonly seed: number },
): Promise<SampledRows | null> {
  const shape = problemShape(outline);
  const sample = chooseRows(outline, shape, request);
  if (sample === null) return null;
  const { batch, heads, qkDim, vDim } = shape;
  const leading = [batch, heads, sample.rows / (batch * heads)];
  const [outQuantity, lseQuantity] = quantities;
  const shapeOf = ({ file: of, name }: TensorPlace) => of.entries.get(name)!.shape;
  const { out, lse } = outputs;
  const q = { file, name: 'q' };
  return {
    problem: {
      ...outline,
      q: await readRows(q, sampledRowNumbers(sample, shape), leading, qkDim),
      rows: sample.selection,
    },
    outputs: {
      out: await readRows(
        out,
        sampledRowNumbers(sample, shape, outQuantity, shapeOf(out)),
        leading,
        vDim,
      ),
      lse:
        lse === null
          ? null
          : await readRows(
              lse,
              sampledRowNumbers(sample, shape, lseQuantity, shapeOf(lse)),
              leading,
              null,
            ),
    },
    sample,
  };
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
function needsWhole(file: TensorFile, settings: AuditSettings): boolean {
  const { source, compare, plots, identify, full, outPartial, lsePartial } = settings;
  return (
    source !== null ||
    [compare, outPartial, lsePartial].some((option) => option !== undefined) ||
    [plots, identify, full].includes(true) ||
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
  settings: AuditSettings,
  request: { readonly rows: number; readonly seed: number },
): Promise<{
  readonly sampled: SampledRows;
  readonly sources: WrittenOutputs<TensorSource>;
} | null> {
  const named = namedOutputs(settings);
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
  settings: AuditSettings,
  arithmetic: ArithmeticRequest,
): Promise<OpenSample | null> {
  const { rows, formats } = settings;
  if (rows.count === 'all' || file.path.endsWith('.npz') || needsWhole(file, settings)) return null;
  const outline = problemOutline(file, settings.problem);
  if (outline === null) return null;
  const shape = problemShape(outline);
  const count = rows.count ?? defaultRows(outline, shape);
  if (count === null || count * shape.keys * (shape.qkDim + shape.vDim) < fewestMultiplyAdds)
    return null;
  const declared = declaredArithmetic(outline, arithmetic);
  if (sharesRows(declared)) return null;
  const read = await readSample(file, outline, settings, { rows: count, seed: rows.seed });
  if (read === null) return null;
  const { sampled, sources } = read;
  const keys = { path: file.path, formats: declaredIn(file, formats) };
  return { outline, file: { sampled, keys }, sources, declared };
}
