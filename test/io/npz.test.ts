import { Float16Array } from '@petamoriken/float16';
import { describe, expect, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { writeNpz } from './write-npz.js';
import { npyBytes, npyDict } from './npy-bytes.js';
import { numpyFiles } from './reference-files.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';
import { countingTensor, rawBytes } from './tensors.js';
import { zipBytes } from './zip-bytes.js';
import type { ZipPart } from './zip-bytes.js';

const folder = temporaryFolder();
const data = Float32Array.from({ length: 4096 }, (_, index) => index);
const plain = npyBytes(npyDict("'<f4'", '(4096,)'), new Uint8Array(data.buffer));

describe('reading npz', () => {
  it('reads what numpy.savez writes', async () => {
    const file = await openTensorFile(folder.write('stored.npz', numpyFiles.stored));
    expect([...file.entries.keys()]).toEqual(['q', 'k', 'empty']);
    expect(await file.read('q')).toMatchObject({ format: 'fp16', shape: [2, 2] });
    expect([...(await file.readElements('q', 0, 4))]).toEqual([1, 2, 3, 4]);
    expect((await file.read('q')).data).toBeInstanceOf(Float16Array);
    expect((await file.read('k')).data).toEqual(Float32Array.of(5, 6, 7));
    expect(await file.readElements('k', 1, 1)).toEqual(Float32Array.of(6));
    expect(await file.read('empty')).toMatchObject({ shape: [2, 0], data: new Float64Array(0) });
    await file.close();
  });

  it('reads what numpy.savez_compressed writes, by ranges in any order and at once', async () => {
    const file = await openTensorFile(folder.write('deflated.npz', numpyFiles.deflated));
    const expected = Float32Array.from({ length: 4096 }, (_, index) => index % 64);
    expect((await file.read('q')).data).toEqual(expected);
    for (const [start, count] of [
      [0, 100],
      [100, 900],
      [4000, 96],
      [10, 20],
      [4096, 0],
    ] as const)
      expect(await file.readElements('q', start, count)).toEqual(
        expected.slice(start, start + count),
      );
    const together = await Promise.all(
      [3000, 5, 1500, 64, 2999].map((start) => file.readElements('q', start, 50)),
    );
    expect(together).toEqual(
      [3000, 5, 1500, 64, 2999].map((start) => expected.slice(start, start + 50)),
    );
    expect((await file.read('k')).data).toEqual(Float64Array.of(0, 1, 2, 3, 4, 5));
    expect(await file.readElements('k', 2, 3)).toEqual(Float64Array.of(2, 3, 4));
    await file.close();
  });

  it('passes over other members, and lists arrays that cannot be read beside others', async () => {
    const content = zipBytes([
      { name: 'notes.txt', content: Buffer.from('hello') },
      { name: 'x.npy', content: plain, deflate: true },
      { name: 'o.npy', content: numpyFiles.objects },
      { name: 'f8.npy', content: numpyFiles.float8E4m3fn },
    ]);
    const path = folder.write('mixed.npz', content);
    const file = await openTensorFile(path, { formats: { f8: 'e4m3' } });
    expect([...file.entries.keys()]).toEqual(['x', 'o', 'f8']);
    expect((await file.read('x')).data).toEqual(data);
    expect((await file.read('f8')).format).toBe('e4m3');
    await expectRefusal(() => file.read('o'), path, '"o"', 'save a plain array');
    await file.close();
  });

  it('treats names that point outside the archive as names', async () => {
    const names = ['../../etc/passwd', '/etc/passwd', 'C:\\x', 'a/b', '__proto__', '..'];
    const content = zipBytes(names.map((name) => ({ name: `${name}.npy`, content: plain })));
    const file = await openTensorFile(folder.write('traversal.npz', content));
    expect([...file.entries.keys()]).toEqual(names);
    for (const name of names) expect((await file.read(name)).data).toEqual(data);
    await file.close();
  });

  it('opens an archive without members', async () => {
    const file = await openTensorFile(folder.write('empty.npz', zipBytes([])));
    expect(file.entries.size).toBe(0);
    await expectRefusal(() => file.read('q'), 'holds none');
    await file.close();
  });

  it('round trips through writeNpz, equal tensors to equal files', async () => {
    const tensors = {
      q: countingTensor('bf16', [2, 3]),
      'layer/0/ü': countingTensor('fp64', [5]),
      large: countingTensor('fp32', [700, 1000]),
      scalar: countingTensor('fp16', []),
    };
    const path = folder.at('written.npz');
    await writeNpz(path, tensors);
    const file = await openTensorFile(path);
    expect([...file.entries.keys()]).toEqual(Object.keys(tensors));
    for (const [name, { format, shape, data: elements }] of Object.entries(tensors)) {
      const read = await file.read(name);
      expect(read).toMatchObject({ format, shape });
      expect(Buffer.compare(rawBytes(read.data), rawBytes(elements))).toBe(0);
    }
    await file.close();
  });

  it('refuses names that an archive cannot hold', async () => {
    const q = countingTensor('fp32', [1]);
    for (const name of ['../q', '/q', 'C:q', 'a\\b', '\ud800', 'x'.repeat(70_000)])
      await expectRefusal(() => writeNpz(folder.at('names.npz'), { [name]: q }), 'rename it');
  });
});

describe('a hostile npz archive is refused with one line that names the file', () => {
  const tail = zipBytes([{ name: 'q.npy', content: plain }]);
  const directoryOffset = (bytes: Uint8Array, value: number): Uint8Array => {
    const copy = Buffer.from(bytes);
    copy.writeUInt32LE(value, copy.length - 6);
    return copy;
  };
  const zip64End = (offset: bigint, directory: bigint): Uint8Array => {
    const bytes = Buffer.from(tail);
    const record = Buffer.alloc(56);
    record.writeUInt32LE(0x06064b50, 0);
    record.writeBigUInt64LE(44n, 4);
    record.writeBigUInt64LE(1n, 32);
    record.writeBigUInt64LE(directory, 48);
    const locator = Buffer.alloc(20);
    locator.writeUInt32LE(0x07064b50, 0);
    locator.writeBigUInt64LE(offset < 0n ? BigInt(bytes.length - 22) : offset, 8);
    locator.writeUInt32LE(1, 16);
    const cut = bytes.length - 22;
    return Buffer.concat([bytes.subarray(0, cut), record, locator, bytes.subarray(cut)]);
  };
  const cases: [string, Uint8Array, ...string[]][] = [
    ['no directory', tail.slice(0, 200), 'zip archive', 'damaged'],
    ['bytes after the archive', Buffer.concat([tail, Buffer.alloc(5)]), 'zip archive'],
    ['a directory past the end', directoryOffset(tail, 0xfffffff0), 'outside'],
    ['a directory within the data', directoryOffset(tail, 3), 'signature'],
    ['a zip64 directory at 2^64 - 1', zip64End(-1n, (1n << 64n) - 1n), 'outside'],
    ['a zip64 record at 2^64 - 1', zip64End((1n << 64n) - 1n, 0n), 'outside'],
    [
      'two members of one name',
      zipBytes([
        { name: 'q.npy', content: plain },
        { name: 'q.npy', content: plain },
      ]),
      'two members named "q.npy"',
    ],
    ['a pickle of torch.save', zipBytes([{ name: 'x/data.pkl', content: plain }]), 'safetensors'],
    ['no npy member', zipBytes([{ name: 'x.txt', content: plain }]), 'without .npy members'],
  ];
  it.each<[string, Uint8Array, ...string[]]>(cases)('%s', async (_what, content, ...parts) => {
    const path = folder.write('hostile.npz', content);
    await expectRefusal(() => openTensorFile(path), path, ...parts);
  });

  const zeros = npyBytes(npyDict("'|u1'", `(${1 << 24},)`), new Uint8Array(1 << 24));
  const members: [string, ZipPart, ...string[]][] = [
    ['encrypted', { name: 'q.npy', content: plain, flags: 1, deflate: true }, 'encrypted'],
    ['compressed by bzip2', { name: 'q.npy', content: plain, method: 12 }, 'method 12'],
    ['of another local name', { name: 'q.npy', localName: 'k.npy', content: plain }, 'name'],
    [
      'of another local compression',
      { name: 'q.npy', content: plain, localMethod: 8 },
      'compression',
    ],
    [
      'that declares more than deflate can hold',
      { name: 'q.npy', content: plain, deflate: true, declaredSize: 0xfffffff0 },
      'cannot be deflated',
    ],
    [
      'that declares more than the array takes',
      { name: 'q.npy', content: plain, deflate: true, declaredSize: plain.length + 1 },
      'takes 16384 bytes, but 16385 follow',
    ],
    [
      'that declares less than the array takes',
      { name: 'q.npy', content: plain, deflate: true, declaredSize: plain.length - 1 },
      'inflates to more than',
    ],
    ['that is no npy', { name: 'q.npy', content: new Uint8Array(100) }, 'does not begin'],
    [
      'that does not inflate',
      { name: 'q.npy', content: new Uint8Array(100).fill(7), method: 8 },
      'does not inflate',
    ],
  ];
  it.each<[string, ZipPart, ...string[]]>(members)(
    'a member %s',
    async (_what, member, ...parts) => {
      const path = folder.write('hostile.npz', zipBytes([member]));
      await expectRefusal(() => openTensorFile(path), path, 'tensor "q"', ...parts);
    },
  );

  it('a stored member whose sizes disagree', async () => {
    const part = { name: 'q.npy', content: plain, declaredSize: 5 };
    const path = folder.write('hostile.npz', zipBytes([part]));
    await expectRefusal(() => openTensorFile(path), path, 'size mismatch');
  });

  it('a bomb: inflates to no more than it declares', async () => {
    // The directory and the npy header agree on few bytes; the deflated stream holds 16 MiB.
    const header = npyDict("'|u1'", '(30000,)').padEnd(120);
    const bomb = Buffer.concat([npyBytes(header), new Uint8Array(1 << 24)]);
    const declaredSize = npyBytes(header).length + 30000;
    const part = { name: 'q.npy', content: bomb, deflate: true, declaredSize };
    const path = folder.write('bomb.npz', zipBytes([part]));
    await expectRefusal(
      async () => {
        const file = await openTensorFile(path, { formats: { q: 'e4m3' } });
        try {
          return await file.read('q');
        } finally {
          await file.close();
        }
      },
      path,
      'tensor "q"',
      'inflates to more than',
    );
  });

  it('a deflated stream shorter than declared', async () => {
    const header = npyDict("'|u1'", '(30000,)').padEnd(120);
    const short = Buffer.concat([npyBytes(header), new Uint8Array(29_000).fill(3, 0, 9_000)]);
    const declaredSize = npyBytes(header).length + 30000;
    const part = { name: 'q.npy', content: short, deflate: true, declaredSize };
    const path = folder.write('short.npz', zipBytes([part]));
    const file = await openTensorFile(path, { formats: { q: 'e4m3' } });
    await expectRefusal(() => file.read('q'), path, 'tensor "q"', 'inflates to only');
    expect(await file.readElements('q', 0, 9_000)).toEqual(new Uint8Array(9_000).fill(3));
    await file.close();
  });

  it.each([true, false])('a wrong CRC-32 (deflated: %s)', async (deflate) => {
    const part = { name: 'q.npy', content: plain, deflate, crc: 12345 };
    const path = folder.write('crc.npz', zipBytes([part]));
    const file = await openTensorFile(path);
    await expectRefusal(() => file.read('q'), path, 'tensor "q"', 'CRC-32');
    await file.close();
  });

  it('sixteen honest megabytes of zeros are read', async () => {
    const part = { name: 'q.npy', content: zeros, deflate: true };
    const file = await openTensorFile(folder.write('zeros.npz', zipBytes([part])), {
      formats: { q: 'e5m2' },
    });
    const { data: elements } = await file.read('q');
    expect(Buffer.compare(rawBytes(elements), new Uint8Array(1 << 24))).toBe(0);
    await file.close();
  });
});
