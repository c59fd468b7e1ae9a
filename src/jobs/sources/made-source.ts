import { createHash } from 'node:crypto';
import { formats, patternsOf } from '../../formats/index.js';
import type { Tensor } from '../../problem/index.js';
import type { TensorSource } from '../../report/json/index.js';

/** The source of a tensor that was made, in a report. */
export function madeSource(name: string, { format, data }: Tensor): TensorSource {
  const sha256 = createHash('sha256').update(patternsOf(data, formats[format])).digest('hex');
  return { path: '', tensor: name, sha256, format };
}

/** The sources of tensors that were made, by name. */
export function madeSources(
  tensors: Readonly<Partial<Record<string, Tensor>>>,
): Readonly<Record<string, TensorSource>> {
  return Object.fromEntries(
    Object.entries(tensors).flatMap(([name, tensor]) =>
      tensor === undefined ? [] : [[name, madeSource(name, tensor)] as const],
    ),
  );
}
