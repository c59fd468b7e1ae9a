import { allocateStorage, formats, patternsOf, storageOf, type Tensor } from '../formats/index.js';
import { binaryBlock } from './scale-target.js';
import { slotCount, storedAt, storedShape, type StoredRows } from './stored.js';

/** The heads and the elements a row of a stored tensor of rank 3 or 4. */
function headsAndDim({ shape }: Tensor, { headsFirst }: StoredRows): readonly [number, number] {
  const [heads, dim] = headsFirst ? [shape.at(-3), shape.at(-1)] : [shape.at(-2), shape.at(-1)];
  return [heads ?? 0, dim ?? 0];
}

/**
 * The rows that count of a stored tensor, as the canonical [1, heads, rows, dim]. Bits are copied.
 * @param tensor of shape `storedShape`
 */
export function gatherRows(tensor: Tensor, rows: StoredRows): Tensor {
  const format = formats[tensor.format];
  const [heads, dim] = headsAndDim(tensor, rows);
  const at = storedAt(rows, heads, dim);
  const source = patternsOf(tensor.data, format);
  const data = allocateStorage(format, rows.slots.length * heads * dim);
  const target = patternsOf(data, format);
  const words = target.length / Math.max(1, data.length);
  let to = 0;
  for (let head = 0; head < heads; head++)
    for (const slot of rows.slots) {
      const from = at(slot, head) * words;
      target.set(source.subarray(from, from + dim * words), to);
      to += dim * words;
    }
  return {
    format: tensor.format,
    shape: [1, heads, rows.slots.length, dim],
    data: storageOf(format, target),
  };
}

/**
 * Factors that lie as a stored tensor does, [groups, slots, heads, dim] or with heads before slots, as those of the
 * canonical rows: [1, heads, rows, dim]. Where all groups, or 2^n slots of each, share a factor, they have one in the
 * tensor; where all rows do, so has the result.
 * @returns null for factors of so many groups or slots as there are not
 */
export function gatherFactors(factors: Tensor, rows: StoredRows): Tensor | null {
  const { groups, slotsPerGroup, headsFirst, slots, form } = rows;
  const [first, ...inner] = factors.shape.length === 4 ? factors.shape : [1, ...factors.shape];
  const ofGroup = inner[headsFirst ? 1 : 0];
  const perSlot = binaryBlock(slotsPerGroup, ofGroup);
  if (inner.length !== 3 || (first !== 1 && first !== groups) || perSlot === null) return null;
  const isOne = first === 1 && ofGroup === 1;
  const places = isOne
    ? Int32Array.of(0)
    : slots.map((slot) => {
        const group = Math.floor(slot / slotsPerGroup);
        return (first === 1 ? 0 : group) * ofGroup + Math.floor((slot % slotsPerGroup) / perSlot);
      });
  return gatherRows(factors, {
    form,
    groups: first,
    slotsPerGroup: ofGroup,
    headsFirst,
    slots: places,
  });
}

/**
 * A canonical tensor [1, heads, rows, dim] as it is stored; unused slots hold `filler` in every element.
 * @param filler one element of the tensor's format
 */
export function scatterRows(tensor: Tensor, rows: StoredRows, filler: Tensor['data']): Tensor {
  const format = formats[tensor.format];
  const [heads, dim] = [tensor.shape.at(-3) ?? 0, tensor.shape.at(-1) ?? 0];
  const at = storedAt(rows, heads, dim);
  const source = patternsOf(tensor.data, format);
  const data = allocateStorage(format, slotCount(rows) * heads * dim);
  const target = patternsOf(data, format);
  const fill = patternsOf(filler, format);
  const words = fill.length;
  if (words === 1) target.fill(fill[0]);
  else for (let i = 0; i < target.length; i += words) target.set(fill, i);
  let from = 0;
  for (let head = 0; head < heads; head++)
    for (const slot of rows.slots) {
      target.set(source.subarray(from, from + dim * words), at(slot, head) * words);
      from += dim * words;
    }
  return {
    format: tensor.format,
    shape: storedShape(rows, heads, dim),
    data: storageOf(format, target),
  };
}
