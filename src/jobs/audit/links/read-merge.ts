import { auditMerge, type MergeShape } from '../../../audit/index.js';
import { decodeTensor } from '../../../formats/index.js';
import { quoted, type LinkFile } from '../../../io/tensors/index.js';
import type { Tensor } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import type { LinkReader } from './link-reader.js';

const names = {
  tensors: ['out_partial', 'lse_partial', 'out', 'lse', 'output_scale'],
  notes: ['lse_base', 'partial_lse_base', 'layout'],
} as const;

/** The factor that makes a natural logarithm of one in a base. @throws RequestError for another base */
function baseFactor(text: string, where: string): number {
  const factor = new Map([
    ['e', 1],
    ['2', Math.LN2],
  ]).get(text.trim().toLowerCase());
  if (factor === undefined) throw new RequestError(`${where} is ${quoted(text)}; give e or 2`);
  return factor;
}

/** The orders of a tensor's axes: heads before queries, or after them. */
function parseOrder(text: string, where: string): 'bhsd' | 'bshd' {
  const word = text.trim().toLowerCase();
  if (word !== 'bhsd' && word !== 'bshd')
    throw new RequestError(`${where} is ${quoted(text)}; give bhsd or bshd`);
  return word;
}

/** Numbers in fp64 as [outer…, heads, queries, inner], of a tensor that may have them the other way. */
function headsFirst(
  values: Float64Array,
  { heads, queries }: MergeShape,
  inner: number,
  order: 'bhsd' | 'bshd',
): Float64Array {
  if (order === 'bhsd') return values;
  return values.map((_, i) => {
    const [column, row] = [i % inner, Math.floor(i / inner)];
    const [query, head] = [row % queries, Math.floor(row / queries) % heads];
    const outer = Math.floor(row / (queries * heads));
    return values[((outer * queries + query) * heads + head) * inner + column];
  });
}

/** The sizes of O in parts: [parts, batch, heads, queries, dim], the batch left out for one. */
function shapeOf(file: LinkFile, { shape }: Tensor, order: 'bhsd' | 'bshd'): MergeShape {
  if (shape.length !== 4 && shape.length !== 5)
    return file.refuse(
      `tensor "out_partial" has shape [${shape.join(', ')}]; give it as [parts, batch, heads, queries, dim], or without the batch`,
    );
  const [batch, a, b, dim] = shape.length === 4 ? [1, ...shape.slice(1)] : shape.slice(1);
  const [heads, queries] = order === 'bhsd' ? [a, b] : [b, a];
  return { batch, heads, queries, dim };
}

/** The contract of a merge as files pose it: `out_partial` and `lse_partial`, and of the kernel `out` and `lse`. */
export const mergeLink: LinkReader = {
  names,
  judge: async (file) => {
    if (file.has('output_scale'))
      file.refuse(
        'has output_scale: a merged O that is divided by a factor is not judged; give the O of a merge without one',
      );
    const partial = await file.numbers('out_partial');
    const partialLse = await file.numbers('lse_partial');
    const order = file.note('layout', parseOrder) ?? 'bhsd';
    const shape = shapeOf(file, partial, order);
    const { batch, heads, queries, dim } = shape;
    const [splits] = partial.shape;
    const rows = batch * heads * queries;
    const expect = (name: string, { data, shape: own }: Tensor, length: number) => {
      if (data.length !== length)
        file.refuse(
          `tensor ${quoted(name)} has shape [${own.join(', ')}], which is ${data.length} elements, and ${length} fit the parts of O; make them fit`,
        );
    };
    expect('lse_partial', partialLse, splits * rows);
    if (splits === 0 || rows === 0) file.refuse('has no part or no row to merge');
    const bases = {
      merged: file.note('lse_base', baseFactor) ?? 1,
      partial: file.note('partial_lse_base', baseFactor) ?? file.note('lse_base', baseFactor) ?? 1,
    };
    const read = async (name: 'out' | 'lse', inner: number) => {
      if (!file.has(name)) return null;
      const tensor = await file.numbers(name);
      expect(name, tensor, rows * inner);
      return {
        format: tensor.format,
        values: headsFirst(decodeTensor(tensor), shape, inner, order),
      };
    };
    const lse = await read('lse', 1);
    // Half an ulp of a base-2 logarithm is more than one of the natural logarithm that it is judged as.
    if (lse !== null && bases.merged !== 1 && lse.format !== 'fp32' && lse.format !== 'fp64')
      file.refuse(`lse is ${lse.format} and of base 2; give it in fp32`);
    return auditMerge({
      shape,
      parts: {
        splits,
        rows,
        dim,
        layout: { heads, queries },
        out: headsFirst(decodeTensor(partial), shape, dim, order),
        lse: headsFirst(decodeTensor(partialLse), shape, 1, order).map((x) => x * bases.partial),
      },
      out: await read('out', dim),
      ofBase2: [
        ...(bases.partial === 1 ? [] : ['the parts']),
        ...(bases.merged === 1 ? [] : ['the merge']),
      ],
      lse: lse && { ...lse, values: lse.values.map((x) => x * bases.merged) },
    });
  },
};
