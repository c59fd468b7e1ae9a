import { createHash } from 'node:crypto';
import type { Tensor } from '../../src/problem/index.js';

/** The first 16 digits of the SHA-256 of a tensor's bytes: what stands for outputs of compiled kernels, which are not stored. */
export function outputDigest({ data }: Tensor): string {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}
