import { splitClusterAddress, type AccessSpace, type LanePlaces } from '../../isa/index.js';
import {
  addressSpaceOf,
  createByteStore,
  describeAddress,
  describeByte,
  type Allocation,
  type BytePlace,
  type ByteSet,
  type MemorySpace,
  type MemoryViolation,
  type SharedMemory,
} from '../../memory/index.js';
import { hasExited, type CtaState, type MachineState, type WarpState } from '../../state.js';

/** Location of the bytes of a lane. One object serves all lanes. */
export interface LanePlace extends BytePlace {
  readonly space: MemorySpace;
  /** The bytes that have contents; null where that is not known here, or all have. */
  readonly written: ByteSet | null;
  /** The allocation, in global and constant memory. */
  readonly allocation: Allocation | null;
  /** The CTA whose shared memory it is, or the CTA of the warp. */
  readonly cta: CtaState;
}

/** A place that serves one lane after the other. */
export type MutablePlace = { -readonly [Key in keyof LanePlace]: LanePlace[Key] };

/** The use of a place: stores need memory that may be written, loads memory that has been written. */
export type PlaceUse = 'reads' | 'writes' | 'updates';

/** The warp's CTA and local memory; local memory is null where its accesses are not looked at. */
export interface Accessor {
  readonly cta: CtaState;
  readonly local: WarpState['local'] | null;
}

const spaceOfAccess: Readonly<Record<Exclude<AccessSpace, 'generic'>, MemorySpace>> = {
  global: 'global',
  'shared::cta': 'shared',
  'shared::cluster': 'shared',
  local: 'local',
  const: 'const',
  param: 'param',
};

/** Addresses of the windowed spaces have 32 bits. */
const windowBytes = 2 ** 32;

const hexadecimal = (address: number): string => `0x${address.toString(16)}`;

/** A violation of a kind, with its message. */
export function violation(kind: MemoryViolation['kind'], message: string): MemoryViolation {
  return { kind, message };
}

function locateShared(
  place: MutablePlace,
  machine: MachineState,
  { cta }: Accessor,
  { space, bytes }: LanePlaces,
  address: number,
): MemoryViolation | null {
  const { rank, offset } = splitClusterAddress(address);
  if (space === 'shared::cta' && rank !== cta.rank)
    return violation(
      'state-space',
      `byte ${offset} of the shared memory of CTA ${rank}, which only shared::cluster reaches`,
    );
  const target = rank === cta.rank ? cta : machine.ctas[rank];
  if (target === undefined)
    return violation(
      'out-of-bounds',
      `shared memory of CTA ${rank}, which the cluster does not have`,
    );
  const { shared } = target;
  if (target !== cta && hasExited(target))
    return violation(
      'exited-cta',
      `byte ${offset} of the shared memory of CTA ${rank}, which has ended`,
    );
  if (offset + bytes > shared.launchedBytes)
    return violation('shared-overflow', describeBeyond(shared, offset));
  place.store = shared.store;
  place.offset = offset;
  place.written = null;
  place.allocation = null;
  place.cta = target;
  return null;
}

function describeBeyond({ launchedBytes }: SharedMemory, offset: number): string {
  return `byte ${offset} of shared memory, which has ${launchedBytes}`;
}

function locateAllocated(
  place: MutablePlace,
  memory: MachineState['memory']['global'],
  { bytes }: LanePlaces,
  address: number,
): MemoryViolation | null {
  // Lanes mostly access one allocation.
  const latest = place.allocation;
  const allocation =
    latest !== null && address >= latest.base && address < latest.end
      ? latest
      : memory.find(address);
  if (allocation === undefined || address < allocation.base || address + bytes > allocation.end) {
    const where = describeAddress(allocation, address);
    const isAcross =
      allocation !== undefined && address >= allocation.base && address < allocation.end;
    return violation(
      'out-of-bounds',
      isAcross ? `${where}, ${address + bytes - allocation.end} bytes past its end` : where,
    );
  }
  if (allocation.isFreed)
    return violation(
      'out-of-bounds',
      `${describeAddress(allocation, address)}, which has been freed`,
    );
  place.store = allocation.store;
  place.offset = address - allocation.base;
  place.written = allocation.written;
  place.allocation = allocation;
  return null;
}

function locateLocal(
  place: MutablePlace,
  { local }: Accessor,
  { bytes }: LanePlaces,
  address: number,
  lane: number,
): MemoryViolation | null {
  if (local === null || address + bytes > local.threadBytes)
    return violation(
      'out-of-bounds',
      `byte ${address} of local memory, which has ${local?.threadBytes ?? 0}`,
    );
  place.store = local.store;
  place.offset = lane * local.threadBytes + address;
  place.written = local.written;
  place.allocation = null;
  return null;
}

function locateParameters(
  place: MutablePlace,
  { memory: { parameters } }: MachineState,
  { bytes }: LanePlaces,
  address: number,
): MemoryViolation | null {
  if (address + bytes > parameters.bytes.length)
    return violation(
      'out-of-bounds',
      `byte ${address} of the parameters, which have ${parameters.bytes.length}`,
    );
  place.store = parameters;
  place.offset = address;
  place.written = null;
  place.allocation = null;
  return null;
}

const noBytes = createByteStore(0);

/** A place that is nowhere yet. */
export function createPlace(cta: CtaState): MutablePlace {
  return { space: 'global', store: noBytes, offset: 0, written: null, allocation: null, cta };
}

/** Finds the place of a lane; returns the violation, worded to follow `reads 4 bytes at`. */
export function locate(
  place: MutablePlace,
  machine: MachineState,
  accessor: Accessor,
  {
    places,
    use,
    lane,
  }: { readonly places: LanePlaces; readonly use: PlaceUse; readonly lane: number },
): MemoryViolation | null {
  const { space: named, addresses, bytes, alignment = bytes } = places;
  let address = addresses[lane];
  let space: MemorySpace = 'global';
  if (named !== 'generic') {
    space = spaceOfAccess[named];
    if (space === 'global' ? addressSpaceOf(address).space !== 'global' : address >= windowBytes)
      return violation(
        'state-space',
        `${hexadecimal(address)}, a generic address of ${addressSpaceOf(address).space} memory, as one of ${space} memory`,
      );
  } else if (address >= 2 ** 47) ({ space, address } = addressSpaceOf(address));
  if (address % alignment !== 0)
    return violation(
      'misaligned',
      `${hexadecimal(address)} of ${space} memory, no multiple of ${alignment}`,
    );
  if (use !== 'reads' && (space === 'const' || space === 'param'))
    return violation(
      'state-space',
      `${hexadecimal(address)} of ${space} memory, which is read only`,
    );
  place.space = space;
  place.cta = accessor.cta;
  if (space === 'shared') return locateShared(place, machine, accessor, places, address);
  if (space === 'local') return locateLocal(place, accessor, places, address, lane);
  if (space === 'param') return locateParameters(place, machine, places, address);
  const { global, constant } = machine.memory;
  const wrong = locateAllocated(place, space === 'global' ? global : constant, places, address);
  if (wrong !== null) return wrong;
  const { allocation } = place;
  if (use !== 'reads' && allocation!.isReadOnly)
    return violation(
      'state-space',
      `${describeByte(allocation!, place.offset)}, which is read only`,
    );
  return null;
}
