import { describe, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { npyBytes, npyDict } from './npy-bytes.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();
const eight = new Uint8Array(8);

const shaped = (shape: string): Uint8Array => npyBytes(npyDict("'<f4'", shape), eight);
const typed = (descr: string): Uint8Array => npyBytes(npyDict(descr, '(2,)'), eight);
const ordered = (order: string): Uint8Array => npyBytes(npyDict("'<f4'", '(2,)', order), eight);

type Case = [what: string, content: Uint8Array, ...parts: string[]];

const cases: Case[] = [
  ['nothing after the magic', npyBytes('').slice(0, 6), 'cut short'],
  ['nothing after the version', npyBytes('').slice(0, 8), 'cut short'],
  ['half a length', npyBytes('', eight, { version: [2, 0] }).slice(0, 11), 'cut short'],
  ['version 4.0', npyBytes(npyDict("'<f4'", '(2,)'), eight, { version: [4, 0] }), '4.0', '3.0'],
  ['version 1.1', npyBytes(npyDict("'<f4'", '(2,)'), eight, { version: [1, 1] }), '1.1'],
  ['a header length past the end', npyBytes('{}', eight, { claimed: 60000 }), 'only 10 follow'],
  ['a header of 4 GB', npyBytes('{}', eight, { version: [2, 0], claimed: 2 ** 32 - 1 }), 'limit'],
  [
    'a header length that lies short',
    npyBytes(npyDict("'<f4'", '(2,)'), eight, { claimed: 30 }),
    'npy header',
  ],
  ['a header of zero bytes', npyBytes('', eight), 'ends too early'],
  ['no UTF-8', npyBytes(Uint8Array.of(0xff, 0xfe), eight, { version: [3, 0] }), 'UTF-8'],
  ['a header that is a tuple', npyBytes("('<f4', False, (2,))", eight), 'no dict'],
  ['a call', npyBytes("__import__('os').system('true')", eight), 'not allowed'],
  [
    'an expression',
    npyBytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1+1,)}", eight),
    'missing',
  ],
  ['code after the dict', npyBytes(`${npyDict("'<f4'", '(2,)')}; x`, eight), 'unexpected'],
  ['nesting without end', npyBytes('('.repeat(5000), eight), 'nesting'],
  ['a string without end', npyBytes("{'descr", eight), 'does not end'],
  [
    'a key twice',
    npyBytes("{'descr': '<f4', 'descr': '<f2', 'fortran_order': False, 'shape': (2,)}", eight),
    'twice',
  ],
  [
    'an unknown key',
    npyBytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", eight),
    '"x"',
  ],
  ['no descr', npyBytes("{'fortran_order': False, 'shape': (2,)}", eight), 'descr'],
  ['no fortran_order', npyBytes("{'descr': '<f4', 'shape': (2,)}", eight), 'fortran_order'],
  ['no shape', npyBytes("{'descr': '<f4', 'fortran_order': False}", eight), 'shape'],
  ['a number as key', npyBytes("{1: '<f4'}", eight), 'key is no string'],
  ['an unknown type', typed("'<q4'"), '"<q4"', 'no type of numpy'],
  ['a type of half a size', typed("'<f'"), 'no type of numpy'],
  ['a type named as a method', typed("'toString'"), 'no type of numpy'],
  ['a type that is a number', typed('4'), 'no type string'],
  ['a type of a billion bytes', typed("'|V999999999'"), 'cut short'],
  ['a line feed in the type', typed("'<f4\\n'"), 'no type of numpy'],
  ['objects', typed("'|O'"), 'pickled', 'save a plain array'],
  ['records', typed("[('a', '<f4')]"), 'records', 'save a plain array'],
  ['fortran_order 0', ordered('0'), 'neither True nor False'],
  ['fortran_order None', ordered('None'), 'neither True nor False'],
  ['a shape that is a number', shaped('2'), 'no tuple'],
  ['a shape in parentheses only', shaped('(2)'), 'no tuple'],
  ['a shape that is a list', shaped('[2]'), 'no tuple'],
  ['a negative dimension', shaped('(-2,)'), 'whole number'],
  ['a dimension with a sign', shaped('(+2,)'), 'whole number'],
  ['a fractional dimension', shaped('(2.5,)'), 'whole number'],
  ['a dimension of 1e400', shaped('(1e400,)'), 'whole number'],
  ['a hexadecimal dimension', shaped('(0x2,)'), 'whole number'],
  ['NaN in the shape', shaped('(nan,)'), 'not allowed'],
  ['True in the shape', shaped('(True, 2)'), 'whole number'],
  ['a string in the shape', shaped("('2',)"), 'whole number'],
  ['a dimension of 2^53', shaped('(9007199254740992,)'), 'whole number'],
  ['a product beyond 2^53', shaped('(94906267, 94906267)'), 'too many elements'],
  [
    'a product beyond any double',
    shaped(`(${Array(32).fill('4294967296').join(', ')})`),
    'too many',
  ],
  ['a rank of 33', shaped(`(${Array(33).fill('1').join(', ')})`), 'rank 33'],
  ['data cut short', shaped('(3,)'), 'takes 12 bytes, but 8 follow', 'cut short'],
  ['a petabyte of data', shaped('(281474976710656,)'), 'but 8 follow'],
  ['trailing bytes', shaped('(1,)'), 'takes 4 bytes, but 8 follow', 'trailing'],
  ['trailing bytes after an empty array', shaped('(0, 3)'), 'takes 0 bytes', 'trailing'],
];

describe('a hostile npy file is refused with one line that names the file and the tensor', () => {
  it.each<Case>(cases)('%s', async (_what, content, ...parts) => {
    const path = folder.write('q.npy', content);
    await expectRefusal(() => openTensorFile(path), path, 'tensor "q"', ...parts);
  });

  it('a magic that is not numpy’s', async () => {
    const path = folder.write('q.npy', new Uint8Array(200));
    await expectRefusal(() => openTensorFile(path), path, 'tensor "q"', 'does not begin');
  });
});
