/**
 * Sizes at which 8, 16, 31, 32, 53 and 64 bits end, and their neighbours; some that memory has, but
 * no small file; and those around the longest header of safetensors.
 */
export const hostileIntegers: readonly bigint[] = [
  ...[
    0n,
    1n,
    2n,
    7n,
    8n,
    127n,
    255n,
    256n,
    65535n,
    65536n,
    1n << 20n,
    1n << 24n,
    99_000_000n,
    100_000_001n,
  ],
  ...[(1n << 31n) - 1n, 1n << 31n, (1n << 32n) - 1n, 1n << 32n, (1n << 32n) + 1n],
  ...[(1n << 53n) - 1n, 1n << 53n, (1n << 53n) + 1n, 1n << 62n, (1n << 63n) - 1n, 1n << 63n],
  ...[(1n << 64n) - 1n, 1n << 64n],
];

const integerTexts = hostileIntegers.map(String);

/** Numbers as no careful writer spells them. */
export const hostileNumbers: readonly string[] = [
  ...integerTexts,
  ...['-1', '-0', '-9007199254740993', '1e3', '1E400', '-1e400', '1.5', '1e-400', '5e-324', '01'],
  ...[
    '+1',
    '1.',
    '.5',
    '0x10',
    '1_000',
    '1n',
    'NaN',
    '-NaN',
    'Infinity',
    '-Infinity',
    'nan',
    'inf',
  ],
  `1${'0'.repeat(400)}`,
];

/** Texts that are hard on terminals, encodings, paths and objects. */
export const hostileTexts: readonly string[] = [
  ...['', ' ', '0', '-', '.', '..', '../../etc/passwd', '/', 'q', 'out', 'meta', '__metadata__'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'null', 'true', 'none', 'NaN'],
  ...['a\nb', '\r\n', '\u001b[2J', '\u009b31m', '\u0000', '\u2028', '\u202e', '\ufeff', 'é', '😀'],
  ...['\ud800', '\udfff', '%s%n', '${x}', '`id`', "'", '"', '\\', 'x'.repeat(5000)],
];

/** JSON values in the place of others. */
export const hostileJson: readonly string[] = [
  ...hostileNumbers,
  ...hostileTexts.map((text) => JSON.stringify(text)),
  ...[
    'null',
    'true',
    'false',
    '{}',
    '[]',
    '[[]]',
    '{"toString":1}',
    '{"toString":null,"valueOf":1}',
  ],
  ...['"\\x"', '"\\ud800"', '"\\u12"', '"\n"', "'q'", 'undefined', '', '[', '{', '"', '//', '/**/'],
  ...['{"a":1,"a":2}', '{"__proto__":{"x":1}}', '[1,]', '{"a":1,}'],
  `${'['.repeat(100)}${']'.repeat(100)}`,
  '['.repeat(20_000),
  '{"a":'.repeat(20_000),
  `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
];

/** dtype names: those of both formats, those of others, and none at all. */
export const hostileDtypes: readonly string[] = [
  ...['BOOL', 'F4', 'F6_E2M3', 'U8', 'I8', 'F8_E5M2', 'F8_E4M3', 'F8_E8M0', 'F8_E4M3FNUZ', 'I16'],
  ...['U16', 'F16', 'BF16', 'I32', 'U32', 'F32', 'C64', 'F64', 'I64', 'U64', 'f32', 'F128', 'TF32'],
  ...['<f4', '>f4', '=f4', '|f4', '<f8', '>f8', '<f2', '>f2', '|V1', '<V2', '|V4', '<f16', '<c8'],
  ...['|b1', '|i1', '<u4', '|S5', '<U7', '<M8[ns]', '|O', '|V0', '<f', '<f-1', '<f999999999'],
  ...['<f9999999999', '|V999999999', '<U999999999', 'bfloat16', 'float8_e4m3fn', '|S0', '<U0'],
];
