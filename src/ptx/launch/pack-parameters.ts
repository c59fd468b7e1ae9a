import { encode, formats } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { formatGroupedCount, plainText } from '../../words/index.js';
import type { VariableDeclaration } from '../syntax/index.js';
import { amountOf, type Evaluation, integerOf } from './amounts.js';
import type { Launch, LaunchTensor } from './launch.js';
import { decodeTensorMap, type EncodedTensorMap } from './encoded-tensor-map.js';
import type { Amount, EncodedTensorMapFile, ParameterFile, TensorMapFile } from './launch-file.js';
import type { ScalarKind } from './launch-schemas.js';
import { alignedTo, layParameters, type ParameterPlace } from './parameter-layout.js';
import { checkTensorMap } from './tensor-map.js';

/** The result of packing: the parts of a launch that its parameters make. */
type Packed = Pick<Launch, 'parameters' | 'pointers' | 'tensorMaps' | 'scratch'>;

/** The state of packing: the destination of the parameters, and their sources. */
interface Packing extends Evaluation {
  readonly view: DataView;
  readonly pointers: Launch['pointers'][number][];
  readonly tensorMaps: Launch['tensorMaps'][number][];
  readonly scratch: number[];
  readonly findTensor: (name: string) => LaunchTensor;
}

const mapBytes = 128;
const mapAlignment = 64;
/** Maximum size in bytes of one buffer in the machine's global memory. */
const mostScratch = 2 ** 32;

/** Bytes of a parameter by the C ABI, and its alignment. */
function sizeOf(parameter: ParameterFile): { readonly size: number; readonly alignment: number } {
  if (parameter.kind === 'tensorMap' || parameter.kind === 'encodedTensorMap')
    return { size: mapBytes, alignment: mapAlignment };
  if (parameter.kind === 'scalar') {
    const size = Number(/\d+$/.exec(parameter.type)?.[0]) / 8;
    return { size, alignment: size };
  }
  if (parameter.kind !== 'struct') return { size: 8, alignment: 8 };
  let [end, alignment] = [0, 1];
  for (const member of parameter.members) {
    const own = sizeOf(member);
    end = alignedTo(end, own.alignment) + own.size;
    alignment = Math.max(alignment, own.alignment);
  }
  return { size: alignedTo(end, alignment), alignment };
}

/** Writes a number in its type. */
function packScalar(
  packing: Packing,
  offset: number,
  type: ScalarKind,
  parameter: ScalarFile,
): void {
  const { view } = packing;
  const bits = Number(/\d+$/.exec(type)?.[0]);
  if (type.startsWith('s') || type.startsWith('u')) {
    const value = BigInt.asUintN(bits, integerOf(packing, parameter.value, type));
    for (let byte = 0; byte < bits / 8; byte++)
      view.setUint8(offset + byte, Number((value >> BigInt(8 * byte)) & 0xffn));
    return;
  }
  const value = floatOf(packing, parameter.value);
  if (type === 'f64') view.setFloat64(offset, value, true);
  else if (type === 'f32') view.setFloat32(offset, value, true);
  else view.setUint16(offset, encode(formats[type === 'f16' ? 'fp16' : 'bf16'], value), true);
}

/** Numbers that JSON cannot write. */
const specialNumbers: Readonly<Record<string, number>> = {
  inf: Infinity,
  '-inf': -Infinity,
  nan: NaN,
};

function floatOf(packing: Packing, amount: Amount): number {
  const isSpecial = typeof amount === 'string' && Object.hasOwn(specialNumbers, amount);
  return isSpecial ? specialNumbers[amount] : amountOf(packing, amount);
}
type ScalarFile = Extract<ParameterFile, { kind: 'scalar' }>;

/** The arguments of a tensor map, with its numbers calculated. */
function argumentsOf(packing: Packing, map: TensorMapFile): EncodedTensorMap {
  const numbers = (amounts: TensorMapFile['boxDim']) =>
    amounts.map((amount) => amountOf(packing, amount));
  return {
    elementType: map.elementType,
    globalDim: numbers(map.globalDim),
    globalStrides: numbers(map.globalStrides),
    boxDim: numbers(map.boxDim),
    elementStrides: numbers(map.elementStrides ?? map.boxDim.map(() => 1)),
    interleave: map.interleave ?? 'none',
    swizzle: map.swizzle ?? 'none',
    l2Promotion: map.l2Promotion ?? 'none',
    oobFill: map.oobFill ?? 'none',
  };
}

/** Records the place of a tensor map, and its tensor. */
function packMap(
  packing: Packing,
  offset: number,
  { tensor, byteOffset = 0 }: TensorMapFile | EncodedTensorMapFile,
  request: EncodedTensorMap,
): void {
  const tensorBytes = packing.findTensor(tensor).bytes.byteLength;
  const place = { tensor, tensorBytes, byteOffset: amountOf(packing, byteOffset) };
  packing.tensorMaps.push({ offset, map: checkTensorMap({ ...request, ...place }) });
}

/** Writes a parameter, or a member of a struct. */
function pack(packing: Packing, offset: number, parameter: ParameterFile): void {
  switch (parameter.kind) {
    case 'scalar':
      return packScalar(packing, offset, parameter.type, parameter);
    case 'tensor': {
      const { name, bytes } = packing.findTensor(parameter.tensor);
      const byteOffset = amountOf(packing, parameter.byteOffset);
      if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset > bytes.byteLength)
        throw new RequestError(
          `byteOffset is ${byteOffset}; give a whole number up to the ${bytes.byteLength} bytes of "${plainText(name)}"`,
        );
      packing.pointers.push({ offset, target: { kind: 'tensor', name, byteOffset } });
      return;
    }
    case 'scratch': {
      const bytes = amountOf(packing, parameter.bytes);
      if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > mostScratch)
        throw new RequestError(`scratch is ${bytes} bytes; give a whole number up to 2^32`);
      // Scratch without bytes is a null pointer.
      if (bytes === 0) return;
      packing.pointers.push({ offset, target: { kind: 'scratch', index: packing.scratch.length } });
      packing.scratch.push(bytes);
      return;
    }
    case 'tensorMap':
      return packMap(packing, offset, parameter.map, argumentsOf(packing, parameter.map));
    case 'encodedTensorMap':
      return packMap(packing, offset, parameter.map, decodeTensorMap(parameter.map.bytes));
    case 'struct': {
      let end = offset;
      for (const member of parameter.members) {
        const { size, alignment } = sizeOf(member);
        end = alignedTo(end, alignment);
        pack(packing, end, member);
        end += size;
      }
    }
  }
}

/** Whether numbers of a kind fit a parameter with this declaration: `.b` types take any number of their size. */
function fits(kind: ScalarKind, { type, vector, dimensions }: VariableDeclaration): boolean {
  if (dimensions.length > 0 || vector > 1 || type.startsWith('b')) return true;
  return type.startsWith('f') === (kind.startsWith('f') || kind === 'bf16');
}

/**
 * Checks a parameter against the entry.
 * @throws RequestError for a parameter of another size or kind than the entry declares
 */
function checkAgainst(
  parameter: ParameterFile,
  { declaration, size, offset }: ParameterPlace,
): void {
  const own = sizeOf(parameter);
  const { type, dimensions, name } = declaration;
  const declared = `.${type} ${name}${dimensions.map((length) => `[${length ?? ''}]`).join('')}`;
  const given = parameter.kind === 'scalar' ? parameter.type : parameter.kind;
  if (own.size !== size)
    throw new RequestError(
      `has ${formatGroupedCount(own.size, 'byte')} as a ${given}; the kernel declares ${plainText(declared)}, of ${size}`,
    );
  if (parameter.kind === 'scalar' && !fits(parameter.type, declaration))
    throw new RequestError(`is a ${given}; the kernel declares ${plainText(declared)}`);
  if (offset % own.alignment !== 0)
    throw new RequestError(
      `needs an alignment of ${own.alignment}, and ${plainText(declared)} lies at byte ${offset} of the parameters`,
    );
}

/**
 * Packs the parameters of a launch as the kernel declares them.
 *
 * @throws RequestError that names the parameter: too many or too few parameters, another size or kind than declared, or
 * numbers that break a rule
 */
export function packParameters(
  declarations: readonly VariableDeclaration[],
  parameters: readonly ParameterFile[],
  evaluation: Evaluation,
  findTensor: (name: string) => LaunchTensor,
): Packed {
  if (parameters.length !== declarations.length)
    throw new RequestError(
      `the kernel has ${declarations.length} parameters, and the launch gives ${parameters.length}; a pointer that the compiler appended is {"scratch": 0}`,
    );
  const { places, bytes } = layParameters(declarations);
  const view = new DataView(new ArrayBuffer(bytes));
  const packing: Packing = {
    ...evaluation,
    view,
    pointers: [],
    tensorMaps: [],
    scratch: [],
    findTensor,
  };
  parameters.forEach((parameter, i) => {
    const place = places[i];
    try {
      checkAgainst(parameter, place);
      pack(packing, place.offset, parameter);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      throw new RequestError(`parameters[${i}]: ${error.message}`);
    }
  });
  const { pointers, tensorMaps, scratch } = packing;
  return { parameters: new Uint8Array(view.buffer), pointers, tensorMaps, scratch };
}
