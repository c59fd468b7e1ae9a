import { describe, expect, it } from 'vitest';
import { bindLaunch, parseLaunchFile } from '../../../src/ptx/launch/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { capturedKernel, capturedKernels } from '../../fixtures/captured-ptx.js';
import { kernelText, launchOf, refusalOf, tensorOf } from './launches.js';

const noParameters = kernelText('');
const hexadecimal = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** The tensors of a safetensors file. */
function tensorsOf(file: Uint8Array) {
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(Buffer.from(file.subarray(8, 8 + length)).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  return new Map(
    Object.entries(header).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [first, end],
        },
      ]) => {
        const bytes = file.slice(8 + length + first, 8 + length + end);
        return [name, { name, dtype, shape, bytes, elementBits: 8 }] as const;
      },
    ),
  );
}

describe('captured launches', () => {
  const texts = [...new Set(capturedKernels.map(({ text }) => text))];
  it.each(texts)('of %s fit their kernels', async (text) => {
    const kernels = capturedKernels.filter((kernel) => kernel.text === text);
    const module = parsePtx(capturedKernel(kernels[0].name).ptx);
    for (const { name } of kernels) {
      const { launch, tensors } = capturedKernel(name);
      const file = await parseLaunchFile(JSON.stringify(launch), 'launch.json', []);
      const context = { tensors: tensorsOf(tensors), variables: {}, fileName: 'launch.json' };
      const bound = bindLaunch(file, { ...context, module });
      const count = (kind: string, parameters = launch.parameters): number =>
        parameters.reduce((sum, one) => {
          const members = (one as { readonly struct?: typeof launch.parameters }).struct ?? [];
          return sum + (Object.hasOwn(one, kind) ? 1 : 0) + count(kind, members);
        }, 0);
      expect(bound.pointers).toHaveLength(count('tensor'));
      expect(bound.tensorMaps).toHaveLength(count('tensorMap'));
      expect(bound.outputs.map((output) => output.name)).toEqual(launch.outputs);
    }
  });
});

describe('parameters', () => {
  it('lie one behind the other, each aligned as it is declared or as its type needs', async () => {
    const ptx = kernelText(
      '.param .u8 a, .param .f32 b, .param .u64 c, .param .align 16 .b8 d[8], .param .u16 e, .param .f64 f',
    );
    const { parameters, pointers } = await launchOf(
      {
        parameters: [
          { u8: 0xab },
          { f32: 1.5 },
          { tensor: 'q', byteOffset: '2 * 8' },
          { u64: '0xfedcba9876543210' },
          { s16: -2 },
          { f64: -0.5 },
        ],
      },
      { ptx },
    );
    expect(hexadecimal(parameters)).toBe(
      [
        'ab000000',
        '0000c03f',
        '0000000000000000',
        '1032547698badcfe',
        'feff000000000000',
        '000000000000e0bf',
      ].join(''),
    );
    expect(pointers).toEqual([
      { offset: 8, target: { kind: 'tensor', name: 'q', byteOffset: 16 } },
    ]);
  });

  it('are structs by the layout of C, also nested', async () => {
    const { parameters, pointers, scratch } = await launchOf(
      {
        parameters: [
          {
            struct: [
              { u8: 1 },
              { struct: [{ u16: 2 }, { scratch: 64 }, { u8: 3 }] },
              { f16: 1 },
              { bf16: '-inf' },
            ],
          },
        ],
      },
      { ptx: kernelText('.param .align 8 .b8 s[40]') },
    );
    expect(hexadecimal(parameters)).toBe(
      [
        '0100000000000000',
        '0200000000000000',
        '0000000000000000',
        '0300000000000000',
        '003c80ff00000000',
      ].join(''),
    );
    expect(pointers).toEqual([{ offset: 16, target: { kind: 'scratch', index: 0 } }]);
    expect(scratch).toEqual([64]);
  });

  it('without bytes of scratch are null pointers', async () => {
    const launch = await launchOf(
      { parameters: [{ scratch: 0 }] },
      { ptx: kernelText('.param .u64 a') },
    );
    expect(launch).toMatchObject({ pointers: [], scratch: [], parameters: new Uint8Array(8) });
  });

  it('are numbers of the problem', async () => {
    const launch = await launchOf(
      {
        grid: ['ceil(sq / 64)', 'heads * batch'],
        dynamicSharedBytes: 'sq > 64 ? 32768 : 16384',
        parameters: [{ f32: 'scale' }, { s32: 'sq' }, { s64: '-9007199254740993' }],
      },
      {
        ptx: kernelText('.param .f32 a, .param .u32 b, .param .b64 c'),
        variables: { sq: 130, heads: 4, batch: 2, scale: 0.25 },
      },
    );
    expect(launch.grid).toEqual([3, 8, 1]);
    expect(launch.dynamicSharedBytes).toBe(32768);
    expect(hexadecimal(launch.parameters)).toBe('0000803e82000000ffffffffffffdfff');
  });

  const one = (parameter: object, declaration: string) =>
    refusalOf({ parameters: [parameter] }, { ptx: kernelText(`.param ${declaration} p`) });
  it.each([
    [{ f32: 1 }, '.u64', 'parameters[0]: has 4 bytes as a f32; the kernel declares .u64 p, of 8'],
    [{ f32: 1 }, '.u32', 'parameters[0]: is a f32; the kernel declares .u32 p'],
    [{ s32: 1 }, '.f32', 'parameters[0]: is a s32; the kernel declares .f32 p'],
    [{ u32: -1 }, '.u32', 'parameters[0]: is -1; a u32 goes from 0 to 4294967295'],
    [
      { s32: 2 ** 31 },
      '.u32',
      'parameters[0]: is 2147483648; a s32 goes from -2147483648 to 2147483647',
    ],
    [
      { s32: 1.5 },
      '.u32',
      'parameters[0]: is 1.5; a s32 is a whole number, so round it (floor, ceil)',
    ],
    [
      { u64: 2 ** 60 },
      '.u64',
      'parameters[0]: is 1152921504606847000, which JSON may have rounded; write it as a text of digits',
    ],
    [
      { s32: 'sq' },
      '.u32',
      'parameters[0]: "sq": "sq" is of a problem, and there is none; give a number',
    ],
    [{ tensor: 'Q' }, '.u64', 'parameters[0]: there is no tensor "Q"; did you mean "q"?'],
    [
      { tensor: 'q', byteOffset: 5000 },
      '.u64',
      'parameters[0]: byteOffset is 5000; give a whole number up to the 4096 bytes of "q"',
    ],
    [
      { scratch: 2 ** 40 },
      '.u64',
      'parameters[0]: scratch is 1099511627776 bytes; give a whole number up to 2^32',
    ],
    [
      { struct: [{ u8: 1 }, { u32: 1 }] },
      '.align 4 .b32',
      'parameters[0]: has 8 bytes as a struct; the kernel declares .b32 p, of 4',
    ],
    [{ u32: 1, s32: 1 }, '.u32', 'parameters[0] is {u32, s32}; give one of tensor, scratch'],
    [{ int: 1 }, '.u32', 'parameters[0] is {int}; give one of tensor, scratch'],
    [{ u32: [1] }, '.u32', 'parameters[0] is wrong: u32 must be number,string'],
    [
      { tensor: 'q', offset: 1 },
      '.u64',
      'parameters[0] is wrong: a tensor has no member "offset"; leave it out',
    ],
  ])('%j for %s', async (parameter, declaration, message) => {
    expect((await one(parameter, declaration)).slice(0, 13 + message.length)).toBe(
      `launch.json: ${message}`,
    );
  });

  it('are as many as the kernel has', async () => {
    expect(await refusalOf({}, { ptx: kernelText('.param .u32 a') })).toBe(
      'launch.json: the kernel has 1 parameters, and the launch gives 0; a pointer that the compiler appended is {"scratch": 0}',
    );
  });

  it('of sizes that nobody could hold are refused before anything is allocated', async () => {
    const parameters = '.param .b8 a[281474976710656]';
    expect(await refusalOf({ parameters: [{ u8: 1 }] }, { ptx: kernelText(parameters) })).toBe(
      'launch.json: parameter a ends at byte 281474976710656 of the parameters; a kernel has at most 32764',
    );
  });
});

describe('a launch', () => {
  it('takes from the kernel what it leaves out', async () => {
    const ptx = kernelText('', '.reqntid 128, 2 .reqnctapercluster 2');
    const launch = await launchOf({ grid: [4], block: undefined }, { ptx });
    expect(launch).toMatchObject({ grid: [4, 1, 1], block: [128, 2, 1], cluster: [2, 1, 1] });
  });

  it.each([
    [{ entry: 'kk' }, '', 'the PTX has no kernel "kk"; it has k'],
    [{ grid: [0] }, '', 'grid[0] is 0; give a whole number from 1 to 2147483647'],
    [{ grid: [1, 65536] }, '', 'grid[1] is 65536; give a whole number from 1 to 65535'],
    [{ block: [33, 32] }, '', 'block has 1056 threads; give at most 1024'],
    [{ block: [64] }, '.maxntid 32', 'block has 64 threads; give at most 32'],
    [
      { block: [64] },
      '.reqntid 32',
      'block is [64, 1, 1]; the kernel is compiled for [32, 1, 1] (.reqntid)',
    ],
    [{ block: undefined }, '', 'block is missing, and the kernel does not say it by .reqntid'],
    [{ cluster: [2] }, '', 'grid is [1, 1, 1], no multiple of the cluster [2, 1, 1]; make it one'],
    [{ grid: [16, 2], cluster: [16, 2] }, '', 'cluster has 32 CTAs; give at most 16'],
    [{ grid: [4], cluster: [4] }, '.maxclusterrank 2', 'cluster has 4 CTAs; give at most 2'],
    [
      { dynamicSharedBytes: 232449 },
      '',
      'dynamicSharedBytes is 232449; give a whole number up to 232448',
    ],
    [{ outputs: ['x'] }, '', 'there is no tensor "x"; there are q, o'],
    [
      { outputs: [{ name: 'o', as: 'outt' }] },
      '',
      'output "o" is given as "outt"; give one of out, lse',
    ],
    [
      { outputs: [{ name: 'o', format: 'bf61' }] },
      '',
      'output "o" has the format "bf61"; give one of ',
    ],
    [{ grids: [1] }, '', 'the file has no member "grids"; leave it out'],
    [{ grid: 1 }, '', 'grid must be array'],
    [{ entry: 1 }, '', 'entry must be string'],
  ])('%j with "%s" is refused', async (file, directives, message) => {
    const refusal = await refusalOf(file, { ptx: kernelText('', directives) });
    expect(refusal.slice(0, 13 + message.length)).toBe(`launch.json: ${message}`);
    expect(refusal).not.toContain('\n');
  });

  it('is JSON', async () => {
    await expect(parseLaunchFile('{', 'a\nb.json', [])).rejects.toThrow(
      /^a\\u\{a\}b\.json: is no JSON: /,
    );
    await expect(parseLaunchFile('[]', 'a', [])).rejects.toThrow('a: the file must be object');
  });

  it('is of a kernel with addresses of 64 bits', async () => {
    const ptx = noParameters.replace('.address_size 64', '.address_size 32');
    expect(await refusalOf({}, { ptx })).toContain('compile it for 64 (.address_size 64)');
  });
});

describe('tensor maps', () => {
  const map = {
    tensor: 'q',
    elementType: 'bf16',
    globalDim: [64, 8],
    globalStrides: [128],
    boxDim: [64, 4],
    swizzle: '128B',
  };
  const ptx = kernelText('.param .align 64 .b8 m[128]');
  const mapOf = async (changes: object) =>
    (await launchOf({ parameters: [{ tensorMap: { ...map, ...changes } }] }, { ptx }))
      .tensorMaps[0];

  it('take the words of CUDA, in full or short', async () => {
    const full = {
      elementType: 'CU_TENSOR_MAP_DATA_TYPE_BFLOAT16',
      swizzle: 'CU_TENSOR_MAP_SWIZZLE_128B',
      interleave: 'CU_TENSOR_MAP_INTERLEAVE_NONE',
      l2Promotion: 'CU_TENSOR_MAP_L2_PROMOTION_L2_256B',
      oobFill: 'CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA',
      elementStrides: [1, 2],
    };
    expect(await mapOf(full)).toMatchObject({
      offset: 0,
      map: {
        elementBytes: 2,
        swizzle: '128B',
        interleave: 'none',
        oobFill: 'nan',
        elementStrides: [1, 2],
      },
    });
    expect(await mapOf({})).toMatchObject({
      map: { swizzle: '128B', oobFill: 'zero', elementStrides: [1, 1] },
    });
  });

  it.each([
    [{ globalDim: [], globalStrides: [], boxDim: [] }, 'globalDim has 0 dimensions; give 1 to 5'],
    [{ globalStrides: [] }, 'globalStrides has 0 numbers for 2 dimensions; give 1'],
    [{ boxDim: [64] }, 'boxDim has 1 numbers for 2 dimensions; give 2'],
    [{ globalStrides: [136] }, 'globalStrides[0] is 136; give a multiple of 16 from 0 to'],
    [{ globalDim: [64, 0] }, 'globalDim[1] is 0; give a whole number from 1 to 4294967296'],
    [{ boxDim: [64, 257] }, 'boxDim[1] is 257; give a whole number from 1 to 256'],
    [{ boxDim: [4, 4] }, 'boxDim[0] is 8 bytes; give a multiple of 16 bytes'],
    [{ boxDim: [128, 1] }, 'boxDim[0] is 256 bytes, and swizzle 128B takes at most 128'],
    [
      { boxDim: [32, 4], swizzle: '32B' },
      'boxDim[0] is 64 bytes, and swizzle 32B takes at most 32',
    ],
    [{ elementStrides: [1, 9] }, 'elementStrides[1] is 9; give a whole number from 1 to 8'],
    [{ byteOffset: 8 }, 'byteOffset[0] is 8; give a multiple of 16'],
    [{ interleave: '32B' }, 'globalDim has 2 dimensions; give 3 to 5'],
    [
      {
        interleave: '32B',
        globalDim: [8, 2, 2],
        globalStrides: [32, 64],
        boxDim: [8, 1, 1],
        elementStrides: [1, 1, 1],
      },
      'swizzle is 128B and interleave 32B; make the swizzle 32B',
    ],
    [
      { elementType: 'u16', oobFill: 'nan' },
      'oobFill is NaN, and elementType u16 is none of floating-point',
    ],
    [
      { elementType: '16U4_ALIGN16B' },
      'elementType "16u4_align16b": packed elements of 4 and 6 bits are not supported',
    ],
    [{ elementType: 'bf61' }, 'elementType "bf61" is unknown; use uint8,'],
    [{ swizzle: '256B' }, 'swizzle "256B" is unknown; use none, 32b'],
    [{ globalDim: [64, 33] }, 'its last element ends at byte 4224 of "q", which has 4096'],
  ])('%j is refused', async (changes, message) => {
    const refusal = await refusalOf(
      { parameters: [{ tensorMap: { ...map, ...changes } }] },
      { ptx },
    );
    expect(refusal).toContain(`launch.json: parameters[0]: ${message}`);
  });

  it('have a parameter that is aligned for them', async () => {
    const misaligned = kernelText('.param .u64 a, .param .align 8 .b8 m[128]');
    const refusal = await refusalOf(
      { parameters: [{ u64: 1 }, { tensorMap: map }] },
      { ptx: misaligned, tensors: [tensorOf('q')] },
    );
    expect(refusal).toContain(
      'parameters[1]: needs an alignment of 64, and .b8 m[128] lies at byte 8',
    );
  });
});
