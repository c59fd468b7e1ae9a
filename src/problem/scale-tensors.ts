import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type ScaleFactors,
  type Tensor,
} from '../formats/index.js';
import { scatterRows } from './gather-rows.js';
import type { Sequence } from './features.js';
import type { Problem } from './problem.js';
import type { StoredRows } from './stored.js';
import {
  rank4,
  scaledTensors,
  scaleNames,
  scaleTarget,
  scaleTensorName,
  type ScaledTensor,
  type ScaleTarget,
} from './scale-target.js';

/** Factors of sequences, taken from their rows; null if rows of one sequence differ. */
function bySequence(
  { values, shape }: ScaleFactors,
  sequences: readonly Sequence[],
  rowsOf: ScaleTarget['rowsOf'],
): Pick<ScaleFactors, 'values' | 'shape'> | null {
  const [heads, rows] = shape.slice(-3);
  const found = new Float64Array(sequences.length * heads).fill(1);
  for (const [index, sequence] of sequences.entries()) {
    const [first, count] = rowsOf(sequence);
    for (let head = 0; head < heads; head++) {
      const own = values.subarray(head * rows + first, head * rows + first + count);
      if (own.some((x) => x !== own[0])) return null;
      if (count > 0) found[index * heads + head] = own[0];
    }
  }
  return { values: found, shape: [sequences.length, heads] };
}

/** The factors in a problem file: tensors by name, and metadata. */
export interface NotedScales {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * The factors of a problem's tensors in the form of a problem file, from which `attachScales` restores them. Those
 * that lie as elements do have along the rows of packed sequences one factor, or as many as there are rows.
 */
export function scaleTensors(problem: Problem): NotedScales {
  const tensors: Record<string, Tensor> = {};
  const metadata: Record<string, string> = {};
  for (const name of scaledTensors)
    for (const factors of problem[name].scales?.factors ?? []) {
      const { name: kind, format } = factors;
      const label = scaleTensorName(name, kind);
      const [batch, heads, rows, columns] = rank4(factors);
      const { sequences } = problem;
      let { values } = factors;
      let shape: readonly number[] = [batch, heads, rows, columns];
      if (kind !== 'block_scale' && columns === 1) {
        shape = [batch, heads];
        if (rows > 1 && sequences === undefined) {
          shape = [batch, heads, rows];
          metadata[`${label}_block`] = String(factors.blocks.at(-2));
        } else if (rows > 1 && sequences !== undefined) {
          const found = bySequence(factors, sequences, scaleTarget(problem, name, kind).rowsOf);
          if (found !== null) ({ values, shape } = found);
          else shape = [batch, heads, rows, columns];
        }
      }
      tensors[label] = { format, shape, data: encodeFromFloat64(formats[format], values) };
    }
  return { tensors, metadata };
}

/** The factors of each row, if rows of packed sequences share them. */
function ofEveryRow(tensor: Tensor, rows: number): Tensor {
  const [batch, heads, known, columns] = rank4(tensor);
  if (known === rows) return tensor;
  const source = decodeToFloat64(tensor.data, formats[tensor.format]);
  const values = Float64Array.from({ length: heads * rows * columns }, (_, i) => {
    const head = Math.floor(i / (rows * columns));
    return source[head * columns + (i % columns)];
  });
  const data = encodeFromFloat64(formats[tensor.format], values);
  return { format: tensor.format, shape: [batch, heads, rows, columns], data };
}

/** The factors of packed sequences in a stored form; unused slots have the factor 1. */
export function storedScales(
  problem: Problem,
  rows: Readonly<Record<ScaledTensor, StoredRows>>,
): Readonly<Record<string, Tensor>> {
  const { tensors } = scaleTensors(problem);
  return Object.fromEntries(
    scaledTensors.flatMap((name) =>
      scaleNames.flatMap((kind) => {
        const label = scaleTensorName(name, kind);
        if (!Object.hasOwn(tensors, label)) return [];
        const tensor = tensors[label];
        if (tensor.shape.length < 3) return [[label, tensor] as const];
        const whole = ofEveryRow(tensor, rows[name].slots.length);
        const one = encodeFromFloat64(formats[tensor.format], Float64Array.of(1));
        return [[label, scatterRows(whole, rows[name], one)] as const];
      }),
    ),
  );
}
