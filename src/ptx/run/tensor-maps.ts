import {
  createTensorMap,
  type Allocation,
  type SwizzleMode,
  type TensorElementType,
} from '../../machine/index.js';
import { RequestError } from '../../request-error.js';
import type { PlacedTensorMap, TensorMaps } from '../instructions/index.js';
import { checkTensorMap, decodeTensorMapBytes, type LaunchTensorMap } from '../launch/index.js';

const swizzles: readonly SwizzleMode[] = ['none', '32B', '64B', '128B'];

/** The element types of reductions by TMA, by CUDA's names and shorter ones. */
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

/** A tensor map on the memory of its tensor. RequestErrors: forms that the machine does not support. */
export function placeMap(
  map: LaunchTensorMap,
  allocation: Allocation | null | undefined,
): PlacedTensorMap {
  const { tensor, byteOffset, elementBytes, globalDim, globalStrides, boxDim } = map;
  const refuse = (what: string): never => {
    throw new RequestError(`tensor map of ${tensor}: ${what} is not supported`);
  };
  if (!allocation) return refuse('a tensor without elements');
  const { base, store } = allocation;
  const swizzle = swizzles.find((one) => one === map.swizzle);
  if (swizzle === undefined) return refuse(`swizzle ${map.swizzle}`);
  if (map.interleave !== 'none') refuse(`interleave ${map.interleave}`);
  return {
    address: base + byteOffset,
    map: createTensorMap({
      name: tensor,
      place: { store, offset: byteOffset },
      address: base + byteOffset,
      elementBytes,
      elementType: reducedTypes[map.elementType],
      dims: globalDim,
      strides: globalStrides,
      box: boxDim,
      elementStrides: map.elementStrides,
      swizzle,
      fill: map.oobFill,
    }),
  };
}

/** Facts about memory that tensor maps in it need. */
export interface MapMemory {
  /** The maps among the parameters, by their generic addresses. */
  readonly parameters: ReadonlyMap<number, PlacedTensorMap>;
  /** The allocation of global memory that an address lies in or next to. */
  readonly find: (address: number) => Allocation | undefined;
  /** The contents of an allocation before the kernel started; null where nobody had written any. */
  readonly before: (allocation: Allocation) => Uint8Array | null;
}

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** The tensor maps of a launch, before any of them has changed. */
export function createTensorMaps({ parameters, find, before }: MapMemory): TensorMaps {
  const released = new Map<number, string>();
  const acquired = new Map<number, string>();
  const placed = new Map<string, PlacedTensorMap | string>();
  let isAllReleased = false;

  /** Whether the launch has put these bytes at the address. */
  function isOfLaunch(address: number, bytes: Uint8Array): boolean {
    const allocation = find(address);
    const contents = allocation === undefined ? null : before(allocation);
    if (allocation === undefined || contents === null) return false;
    const at = address - allocation.base;
    return hexOf(contents.subarray(at, at + bytes.length)) === hexOf(bytes);
  }

  /** The map with these bytes, on the tensor that contains its address. */
  function place(bytes: Uint8Array): PlacedTensorMap | string {
    const address = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
    const allocation = find(address);
    if (allocation === undefined || address < allocation.base || address >= allocation.end)
      return `the tensor map is of address 0x${address.toString(16)}, where no tensor is`;
    try {
      const byteOffset = address - allocation.base;
      const { name: tensor, byteLength: tensorBytes } = allocation;
      const request = { ...decodeTensorMapBytes(bytes), tensor, tensorBytes, byteOffset };
      return placeMap(checkTensorMap(request), allocation);
    } catch (error) {
      if (error instanceof RequestError)
        return `the tensor map of ${allocation.name} is wrong: ${error.message}`;
      throw error;
    }
  }

  return {
    parameterAt: (address) => parameters.get(address) ?? null,
    inMemory: (address, bytes) => {
      const text = hexOf(bytes);
      const at = `the tensor map at 0x${address.toString(16)}`;
      if (!isOfLaunch(address, bytes)) {
        const known = acquired.get(address);
        if (known === undefined)
          return `${at} was written by the kernel, and no fence.proxy.tensormap::generic.acquire has made it known to TMA`;
        if (known !== text) return `${at} was changed after fence.proxy.tensormap::generic.acquire`;
        if (!isAllReleased && released.get(address) !== text)
          return `${at} was acquired, and nobody released what was written there (tensormap.cp_fenceproxy, fence.proxy.tensormap::generic.release)`;
      }
      const map = placed.get(text) ?? place(bytes);
      placed.set(text, map);
      return map;
    },
    release: (address, bytes) => released.set(address, hexOf(bytes)),
    releaseAll: () => (isAllReleased = true),
    acquire: (address, bytes) => acquired.set(address, hexOf(bytes)),
  };
}
