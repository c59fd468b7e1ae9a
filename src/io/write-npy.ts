import type { StoredTensor } from '../problem/index.js';
import { atomicWriteFile } from './atomic-write.js';
import { checkTensor, npyContent } from './tensors/index.js';

/**
 * Writes an npy file, byte for byte as numpy.save does. bf16 is written as `<V2`, e4m3 and e5m2 as
 * `|V1`, tf32 as `<f4`: the file then does not tell e4m3 from e5m2, nor tf32 from fp32, and the
 * format must be declared when it is opened. The path holds the whole file or its old content.
 * @throws RequestError when the tensor cannot be written, or the file system fails
 */
export async function writeNpy(path: string, tensor: StoredTensor): Promise<void> {
  checkTensor(path, tensor);
  await atomicWriteFile(path, npyContent(tensor));
}
