import { chooseRows, sampledRowNumbers, type SampledRows } from '../../audit/index.js';
import { allocateStorage, formats, patternsOf, storageOf } from '../../formats/index.js';
import type { DeclaredFormats, TensorFile } from '../../io/tensors/index.js';
import { quantities, problemShape, type Problem, type Tensor } from '../../problem/index.js';

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
export interface TensorPlace {
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
