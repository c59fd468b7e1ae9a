import { expect, it } from 'vitest';
import { openTensorFile, writeRawTensors } from '../../src/io/index.js';
import { RequestError } from '../../src/request-error.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

it('tensors of any dtype are written as their bytes, and read back', async () => {
  const path = folder.at('raw.safetensors');
  const bytes = (count: number) => Uint8Array.from({ length: count }, (_, i) => 7 * i + 1);
  const tensors = [
    { name: 'wide', dtype: 'I64', shape: [2, 1], bytes: bytes(16) },
    { name: 'small', dtype: 'F8_E4M3', shape: [3], bytes: bytes(3) },
    { name: 'empty', dtype: 'U16', shape: [0, 4], bytes: bytes(0) },
    { name: 'one', dtype: 'BOOL', shape: [], bytes: bytes(1) },
  ];
  await writeRawTensors(path, tensors, { note: 'text' });
  const file = await openTensorFile(path);
  expect([...file.entries.keys()]).toEqual(tensors.map(({ name }) => name));
  expect(file.metadata).toEqual({ note: 'text' });
  for (const tensor of tensors) {
    expect(file.entries.get(tensor.name)).toMatchObject({
      dtype: tensor.dtype,
      shape: tensor.shape,
    });
    expect(await file.readBytes(tensor.name)).toEqual(tensor.bytes);
  }
  await file.close();
});

it.each([
  ['I65', [2], 16],
  ['I64', [2], 15],
  ['F32', [-1], 4],
])('dtype %s, shape %j and %i bytes make no tensor', async (dtype, shape, length) => {
  const path = folder.at('none.safetensors');
  const tensor = { name: 'x', dtype, shape, bytes: new Uint8Array(length) };
  await expect(writeRawTensors(path, [tensor])).rejects.toThrow(RequestError);
});
