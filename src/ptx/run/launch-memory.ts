import {
  createConstantMemory,
  createGlobalMemory,
  createTensorMap,
  genericAddress,
  type Allocation,
  type LaunchMemory,
  type SwizzleMode,
  type TensorElementType,
} from '../../machine/index.js';
import { RequestError } from '../../request-error.js';
import type { PlacedTensorMap } from '../instructions/index.js';
import type { Launch, LaunchTensor, LaunchTensorMap } from '../launch/index.js';
import type { PlaceVariable, Program } from '../program/index.js';

/** What of a launch lies in the memory of the device. */
export interface DeviceMemory {
  /** Allocates a variable of the module. */
  readonly place: PlaceVariable;
  /** Gives the variables of a program what they hold before the kernel starts. */
  readonly initialise: (program: Pick<Program, 'variables'>) => void;
  /** The bytes of a tensor as they are now. */
  readonly bytesOf: (tensor: string) => Uint8Array;
  /** The tensor map at a generic address; null where there is none. */
  readonly tensorMapAt: (address: number) => PlacedTensorMap | null;
  /** The memory of a launch of the program. */
  readonly launchMemory: (program: Pick<Program, 'localBytes'>) => LaunchMemory;
}

/**
 * Allocates what a launch names: a copy of each tensor, and scratch buffers that nobody has written, each with red zones. The
 * pointers to them are written into the parameters; one to nothing is null.
 *
 * @throws RequestError for tensor maps of forms that the machine does not have
 */
export function createDeviceMemory(launch: Launch): DeviceMemory {
  const global = createGlobalMemory();
  const constant = createConstantMemory();
  const parameters = launch.parameters.slice();
  const tensors = new Map(launch.tensors.map((tensor) => [tensor.name, allocate(tensor)] as const));
  const scratch = launch.scratch.map((bytes, i) => {
    const name = `scratch buffer ${i}`;
    return global.allocate({ name, contents: null, bytes });
  });

  function allocate({ name, shape, elementBits, bytes }: LaunchTensor) {
    if (bytes.byteLength === 0) return null;
    return global.allocate({ name, contents: bytes.slice(), tensor: { shape, elementBits } });
  }

  const view = new DataView(parameters.buffer);
  for (const { offset, target } of launch.pointers) {
    const base =
      target.kind === 'tensor' ? tensors.get(target.name)?.base : scratch[target.index].base;
    const byteOffset = target.kind === 'tensor' ? target.byteOffset : 0;
    view.setBigUint64(offset, BigInt(base === undefined ? 0 : base + byteOffset), true);
  }
  const maps = new Map(
    launch.tensorMaps.map(({ offset, map }) => [
      genericAddress('param', offset),
      placeMap(map, tensors.get(map.tensor)),
    ]),
  );
  return {
    tensorMapAt: (address) => maps.get(address) ?? null,
    place: ({ name, space, bytes }) => {
      const memory = space === 'const' ? constant : global;
      const isReadOnly = space === 'const';
      return memory.allocate({ name, contents: new Uint8Array(bytes), isReadOnly }).base;
    },
    initialise: ({ variables }) => {
      for (const { space, address, contents } of variables)
        (space === 'const' ? constant : global).find(address)?.bytes.set(contents);
    },
    bytesOf: (tensor) => tensors.get(tensor)?.bytes ?? new Uint8Array(0),
    launchMemory: ({ localBytes }) => ({ global, constant, parameters, localBytes }),
  };
}

const swizzles: readonly SwizzleMode[] = ['none', '32B', '64B', '128B'];

/** The types of elements that TMA reduces, by CUDA's names and shorter ones. */
const reducedTypes: Readonly<Partial<Record<string, TensorElementType>>> = Object.fromEntries(
  (
    [
      ['u32', ['uint32', 'u32', 'b32']],
      ['s32', ['int32', 's32', 'i32']],
      ['u64', ['uint64', 'u64', 'b64']],
      ['s64', ['int64', 's64', 'i64']],
      ['f16', ['float16', 'f16', 'fp16']],
      ['bf16', ['bfloat16', 'bf16']],
      ['f32', ['float32', 'f32', 'fp32', 'float32_ftz']],
      ['f64', ['float64', 'f64', 'fp64']],
    ] as const
  ).flatMap(([type, names]) => names.map((name) => [name, type])),
);

/** A tensor map on the memory of its tensor. RequestErrors: forms that the machine does not have. */
function placeMap(
  map: LaunchTensorMap,
  allocation: Allocation | null | undefined,
): PlacedTensorMap {
  const { tensor, byteOffset, elementBytes, globalDim, globalStrides, boxDim } = map;
  const refuse = (what: string): never => {
    throw new RequestError(`tensor map of ${tensor}: ${what} is not supported`);
  };
  if (!allocation) return refuse('a tensor without elements');
  const { base, bytes } = allocation;
  const swizzle = swizzles.find((one) => one === map.swizzle);
  if (swizzle === undefined) return refuse(`swizzle ${map.swizzle}`);
  if (map.interleave !== 'none') refuse(`interleave ${map.interleave}`);
  if (map.oobFill !== 'zero') refuse('filling with NaN');
  return {
    address: base + byteOffset,
    map: createTensorMap({
      name: tensor,
      bytes: bytes.subarray(byteOffset),
      address: base + byteOffset,
      elementBytes,
      elementType: reducedTypes[map.elementType],
      dims: globalDim,
      strides: globalStrides,
      box: boxDim,
      elementStrides: map.elementStrides,
      swizzle,
    }),
  };
}
