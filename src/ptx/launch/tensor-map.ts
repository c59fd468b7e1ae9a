import { RequestError } from '../../request-error.js';

/** The permutation of the 16-byte chunks of rows in shared memory by a tensor map. */
type TensorMapSwizzle =
  ('none' | '32B' | '64B' | '128B') | ('128B-atom-32B' | '128B-atom-32B-flip-8B' | '128B-atom-64B');

/** A tensor map: the arguments of cuTensorMapEncodeTiled, checked. Dimension 0 is the innermost. */
export interface LaunchTensorMap {
  /** The tensor of the map, and the offset of the map's address in it. */
  readonly tensor: string;
  readonly byteOffset: number;
  readonly elementType: string;
  readonly elementBytes: 1 | 2 | 4 | 8;
  readonly globalDim: readonly number[];
  /** Strides in bytes, from dimension 1 on. */
  readonly globalStrides: readonly number[];
  readonly boxDim: readonly number[];
  readonly elementStrides: readonly number[];
  readonly interleave: 'none' | '16B' | '32B';
  readonly swizzle: TensorMapSwizzle;
  /** The fill value for reads outside of the tensor: zeros, or the NaN that `NAN_REQUEST_ZERO_FMA` stands for. */
  readonly oobFill: 'zero' | 'nan';
}

/** The arguments of a tensor map as in a launch file: the enumerations as texts, and all numbers. */
export interface TensorMapRequest extends Omit<
  LaunchTensorMap,
  'elementBytes' | 'elementType' | 'interleave' | 'swizzle' | 'oobFill'
> {
  readonly elementType: string;
  readonly interleave: string;
  readonly swizzle: string;
  readonly l2Promotion: string;
  readonly oobFill: string;
  readonly tensorBytes: number;
}

interface ElementType {
  readonly bytes: 1 | 2 | 4 | 8;
  readonly isFloat: boolean;
}

const integer = (bytes: ElementType['bytes']): ElementType => ({ bytes, isFloat: false });
const float = (bytes: ElementType['bytes']): ElementType => ({ bytes, isFloat: true });

/**
 * Element types by CUDA's name without its prefix, in lower case, and by shorter names (CUDA driver API,
 * CUtensorMapDataType).
 */
const elementTypes: ReadonlyMap<string, ElementType> = new Map([
  ...(['uint8', 'u8', 's8', 'int8', 'i8', 'b8', 'e4m3', 'e5m2', 'fp8'] as const).map(
    (name) => [name, integer(1)] as const,
  ),
  ...(['uint16', 'u16', 'int16', 's16', 'i16', 'b16'] as const).map(
    (name) => [name, integer(2)] as const,
  ),
  ...(['uint32', 'u32', 'int32', 's32', 'i32', 'b32'] as const).map(
    (name) => [name, integer(4)] as const,
  ),
  ...(['uint64', 'u64', 'int64', 's64', 'i64', 'b64'] as const).map(
    (name) => [name, integer(8)] as const,
  ),
  ...(['float16', 'f16', 'fp16', 'bfloat16', 'bf16'] as const).map(
    (name) => [name, float(2)] as const,
  ),
  ...(['float32', 'f32', 'fp32', 'float32_ftz', 'tfloat32', 'tf32', 'tfloat32_ftz'] as const).map(
    (name) => [name, float(4)] as const,
  ),
  ...(['float64', 'f64', 'fp64'] as const).map((name) => [name, float(8)] as const),
]);
/** Packed elements of 4 and 6 bits, whose layout in shared memory is not modelled here. */
const packedTypes: ReadonlySet<string> = new Set([
  ...['16u4_align8b', '16u4_align16b', '16u6_align16b'],
]);

const swizzles: ReadonlyMap<string, { name: TensorMapSwizzle; span: number }> = new Map([
  ['none', { name: 'none', span: Infinity }],
  ['32b', { name: '32B', span: 32 }],
  ['64b', { name: '64B', span: 64 }],
  ['128b', { name: '128B', span: 128 }],
  ['128b_atom_32b', { name: '128B-atom-32B', span: 128 }],
  ['128b_atom_32b_flip_8b', { name: '128B-atom-32B-flip-8B', span: 128 }],
  ['128b_atom_64b', { name: '128B-atom-64B', span: 128 }],
] as const);
const interleaves: ReadonlyMap<string, LaunchTensorMap['interleave']> = new Map([
  ['none', 'none'],
  ['16b', '16B'],
  ['32b', '32B'],
]);
const fills: ReadonlyMap<string, LaunchTensorMap['oobFill']> = new Map([
  ['none', 'zero'],
  ['zero', 'zero'],
  ['nan', 'nan'],
  ['nan_request_zero_fma', 'nan'],
]);
const promotions: ReadonlyMap<string, null> = new Map(
  ['none', 'l2_64b', 'l2_128b', 'l2_256b', '64b', '128b', '256b'].map((name) => [name, null]),
);

/** The value that `text` names in a table: CUDA's name, or the part after its prefix, in any case. */
function oneOf<Value>(
  what: string,
  prefix: string,
  text: string,
  table: ReadonlyMap<string, Value>,
): Value {
  const short = text.toLowerCase().replace(`cu_tensor_map_${prefix}_`, '').replaceAll('-', '_');
  const value = table.get(short);
  if (value !== undefined) return value;
  throw new RequestError(
    `${what} "${text.slice(0, 60)}" is unknown; use ${[...table.keys()].join(', ')}`,
  );
}

const most = { dimensions: 5, extent: 2 ** 32, stride: 2 ** 40, box: 256, elementStride: 8 };

function require(holds: boolean, problem: string): void {
  if (!holds) throw new RequestError(problem);
}

function checkEach(
  what: string,
  values: readonly number[],
  [least, greatest, multiple]: readonly [number, number, number],
): void {
  values.forEach((value, i) => {
    const holds =
      Number.isSafeInteger(value) && value >= least && value <= greatest && value % multiple === 0;
    const rule = `${multiple === 1 ? 'a whole number' : `a multiple of ${multiple}`} from ${least} to ${greatest}`;
    require(holds, `${what}[${i}] is ${value}; give ${rule}`);
  });
}

/** Checks the rules for single numbers and for the lengths of lists. */
function checkNumbers(request: TensorMapRequest, interleave: LaunchTensorMap['interleave']): void {
  const { globalDim, globalStrides, boxDim, elementStrides, byteOffset } = request;
  const rank = globalDim.length;
  const least = interleave === 'none' ? 1 : 3;
  require(rank >= least &&
    rank <=
      most.dimensions, `globalDim has ${rank} dimensions; give ${least} to ${most.dimensions}`);
  for (const [what, { length }, due] of [
    ['globalStrides', globalStrides, rank - 1],
    ['boxDim', boxDim, rank],
    ['elementStrides', elementStrides, rank],
  ] as const)
    require(length === due, `${what} has ${length} numbers for ${rank} dimensions; give ${due}`);
  const multiple = interleave === '32B' ? 32 : 16;
  checkEach('byteOffset', [byteOffset], [0, most.stride, multiple]);
  checkEach('globalDim', globalDim, [1, most.extent, 1]);
  checkEach('globalStrides', globalStrides, [0, most.stride - multiple, multiple]);
  checkEach('boxDim', boxDim, [1, most.box, 1]);
  checkEach('elementStrides', elementStrides, [1, most.elementStride, 1]);
}

/** Checks the rules that relate swizzling, interleaving and the box's inner dimension. */
function checkBox(
  rowBytes: number,
  interleave: LaunchTensorMap['interleave'],
  swizzle: string,
): void {
  if (interleave === '32B')
    require(swizzle === '32B', `swizzle is ${swizzle} and interleave 32B; make the swizzle 32B`);
  if (interleave !== 'none') return;
  require(rowBytes % 16 === 0, `boxDim[0] is ${rowBytes} bytes; give a multiple of 16 bytes`);
  const span = [...swizzles.values()].find(({ name }) => name === swizzle)?.span ?? Infinity;
  require(rowBytes <=
    span, `boxDim[0] is ${rowBytes} bytes, and swizzle ${swizzle} takes at most ${span}; make the box narrower`);
}

/**
 * A tensor map whose arguments cuTensorMapEncodeTiled would accept (CUDA driver API, "Tensor Map Object Management"), and
 * which stays within its tensor.
 *
 * @throws RequestError for the first argument that breaks a rule
 */
export function checkTensorMap(request: TensorMapRequest): LaunchTensorMap {
  const { tensor, byteOffset, globalDim, globalStrides, boxDim, elementStrides } = request;
  const type = request.elementType.toLowerCase().replace('cu_tensor_map_data_type_', '');
  require(!packedTypes.has(
    type,
  ), `elementType "${type}": packed elements of 4 and 6 bits are not supported yet; expand them to bytes`);
  const element = oneOf('elementType', 'data_type', request.elementType, elementTypes);
  const interleave = oneOf('interleave', 'interleave', request.interleave, interleaves);
  const swizzle = oneOf('swizzle', 'swizzle', request.swizzle, swizzles);
  const oobFill = oneOf('oobFill', 'float_oob_fill', request.oobFill, fills);
  oneOf('l2Promotion', 'l2_promotion', request.l2Promotion, promotions);
  checkNumbers(request, interleave);
  checkBox(boxDim[0] * element.bytes, interleave, swizzle.name);
  require(oobFill === 'zero' ||
    element.isFloat, `oobFill is NaN, and elementType ${type} is none of floating-point numbers; fill with zeros`);
  const end = globalStrides.reduce(
    (sum, stride, i) => sum + (globalDim[i + 1] - 1) * stride,
    byteOffset + globalDim[0] * element.bytes,
  );
  require(end <=
    request.tensorBytes, `its last element ends at byte ${end} of "${tensor}", which has ${request.tensorBytes}; make globalDim or globalStrides smaller`);
  return {
    tensor,
    byteOffset,
    globalDim,
    globalStrides,
    boxDim,
    elementStrides,
    interleave,
    oobFill,
    elementType: type,
    elementBytes: element.bytes,
    swizzle: swizzle.name,
  };
}
