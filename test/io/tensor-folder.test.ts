import { createHash } from 'node:crypto';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hashTensorFile, openTensorFile } from '../../src/io/index.js';
import { writeNpy } from './write-npy.js';
import { numpyFiles } from './reference-files.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';
import { countingTensor } from './tensors.js';

const root = temporaryFolder();

function folderOf(name: string, files: Readonly<Record<string, Uint8Array | string>>): string {
  const path = root.at(name);
  mkdirSync(path);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(path, file), content);
  return path;
}

describe('a folder of npy files', () => {
  it('has a tensor for each file, and metadata.json as metadata', async () => {
    const path = folderOf('plain', {
      'q.npy': numpyFiles.bfloat16,
      'k.v2.npy': numpyFiles.half,
      'f8.npy': numpyFiles.float8E4m3fn,
      'metadata.json':
        '{"scale": 0.125, "big": 12345678901234567890, "causal": true, "cap": null, "gpu": "H200",' +
        ' "format.f8": "e4m3"}',
      'notes.txt': 'ignored',
      '._q.npy': 'left behind by a file manager',
    });
    mkdirSync(join(path, 'nested'));
    const file = await openTensorFile(path);
    expect([...file.entries.keys()]).toEqual(['f8', 'k.v2', 'q']);
    expect(file.metadata).toEqual({
      scale: '0.125',
      big: '12345678901234567890',
      causal: 'true',
      cap: 'null',
      gpu: 'H200',
      'format.f8': 'e4m3',
    });
    expect((await file.read('q')).data).toEqual(Uint16Array.of(0x3f80, 0xc000, 0x3f00, 0x7f80));
    expect(await file.read('f8')).toMatchObject({ format: 'e4m3', shape: [4] });
    await expectRefusal(() => file.read('kv2'), path, 'did you mean "k.v2"?', '"q"');
    await file.close();
    await expectRefusal(() => file.read('q'), path, 'is closed');
  });

  it('refuses a folder without arrays', async () => {
    const path = folderOf('none', { 'metadata.json': '{}' });
    await expectRefusal(() => openTensorFile(path), path, 'without .npy files');
  });

  it('names the damaged file among good ones', async () => {
    const path = folderOf('damaged', {
      'a.npy': numpyFiles.half,
      'q.npy': numpyFiles.half.slice(0, 100),
    });
    await expectRefusal(() => openTensorFile(path), join(path, 'q.npy'), 'tensor "q"');
  });

  it('refuses a file that changed after the folder was opened', async () => {
    const path = folderOf('changed', { 'q.npy': numpyFiles.half });
    const file = await openTensorFile(path);
    await writeNpy(join(path, 'q.npy'), countingTensor('fp16', [2, 3]));
    utimesSync(join(path, 'q.npy'), 1, 1);
    await expectRefusal(() => file.read('q'), join(path, 'q.npy'), 'has changed');
    await file.close();
  });

  it.each([
    ['an array', '[1]'],
    ['nested values', '{"a": {"b": 1}}'],
    ['a key twice', '{"a": 1, "a": 2}'],
    ['no JSON', '{a: 1}'],
    ['nothing', ''],
    ['no UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d)],
  ])('refuses metadata.json with %s', async (what, content) => {
    const path = folderOf(`metadata ${what}`, {
      'q.npy': numpyFiles.half,
      'metadata.json': content,
    });
    await expectRefusal(() => openTensorFile(path), join(path, 'metadata.json'), 'one JSON object');
  });
});

describe('hashTensorFile', () => {
  it('is the SHA-256 of a file’s bytes', async () => {
    // FIPS 180-4's example message.
    const path = root.write('abc', 'abc');
    expect(await hashTensorFile(path)).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
    const large = Buffer.alloc(3_000_001, 'flashproof');
    expect(await hashTensorFile(root.write('large', large))).toBe(
      createHash('sha256').update(large).digest('hex'),
    );
  });

  it('is, of a folder, that of the names, sizes and contents in order', async () => {
    const path = folderOf('hashed', {
      'q.npy': numpyFiles.half,
      'k.npy': numpyFiles.bfloat16,
      'metadata.json': '{}',
      'notes.txt': 'not a part of it',
    });
    const expected = createHash('sha256');
    expected.update(`k.npy\0${numpyFiles.bfloat16.length}\0`).update(numpyFiles.bfloat16);
    expected.update('metadata.json\0' + '2\0{}');
    expected.update(`q.npy\0${numpyFiles.half.length}\0`).update(numpyFiles.half);
    expect(await hashTensorFile(path)).toBe(expected.digest('hex'));
  });

  it('names a path that is not there', async () => {
    await expectRefusal(() => hashTensorFile(root.at('absent')), root.at('absent'), 'no such file');
  });
});
