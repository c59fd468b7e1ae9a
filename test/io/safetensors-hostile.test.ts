import { describe, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { described, safetensorsBytes } from './safetensors-bytes.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();
const eight = new Uint8Array(8);
const good = described('F32', [2], 0, 8);

type Case = [what: string, content: Uint8Array, ...parts: (string | RegExp)[]];

/** A file of one tensor "q" over eight bytes of data. */
const single = (description: unknown): Uint8Array => safetensorsBytes({ q: description }, eight);
/** The same with the shape as raw JSON. */
const shaped = (shape: string): Uint8Array =>
  safetensorsBytes(`{"q":{"dtype":"F32","shape":${shape},"data_offsets":[0,8]}}`, eight);
const offset = (offsets: string): Uint8Array =>
  safetensorsBytes(`{"q":{"dtype":"F32","shape":[2],"data_offsets":${offsets}}}`, eight);

const files: Case[] = [
  ['a file of 7 bytes', Uint8Array.of(1, 2, 3, 4, 5, 6, 7), 'only 7 bytes'],
  ['a header length of 2^60', safetensorsBytes('{}', eight, 1n << 60n), 'above the limit'],
  ['a header length of 2^64 - 1', safetensorsBytes('{}', eight, (1n << 64n) - 1n), 'limit'],
  ['a header length over 100 MB', safetensorsBytes('{}', eight, 100_000_001n), 'above the limit'],
  ['a header length past the end', safetensorsBytes('{}', eight, 11n), 'only 10 follow'],
  ['a header length of zero', safetensorsBytes('', eight, 0n), 'the first character is no "{"'],
  ['an unfinished header', safetensorsBytes('{"q":', eight), '"q"', 'ends too early'],
  ['a header that is an array', safetensorsBytes('[]'), 'the first character is no "{"'],
  ['a header that begins with a space', safetensorsBytes(' {}'), 'first character'],
  ['a byte order mark', safetensorsBytes('\ufeff{}'), 'first character'],
  ['text after the header', safetensorsBytes('{} x'), 'more text'],
  ['zero bytes after the header', safetensorsBytes('{}\0\0'), 'more text'],
  ['a trailing comma', safetensorsBytes('{"q":{},}', eight), /has no dtype|string is missing/],
  [
    'invalid UTF-8',
    safetensorsBytes(Buffer.concat([Buffer.from('{"'), Uint8Array.of(0xff), Buffer.from('":1}')])),
    'UTF-8',
  ],
  ['nesting without end', safetensorsBytes(`{"q":{"x":${'['.repeat(100_000)}`), 'nesting', '"q"'],
  [
    'a tensor name twice',
    safetensorsBytes(`{"q":${JSON.stringify(good)},"q":${JSON.stringify(good)}}`, eight),
    'key "q" occurs twice',
  ],
  [
    'a tensor name twice, once escaped',
    safetensorsBytes(`{"q":${JSON.stringify(good)},"\\u0071":${JSON.stringify(good)}}`, eight),
    'key "q" occurs twice',
  ],
  [
    'a key of a tensor twice',
    safetensorsBytes('{"q":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', eight),
    '"q"',
    'key "dtype" occurs twice',
  ],
  [
    'a key of an ignored value twice',
    safetensorsBytes('{"q":{"x":{"a":1,"a":2}}}'),
    '"q"',
    'key "a" occurs twice',
  ],
  [
    'a metadata key twice',
    safetensorsBytes('{"__metadata__":{"a":"1","a":"2"}}'),
    'key "a" occurs twice',
  ],
  ['metadata twice', safetensorsBytes('{"__metadata__":{},"__metadata__":{}}'), 'occurs twice'],
  ['metadata of numbers', safetensorsBytes('{"__metadata__":{"a":1}}'), '"__metadata__"', '"a"'],
  ['metadata that is null', safetensorsBytes('{"__metadata__":null}'), '"__metadata__"'],
  ['metadata that is an array', safetensorsBytes('{"__metadata__":[]}'), '"__metadata__"'],
  ['a lone surrogate in a name', safetensorsBytes('{"\\ud800":{}}'), 'lone surrogate'],
  ['a wrong escape', safetensorsBytes('{"\\q":{}}'), 'escape'],
  ['a bare line feed in a name', safetensorsBytes('{"a\nb":{}}'), 'control character'],
  ['bytes after the last tensor', safetensorsBytes({ q: described('U8', [3], 0, 3) }, eight), '5'],
  ['bytes and no tensor', safetensorsBytes('{}', eight), '8 bytes'],
];

const tensors: Case[] = [
  ['a tensor that is a number', single(7), 'other than an object'],
  ['a tensor that is null', single(null), 'other than an object'],
  ['no dtype', single({ shape: [2], data_offsets: [0, 8] }), 'has no dtype'],
  ['no shape', single({ dtype: 'F32', data_offsets: [0, 8] }), 'has no shape'],
  ['no data_offsets', single({ dtype: 'F32', shape: [2] }), 'has no data_offsets'],
  ['an unknown dtype', single(described('F31', [2], 0, 8)), '"F31"', 'BF16'],
  ['a dtype in lower case', single(described('f32', [2], 0, 8)), '"f32"'],
  ['a dtype named as a method', single(described('toString', [2], 0, 8)), '"toString"'],
  ['a dtype that is a number', single(described(32, [2], 0, 8)), 'dtype is no string'],
  ['a shape that is null', shaped('null'), 'shape is no array'],
  ['a shape that is a string', shaped('"2"'), 'shape is no array'],
  ['a shape that is a number', shaped('2'), 'shape is no array'],
  ['a null in the shape', shaped('[null]'), 'shape', 'other than a number'],
  ['a string in the shape', shaped('["2"]'), 'shape', 'other than a number'],
  ['an array in the shape', shaped('[[2]]'), 'shape', 'other than a number'],
  ['NaN in the shape', shaped('[NaN]'), 'shape'],
  ['Infinity in the shape', shaped('[Infinity]'), 'shape'],
  ['a negative dimension', shaped('[-2]'), '"-2"'],
  ['minus zero as a dimension', shaped('[-0]'), '"-0"'],
  ['a fractional dimension', shaped('[2.5]'), '"2.5"'],
  ['a dimension with a point', shaped('[2.0]'), '"2.0"'],
  ['a dimension with an exponent', shaped('[2e0]'), '"2e0"'],
  ['a dimension of 1e400', shaped('[1e400]'), '"1e400"'],
  ['a dimension of 2^53', shaped('[9007199254740992]'), '"9007199254740992"'],
  ['a dimension of 400 digits', shaped(`[${'9'.repeat(400)}]`), 'no whole number'],
  ['a product beyond 2^53', shaped('[94906267,94906267]'), 'too many elements'],
  ['a product beyond 2^53 beside a zero', shaped('[94906267,94906267,0]'), 'too many elements'],
  ['a product beyond any double', shaped(`[${Array(32).fill('4294967296').join()}]`), 'too many'],
  ['a rank of 33', shaped(`[${Array(33).fill(1).join()}]`), 'more than 32'],
  ['offsets that are no array', offset('8'), 'data_offsets is no array'],
  ['one offset', offset('[8]'), 'not two'],
  ['three offsets', offset('[0,8,8]'), 'more than 2'],
  ['a negative offset', offset('[-8,0]'), '"-8"'],
  ['a fractional offset', offset('[0.5,8]'), '"0.5"'],
  ['an offset of 2^64', offset('[0,18446744073709551616]'), '"18446744073709551616"'],
  ['a string as offset', offset('["0",8]'), 'other than a number'],
  ['offsets that run backwards', offset('[8,0]'), 'backwards'],
  ['fewer bytes than the shape takes', single(described('F32', [3], 0, 8)), 'takes 12'],
  ['more bytes than the shape takes', single(described('F32', [1], 0, 8)), 'takes 4'],
  ['half a byte', single(described('F4', [3], 0, 2)), 'whole bytes'],
  ['offsets past the end', single(described('F32', [3], 0, 12)), 'past the end', 'cut short'],
  ['offsets far past the end', single(described('U8', [2 ** 49], 0, 2 ** 49)), 'past the end'],
  ['a hole before the tensor', single(described('F32', [1], 4, 8)), 'hole of 4 bytes'],
];

const pairs: Case[] = [
  [
    'an overlap',
    safetensorsBytes({ a: described('F32', [1], 0, 4), q: described('F32', [1], 2, 6) }, eight),
    'overlap',
    '"a"',
  ],
  ['the same bytes twice', safetensorsBytes({ a: good, q: good }, eight), 'overlap'],
  [
    'a hole between two tensors',
    safetensorsBytes({ a: described('U8', [1], 0, 1), q: described('U8', [6], 2, 8) }, eight),
    'hole of 1 bytes',
  ],
  [
    'an empty tensor inside another',
    safetensorsBytes({ a: good, q: described('F32', [0], 4, 4) }, eight),
    'overlap',
  ],
];

describe('a hostile safetensors file is refused with one line that names the file', () => {
  it.each<Case>(files)('%s', async (_what, content, ...parts) => {
    const path = folder.write('hostile.safetensors', content);
    await expectRefusal(() => openTensorFile(path), path, ...parts);
  });
});

describe('a hostile tensor is refused with one line that names the file and the tensor', () => {
  it.each<Case>([...tensors, ...pairs])('%s', async (_what, content, ...parts) => {
    const path = folder.write('hostile.safetensors', content);
    await expectRefusal(() => openTensorFile(path), path, 'tensor "q"', ...parts);
  });

  it('a name that would break the line or the terminal', async () => {
    const name = 'a\nb\u001b[31m\u2028\u202e';
    const path = folder.write('hostile.safetensors', safetensorsBytes({ [name]: 1 }));
    await expectRefusal(() => openTensorFile(path), path, 'a\\u000ab\\u001b[31m\\u2028\\u202e');
  });

  it('a name of a megabyte', async () => {
    const header = { ['q'.repeat(1 << 20)]: 1 };
    const path = folder.write('hostile.safetensors', safetensorsBytes(header));
    await expectRefusal(() => openTensorFile(path), path, 'tensor "qqqq');
  });
});
