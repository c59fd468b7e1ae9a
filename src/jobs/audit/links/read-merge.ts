import { auditMerge, type MergeShape } from '../../../audit/index.js';
import { decodeTensor } from '../../../formats/index.js';
import {
  parseLayout,
  quoted,
  toHeadsFirst,
  type Layout,
  type LinkFile,
} from '../../../io/tensors/index.js';
import type { Tensor } from '../../../problem/index.js';
import { naturalLse } from '../read-outputs.js';
import { positive } from './cache-factors.js';
import type { LinkReader } from './link-reader.js';
import { oneOf } from './one-of.js';

const names = {
  tensors: ['out_partial', 'lse_partial', 'out', 'lse', 'output_scale', 'v_descale'],
  notes: ['lse_base', 'partial_lse_base', 'layout', 'output_scale', 'v_descale'],
} as const;

/** The bases of LSEs. */
const bases = ['e', '2'] as const;

/** A tensor of [outer…, heads, queries, inner], which may have queries before heads. */
function headsFirst(
  tensor: Tensor,
  { heads, queries }: MergeShape,
  inner: number,
  order: Layout,
): Tensor {
  if (order === 'bhsd') return tensor;
  const outer = tensor.data.length / (heads * queries * inner);
  return toHeadsFirst({ ...tensor, shape: [outer, queries, heads, inner] });
}

/** The sizes of O in parts: [parts, batch, heads, queries, dim], the batch left out for one. */
function shapeOf(file: LinkFile, { shape }: Tensor, order: Layout): MergeShape {
  if (shape.length !== 4 && shape.length !== 5)
    return file.refuse(
      `tensor "out_partial" has shape [${shape.join(', ')}]; give it as [parts, batch, heads, queries, dim], or without the batch`,
    );
  const [batch, a, b, dim] = shape.length === 4 ? [1, ...shape.slice(1)] : shape.slice(1);
  const [heads, queries] = order === 'bhsd' ? [a, b] : [b, a];
  return { batch, heads, queries, dim };
}

/** A factor of O, a tensor of one number or a note; 1 where the file has none. @throws RequestError for what is no positive number */
async function factorOf(file: LinkFile, name: 'output_scale' | 'v_descale'): Promise<number> {
  if (!file.has(name)) return file.note(name, positive) ?? 1;
  const tensor = await file.numbers(name);
  const [value, ...others] = decodeTensor(tensor);
  if (others.length > 0 || !(value > 0 && value < Infinity))
    return file.refuse(
      `tensor ${quoted(name)} is of shape [${tensor.shape.join(', ')}]${others.length === 0 ? ` and holds ${value}` : ''}; give one positive number`,
    );
  return value;
}

/** The contract of a merge as files pose it: `out_partial` and `lse_partial`, and of the kernel `out` and `lse`. */
export const mergeLink: LinkReader = {
  names,
  judge: async (file) => {
    const partial = await file.numbers('out_partial');
    const partialLse = await file.numbers('lse_partial');
    const order = file.note('layout', parseLayout) ?? 'bhsd';
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
    const ofMerge = file.note('lse_base', oneOf(bases)) ?? 'e';
    const ofParts = file.note('partial_lse_base', oneOf(bases)) ?? ofMerge;
    const read = async (name: 'out' | 'lse', inner: number) => {
      if (!file.has(name)) return null;
      const tensor = await file.numbers(name);
      expect(name, tensor, rows * inner);
      const natural = name === 'lse' ? naturalLse(tensor, ofMerge) : tensor;
      return {
        format: tensor.format,
        values: decodeTensor(headsFirst(natural, shape, inner, order)),
      };
    };
    const factor = (await factorOf(file, 'v_descale')) / (await factorOf(file, 'output_scale'));
    if (!(factor > 0 && factor < Infinity))
      file.refuse(`v_descale by output_scale is ${factor}; give factors that fp32 has`);
    const naturalParts = naturalLse(partialLse, ofParts);
    return auditMerge({
      shape,
      parts: {
        splits,
        rows,
        dim,
        layout: { heads, queries },
        out: decodeTensor(headsFirst(partial, shape, dim, order)),
        lse: decodeTensor(headsFirst(naturalParts, shape, 1, order)),
      },
      out: await read('out', dim),
      lse: await read('lse', 1),
      factor,
      ofBase2: [
        ...(ofParts === '2' ? ['the parts'] : []),
        ...(ofMerge === '2' ? ['the merge'] : []),
      ],
    });
  },
};
