import { kernelModels, type KernelModel } from '../../kernels/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import { decodeToFloat64, encodeFromFloat64, formats, type FormatName } from '../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../problem/index.js';
import { RequestError } from '../request-error.js';

/** What was written to a file of some format: values on which comparisons bit for bit are made. */
interface UnknownTensor {
  readonly format: FormatName;
  readonly values: Float64Array;
  /** The oracle rounded to the format. */
  readonly correct: Float64Array;
}

/** An output of unknown origin with all that it is compared by. */
export interface UnknownOutput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly out: UnknownTensor;
  /** Null where none was given. */
  readonly lse: UnknownTensor | null;
  /** Where the models of candidates are looked up. */
  readonly models: readonly KernelModel[];
}

/** Values rounded to a format, to nearest even, in fp64. */
export function roundedTo(format: FormatName, values: Float64Array): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format]);
}

function readTensor({ format, data }: Tensor, exact: Float64Array): UnknownTensor {
  const values = decodeToFloat64(data, formats[format]);
  return { format, values, correct: roundedTo(format, exact) };
}

function count(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

/**
 * Takes an unknown output, and its LSE if there is one, along with the exact attention.
 * @throws RequestError when one of them does not have the problem's shape
 */
export function readUnknown(
  problem: Problem,
  reference: AttentionReference,
  out: Tensor,
  lse: Tensor | undefined,
  models: readonly KernelModel[] = kernelModels,
): UnknownOutput {
  return {
    problem,
    reference,
    out: readTensor(out, reference.quantities.out.values),
    lse: lse === undefined ? null : readTensor(lse, reference.quantities.lse.values),
    models,
  };
}

/**
 * Checks the shapes of an unknown output, and of its LSE, which may have further dimensions of 1 behind.
 * @throws RequestError when one of them is not that of the problem's results
 */
export function checkShapes(problem: Problem, out: Tensor, lse: Tensor | undefined): void {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const expected = [batch, heads, queries, vDim];
  if (count(out.shape) !== count(expected) || out.shape.at(-1) !== vDim)
    throw new RequestError(
      `the output has shape [${out.shape.join(', ')}] but the problem makes [${expected.join(', ')}]; give the output of this problem`,
    );
  if (lse === undefined) return;
  const rows = expected.slice(0, -1);
  const dims = [...lse.shape];
  while (dims.length > 1 && dims.at(-1) === 1 && queries !== 1) dims.pop();
  if (count(dims) !== count(rows) || (queries !== 1 && dims.at(-1) !== queries))
    throw new RequestError(
      `the LSE has shape [${lse.shape.join(', ')}] but the problem makes [${rows.join(', ')}]; give the LSE of this problem`,
    );
}
