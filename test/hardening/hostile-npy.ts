import { npyBytes, npyDict } from '../io/npy-bytes.js';
import { numpyFiles } from '../io/reference-files.js';
import { mutatedBytes, overwriteInteger } from './byte-mutations.js';
import { hostileDtypes, hostileIntegers, hostileNumbers, hostileTexts } from './hostile-values.js';
import type { Random } from './random.js';
import { mutatedText } from './text-mutations.js';

const data = new Uint8Array(64).map((_, index) => index * 37);

/** A sound array: 4 × 4 numbers of fp32. */
export const soundNpy = npyBytes(npyDict("'<f4'", '(1, 4, 4)'), data);

/** Values of Python, and what looks like them. */
const values: readonly string[] = [
  ...hostileNumbers,
  ...hostileDtypes.map((dtype) => `'${dtype}'`),
  ...hostileTexts.map((text) => `'${text}'`),
  ...[
    'None',
    'True',
    'False',
    '()',
    '(1,)',
    '(3)',
    '[]',
    '{}',
    "b'x'",
    "u'<f4'",
    '1L',
    '__import__',
  ],
  ...["[('a', '<f4'), ('b', '<f2', (2,))]", '(1,) * 9', 'lambda: 0', '(', '{', "'", '\\'],
  `(${'1, '.repeat(40)})`,
  `(${'9007199254740991, '.repeat(3)})`,
  `${'('.repeat(5000)}`,
  `${'['.repeat(40)}${']'.repeat(40)}`,
];

const versions: readonly (readonly number[])[] = [
  [1, 0],
  [1, 0],
  [2, 0],
  [3, 0],
  [0, 0],
  [9, 9],
];

type Making = (random: Random) => Uint8Array;

const makings: readonly Making[] = [
  (random) => mutatedBytes(random.pick(Object.values(numpyFiles).slice(0, 12)), random),
  (random) => {
    const text = Buffer.from(mutatedText(npyDict("'<f4'", '(1, 4, 4)'), random, values));
    const version = text.length < 2 ** 16 ? random.pick(versions) : [2, 0];
    return npyBytes(text, data, { version });
  },
  // Shapes whose product overflows, or is nothing although their sizes are huge.
  (random) => {
    const usual = ['1', '2', '4', '16777216'];
    const sizes = Array.from({ length: random.below(5) }, () =>
      random.pick(random.chance(0.5) ? usual : hostileNumbers),
    );
    if (random.chance(0.3)) sizes.push('0');
    const shape = `(${sizes.join(', ')}${sizes.length === 1 ? ',' : ''})`;
    const dtype = random.chance(0.5) ? `'<f4'` : `'${random.pick(hostileDtypes)}'`;
    const text = npyDict(dtype, shape, random.pick(['True', 'False']));
    return npyBytes(text, random.chance(0.5) ? new Uint8Array(0) : data);
  },
  (random) => {
    const bytes = Buffer.from(npyBytes(npyDict("'<f4'", '(1, 4, 4)'), data, { version: [2, 0] }));
    return overwriteInteger(bytes, 8, 4, random.pick(hostileIntegers));
  },
];

/** An npy file that is wrong, or odd, in one or a few places. */
export function hostileNpy(random: Random): Uint8Array {
  return random.pick(makings)(random);
}
