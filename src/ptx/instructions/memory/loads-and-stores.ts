import { createByteStore, type LanePlaces } from '../../../machine/index.js';
import type { AddressOperand, InstructionRequest, Unsupported } from '../request.js';
import { hasLane, laneAddresses, operandNumber } from '../warp-registers.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { elementsOf, integerConstant, slotsOf, wrongOperands } from '../operands.js';
import { parseAccess, spaceOf, type Access } from './access.js';
import { packLanes, unpackLanes } from './lane-data.js';

/** The places that the lanes of a warp access. */
export function lanePlaces(
  { registers, lanes }: IssuingWarp,
  address: AddressOperand,
  access: Pick<Access, 'space'>,
  bytes: number,
): LanePlaces {
  return {
    space: spaceOf(access, address),
    addresses: laneAddresses(registers, address, lanes),
    bytes,
  };
}

function lowerLoad({
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const access = parseAccess(modifiers);
  if ('unsupported' in access) return access;
  const [destination, address] = operands;
  if (address?.kind !== 'address') return wrongOperands('d, [a]');
  if (access.rest.length > 0) return { unsupported: `.${access.rest.join('.')} of a load` };
  const { type, order, scope } = access;
  const elements = elementsOf(destination);
  if (elements.length !== access.vector) return wrongOperands(`${access.vector} elements`);
  return {
    isAligned: false,
    writes: slotsOf([destination]),
    reads: slotsOf([address]),
    lends: [],
    issue: function* (warp) {
      const places = lanePlaces(warp, address, access, elements.length * type.bytes);
      const data = createByteStore(32 * 4 * Math.ceil(places.bytes / 4));
      yield { op: 'ld', ...places, order, scope, data, site };
      unpackLanes(warp.registers, elements, type, { data, lanes: warp.lanes });
    },
  };
}

function lowerStore({
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const access = parseAccess(modifiers);
  if ('unsupported' in access) return access;
  const [address, source] = operands;
  if (address?.kind !== 'address' || source === undefined) return wrongOperands('[a], b');
  if (access.rest.length > 0) return { unsupported: `.${access.rest.join('.')} of a store` };
  const { type, order, scope } = access;
  const elements = elementsOf(source);
  if (elements.length !== access.vector) return wrongOperands(`${access.vector} elements`);
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf([address, source]),
    lends: [],
    issue: function* (warp) {
      const places = lanePlaces(warp, address, access, elements.length * type.bytes);
      const data = packLanes(warp.registers, elements, type, warp.lanes);
      yield { op: 'st', ...places, order, scope, data, site };
    },
  };
}

/** Number of bytes that a lane stores of a region that is filled. */
const filledBytes = 8;

/**
 * `st.bulk [a], size, 0`: the lanes of the warp share the work of filling each lane's region, with as many stores as
 * that takes.
 */
function lowerFill({
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const access = parseAccess([...modifiers, 'b64']);
  if ('unsupported' in access) return access;
  const [address, size, value] = operands;
  if (address?.kind !== 'address' || size === undefined || integerConstant(value) !== 0)
    return wrongOperands('[a], size, 0');
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf([address, size]),
    lends: [],
    issue: function* (warp) {
      const { registers, lanes } = warp;
      const starts = laneAddresses(registers, address, lanes);
      const data = createByteStore(32 * filledBytes);
      const { order, scope } = access;
      for (let lane = 0; lane < 32; lane++) {
        if (!hasLane(lanes, lane)) continue;
        const bytes = operandNumber(registers, size, lane);
        if (bytes % filledBytes !== 0) {
          const message = `fills ${bytes} bytes; a multiple of ${filledBytes} is due`;
          yield { op: 'report', kind: 'instruction-shape', message, site };
          continue;
        }
        for (let first = 0; first < bytes; first += 32 * filledBytes) {
          const addresses = Float64Array.from({ length: 32 }, (_, i) =>
            first + i * filledBytes < bytes ? starts[lane] + first + i * filledBytes : -1,
          );
          const places = { space: spaceOf(access, address), addresses, bytes: filledBytes };
          yield { op: 'st', ...places, order, scope, data, site };
        }
      }
    },
  };
}

/** Lowers a prefetch or a cache hint to an operation without effect. */
function lowerHint(): VisibleOperation {
  return { isAligned: false, writes: [], reads: [], lends: [], issue: function* () {} };
}

function row(
  name: string,
  meaning: 'moves' | 'none',
  lower: VisibleInstruction['lower'],
): VisibleInstruction {
  return { name, meaning, evidence: 'isa', source: `PTX ISA, "${name}"`, lower };
}

/** Loads and stores. Cache operators, eviction priorities and policies change no value and are accepted. */
export const transferRows: readonly VisibleInstruction[] = [
  ...(
    [
      ['ld', lowerLoad],
      ['ld.global.nc', lowerLoad],
      ['ldu', lowerLoad],
      ['st', lowerStore],
      ['st.bulk', lowerFill],
    ] as const
  ).map(([name, lower]) => row(name, 'moves', lower)),
  ...['prefetch', 'prefetchu', 'applypriority', 'cp.async.bulk.prefetch'].map((name) =>
    row(name, 'none', lowerHint),
  ),
];
