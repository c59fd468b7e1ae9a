import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openTensorFile, type TensorFile } from '../../src/io/index.js';
import { writeNpz } from './write-npz.js';
import { npyBytes, npyDict } from './npy-bytes.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';
import { countingTensor } from './tensors.js';
import { zipBytes } from './zip-bytes.js';

const folder = temporaryFolder();
const elements = 4096;
const data = Float32Array.from({ length: elements }, (_, index) => index);
const plain = npyBytes(npyDict("'<f4'", `(${elements},)`), new Uint8Array(data.buffer));

/** The same file with one bit of its data other than it was, in place: an open file sees it. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  const at = bytes.lastIndexOf(plain.subarray(-16)) + 7;
  bytes[at] ^= 0x40;
  folder.write(path.slice(folder.path.length + 1), bytes);
}

const wholeAtOnce = (file: TensorFile) => file.read('q');
const inRanges = async (file: TensorFile) => {
  for (const start of [0, 1000, 2000]) await file.readElements('q', start, 1000);
  return file.readElements('q', 3000, elements - 3000);
};

describe.each([
  ['at once', wholeAtOnce],
  ['in ranges', inRanges],
] as const)('a stored member of an npz that is read %s', (_, read) => {
  it('is held to its CRC-32 each time', async () => {
    const path = folder.write('again.npz', zipBytes([{ name: 'q.npy', content: plain }]));
    const file = await openTensorFile(path);
    await read(file);
    await read(file);
    damage(path);
    await expectRefusal(() => read(file), path, 'tensor "q"', 'CRC-32');
    await expectRefusal(() => read(file), path, 'tensor "q"', 'CRC-32');
    await file.close();
  });

  it('is held to it after a reading that broke off', async () => {
    const path = folder.write('again.npz', zipBytes([{ name: 'q.npy', content: plain }]));
    const file = await openTensorFile(path);
    await file.readElements('q', 0, 1000);
    await file.readElements('q', 3000, 96);
    expect([...(await file.readElements('q', 5, 3))]).toEqual([5, 6, 7]);
    damage(path);
    await expectRefusal(() => read(file), path, 'CRC-32');
    await file.close();
  });
});

it('a deflated member is held to its CRC-32 each time that it is inflated', async () => {
  const crc = { name: 'q.npy', content: plain, deflate: true, crc: 12345 };
  const path = folder.write('crc.npz', zipBytes([crc]));
  const file = await openTensorFile(path);
  for (let time = 0; time < 3; time++) {
    await file.readElements('q', 0, 10);
    await expectRefusal(() => file.read('q'), path, 'CRC-32');
    await expectRefusal(() => inRanges(file), path, 'CRC-32');
  }
  await file.close();
});

it('what flashproof writes is read as often as one likes', async () => {
  const path = folder.at('written.npz');
  const tensor = countingTensor('fp32', [elements]);
  await writeNpz(path, { q: tensor });
  const file = await openTensorFile(path);
  for (let time = 0; time < 3; time++) expect((await file.read('q')).data).toEqual(tensor.data);
  await file.close();
});
