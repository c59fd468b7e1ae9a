import {
  createByteStore,
  type AccessSpace,
  type Fragment,
  type Instruction,
} from '../../../machine/index.js';
import { memoryScopes } from '../memory/access.js';
import { integerConstant, slotsOf, wrongOperands } from '../operands.js';
import type { AddressOperand, InstructionRequest, Unsupported } from '../request.js';
import { ownOffset, sharedAddresses } from '../shared-addresses.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { hasLane, laneAddresses, lowestLane, operandBits } from '../warp-registers.js';
import { replaceTensorMapField, tensorMapField } from './tensor-map-fields.js';

const warpLanes = 32;
const wordBytes = 4;
/** Bytes of a tensor map: a word for each lane of a warp. */
const mapBytes = warpLanes * wordBytes;

type Steps<Result> = Generator<Instruction, Result, void>;

/** The words of a map, one for each lane. */
function places(space: AccessSpace, address: number) {
  const addresses = Float64Array.from({ length: warpLanes }, (_, i) => address + wordBytes * i);
  return { space, addresses, bytes: wordBytes, order: 'weak', scope: 'cta' } as const;
}

/** Loads the 128 bytes of the map at an address, as weak loads of the generic proxy. */
export function* loadMap(space: AccessSpace, address: number, site: string): Steps<Fragment> {
  const data = createByteStore(mapBytes);
  yield { op: 'ld', ...places(space, address), data, site };
  return data;
}

function storeMap(space: AccessSpace, address: number, data: Fragment, site: string): Instruction {
  return { op: 'st', ...places(space, address), data, site };
}

/** The place of the map that a lane's operand names: in shared memory or in global memory. */
function mapPlace(
  warp: IssuingWarp,
  { modifiers }: InstructionRequest,
  operand: AddressOperand,
): { readonly space: AccessSpace; readonly address: number } {
  if (modifiers.some((one) => one.startsWith('shared'))) {
    const [{ address }] = sharedAddresses(warp, { modifiers }, operand);
    return { space: 'shared::cta', address: ownOffset(warp, address) };
  }
  const address = laneAddresses(warp.registers, operand, warp.lanes)[lowestLane(warp.lanes)];
  return { space: modifiers.includes('global') ? 'global' : 'generic', address };
}

/** `tensormap.replace`: lane after lane, since each changes the map that the lane before has left. */
function lowerReplace(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const name = modifiers.find((one) => tensorMapField(one) !== null);
  if (name === undefined) return { unsupported: `.${modifiers.join('.')} of a tensor map` };
  const { isOfDimension } = tensorMapField(name)!;
  const [target, ...rest] = operands;
  const [ordinal, value] = isOfDimension ? rest : [undefined, rest[0]];
  if (target?.kind !== 'address' || value === undefined)
    return wrongOperands(isOfDimension ? '[map], dimension, value' : '[map], value');
  const dimension = isOfDimension ? integerConstant(ordinal) : 0;
  if (dimension === null) return wrongOperands('a dimension that is a constant');
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* (warp) {
      for (let lane = 0; lane < warpLanes; lane++) {
        if (!hasLane(warp.lanes, lane)) continue;
        const { space, address } = mapPlace({ ...warp, lanes: (1 << lane) >>> 0 }, request, target);
        const map = yield* loadMap(space, address, site);
        const bits = BigInt.asUintN(
          modifiers.includes('b64') ? 64 : 32,
          operandBits(warp.registers, value, lane),
        );
        const problem = replaceTensorMapField(map.bytes, { field: name, dimension, value: bits });
        if (problem === null) yield storeMap(space, address, map, site);
        else yield { op: 'report', kind: 'instruction-shape', message: problem, site };
      }
    },
  };
}

/** `tensormap.cp_fenceproxy`: the warp copies a map to global memory and releases it to the tensormap proxy. */
function lowerCopyFence(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [target, source, size] = operands;
  const scope = modifiers.map((one) => memoryScopes[one]).find((one) => one !== undefined);
  if (target?.kind !== 'address' || source?.kind !== 'address' || scope === undefined)
    return wrongOperands('[global], [shared], 128');
  if (integerConstant(size) !== mapBytes) return wrongOperands('a size of 128');
  return {
    isAligned: modifiers.includes('aligned'),
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* (warp) {
      const to = laneAddresses(warp.registers, target, warp.lanes)[lowestLane(warp.lanes)];
      const from = mapPlace(warp, { ...request, modifiers: ['shared::cta'] }, source);
      const map = yield* loadMap(from.space, from.address, site);
      yield storeMap('global', to, map, site);
      yield { op: 'fence', scope, site };
      warp.tensorMaps.release(to, map.bytes);
    },
  };
}

/** `fence.proxy.tensormap::generic`: a release of the warp's writes, or an acquire of one map. */
function lowerFence(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [map] = operands;
  const scope = modifiers.map((one) => memoryScopes[one]).find((one) => one !== undefined);
  if (scope === undefined) return { unsupported: 'a scope that is known' };
  const isAcquire = modifiers.includes('acquire');
  if (isAcquire && map?.kind !== 'address') return wrongOperands('[map], 128');
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* (warp) {
      yield { op: 'fence', scope, site };
      if (map?.kind !== 'address') {
        warp.tensorMaps.releaseAll();
        return;
      }
      const addresses = laneAddresses(warp.registers, map, warp.lanes);
      for (const address of new Set(addresses.filter((one) => one >= 0))) {
        const { bytes } = yield* loadMap('generic', address, site);
        warp.tensorMaps.acquire(address, bytes);
      }
    },
  };
}

const source = 'PTX ISA, Data Movement and Conversion Instructions: tensormap.replace';

/** Tensor maps that a kernel makes or changes itself. */
export const tensorMapRows: readonly VisibleInstruction[] = [
  {
    name: 'tensormap.replace.tile',
    // A field of a map is a code, which no value goes into as it is.
    meaning: 'loses',
    evidence: 'isa',
    source,
    lower: lowerReplace,
  },
  {
    name: 'tensormap.cp_fenceproxy',
    meaning: 'moves',
    evidence: 'isa',
    source:
      'PTX ISA, Parallel Synchronization and Communication Instructions: tensormap.cp_fenceproxy',
    lower: lowerCopyFence,
  },
  {
    name: 'fence.proxy.tensormap::generic',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, "membar", "fence"',
    lower: lowerFence,
  },
];
