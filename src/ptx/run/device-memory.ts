import {
  byteStoreOf,
  createByteStore,
  createConstantMemory,
  createGlobalMemory,
  genericAddress,
  type ByteStore,
  type LaunchMemory,
} from '../../machine/index.js';
import type { TensorMaps } from '../instructions/index.js';
import type { Launch, LaunchTensor } from '../launch/index.js';
import type { PlaceVariable, Program } from '../program/index.js';
import { createTensorMaps, placeMap } from './tensor-maps.js';

/** The parts of a launch in the memory of the device. */
export interface DeviceMemory {
  /** Allocates a variable of the module. */
  readonly place: PlaceVariable;
  /** Gives the variables of a program their contents before the kernel starts. */
  readonly initialise: (program: Pick<Program, 'variables'>) => void;
  /** The current bytes of a tensor, and their beginning; an empty tensor has no place. */
  readonly bytesOf: (tensor: string) => Uint8Array;
  readonly baseOf: (tensor: string) => number | null;
  /** The same bytes as a store of the machine's memory. */
  readonly storeOf: (tensor: string) => ByteStore;
  readonly tensorMaps: TensorMaps;
  readonly launchMemory: (program: Pick<Program, 'localBytes'>) => LaunchMemory;
}

/**
 * Allocates the memory of a launch: a copy of each tensor, and unwritten scratch buffers, each with red zones. The pointers
 * to them are written into the parameters; a pointer to an empty tensor is null.
 *
 * @throws RequestError for tensor maps of forms that the machine does not support
 */
function createDeviceMemory(launch: Launch): DeviceMemory {
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
  const contents = new Map(
    launch.tensors.map(({ name, bytes }) => [tensors.get(name)?.base, bytes] as const),
  );
  return {
    tensorMaps: createTensorMaps({
      parameters: maps,
      find: global.find,
      before: ({ base }) => contents.get(base) ?? null,
    }),
    place: ({ name, space, bytes }) => {
      const memory = space === 'const' ? constant : global;
      const isReadOnly = space === 'const';
      return memory.allocate({ name, contents: new Uint8Array(bytes), isReadOnly }).base;
    },
    initialise: ({ variables }) => {
      for (const { space, address, contents } of variables)
        (space === 'const' ? constant : global).find(address)?.store.bytes.set(contents);
    },
    bytesOf: (tensor) => tensors.get(tensor)?.store.bytes ?? new Uint8Array(0),
    storeOf: (tensor) => tensors.get(tensor)?.store ?? createByteStore(0),
    baseOf: (tensor) => tensors.get(tensor)?.base ?? null,
    launchMemory: ({ localBytes }) => ({
      global,
      constant,
      parameters: byteStoreOf(parameters),
      localBytes,
    }),
  };
}

/** A launch's memories: one for each run, in all of which variables of the module have the same addresses. */
export class LaunchMemories {
  readonly #launch: Launch;
  readonly #variables: Parameters<PlaceVariable>[0][] = [];
  /** The memory in which variables are placed, for the first run; null once that has it. */
  #first: DeviceMemory | null;

  constructor(launch: Launch) {
    this.#launch = launch;
    this.#first = createDeviceMemory(launch);
  }

  /** Places a variable; before the first run only. */
  place(variable: Parameters<PlaceVariable>[0]): number {
    this.#variables.push(variable);
    return this.#first!.place(variable);
  }

  fresh(program: Program): DeviceMemory {
    const first = this.#first;
    const fresh = first ?? createDeviceMemory(this.#launch);
    if (first === null) for (const variable of this.#variables) fresh.place(variable);
    this.#first = null;
    fresh.initialise(program);
    return fresh;
  }
}
