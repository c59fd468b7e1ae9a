import { fileURLToPath } from 'node:url';
import { openTensorFile, writeSafetensors } from '../../src/io/index.js';
import type { Tensor } from '../../src/problem/index.js';

/** A captured problem without a mask: one head, 200 queries, 300 keys. */
export const fewQueriesOf = 'fixtures/attention/09-normal-200x300-d64-bf16.safetensors';
const path = fileURLToPath(new URL(`../../${fewQueriesOf}`, import.meta.url));

function firstRows({ format, shape, data }: Tensor, count: number): Tensor {
  const [heads, , ...rest] = shape;
  if (heads !== 1) throw new Error('one head');
  const width = rest.reduce((product, size) => product * size, 1);
  return { format, shape: [1, count, ...rest], data: data.slice(0, count * width) };
}

/**
 * Writes the first queries of that problem with what FlashAttention-4 made of them, as `fa4.out` and
 * `fa4.lse`: a row does not depend on those beside it, and few are judged sooner.
 */
export async function writeFewQueries(to: string): Promise<void> {
  const file = await openTensorFile(path);
  try {
    const tensors: Record<string, Tensor> = { k: await file.read('k'), v: await file.read('v') };
    for (const name of ['q', 'fa4.out', 'fa4.lse'])
      tensors[name] = firstRows(await file.read(name), 32);
    await writeSafetensors(to, tensors, { scale: '0.125' });
  } finally {
    await file.close();
  }
}
