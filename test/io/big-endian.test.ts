import { expect, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { npyBytes, npyDict } from './npy-bytes.js';
import { temporaryFolder } from './temporary-folder.js';
import { zipBytes } from './zip-bytes.js';

const folder = temporaryFolder();

/** Numbers and their bits, the sign first: IEEE 754, 3.4. */
const known: readonly (readonly [number, string])[] = [
  [1, '3ff0000000000000'],
  [-2.5, 'c004000000000000'],
  [Math.PI, '400921fb54442d18'],
  [1e300, '7e37e43c8800759c'],
  [2 ** -1074, '0000000000000001'],
  [-Infinity, 'fff0000000000000'],
];
const values = known.map(([value]) => value);
const bytes = Buffer.from(known.map(([, bits]) => bits).join(''), 'hex');

it.each([
  ['npy', npyBytes(npyDict("'>f8'", '(2, 3)'), bytes)],
  ['npz', zipBytes([{ name: 'x.npy', content: npyBytes(npyDict("'>f8'", '(2, 3)'), bytes) }])],
  [
    'npz',
    zipBytes([
      { name: 'x.npy', content: npyBytes(npyDict("'>f8'", '(2, 3)'), bytes), deflate: true },
    ]),
  ],
])('float64 of the other byte order has its values in an %s', async (kind, content) => {
  const file = await openTensorFile(folder.write(`x.${kind}`, content));
  expect(await file.read('x')).toEqual({
    format: 'fp64',
    shape: [2, 3],
    data: Float64Array.from(values),
  });
  for (let start = 0; start < 6; start++)
    expect([...(await file.readElements('x', start, 6 - start))]).toEqual(values.slice(start));
  await file.close();
});

it('and column by column', async () => {
  const content = npyBytes(npyDict("'>f8'", '(2, 3)', 'True'), bytes);
  const file = await openTensorFile(folder.write('x.npy', content));
  const inRows = [0, 2, 4, 1, 3, 5].map((i) => values[i]);
  expect([...(await file.read('x')).data]).toEqual(inRows);
  await file.close();
});
