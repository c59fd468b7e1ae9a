import {
  siteOf,
  type AtomicOperation,
  type AtomicType,
  type Effect,
  type InstructionOf,
} from '../isa/index.js';
import {
  type BytePlace,
  describeByte,
  forEachBoxRow,
  type TensorElementType,
  type TensorMap,
} from '../memory/index.js';
import { report, type CtaState, type MachineState, type WarpState } from '../state.js';
import {
  hasAtomic,
  elementReductions,
  meaningOfAtomic,
  reduceElements,
} from './memory/atomic-operations.js';
import { createAreaRun } from './memory/lane-areas.js';
import type { VisitArea } from './record.js';

type Load = 'cp.async.bulk.tensor.shared.global';
type Store = 'cp.async.bulk.tensor.global.shared';

/** Visits the part of a box that lies in its tensor, where that has an address. */
export function visitTensor(
  cta: CtaState,
  instruction: InstructionOf<Load | Store>,
  visit: VisitArea,
): void {
  const { map, coordinates } = instruction;
  const { address } = map;
  if (address === undefined) return;
  const isReduction = 'reduction' in instruction && instruction.reduction !== undefined;
  const run = createAreaRun(visit, isReduction ? { strong: elementReductions } : {});
  forEachBoxRow(map, coordinates, ({ start, firstByte, endByte }) => {
    if (endByte > firstByte)
      run.add('global', cta, address + start + firstByte, endByte - firstByte);
  });
  run.end();
}

/**
 * Reports elements that are read from a tensor and have no contents; elements that are written have
 * contents from then on.
 */
export function checkContents(
  machine: MachineState,
  warp: WarpState,
  { map, coordinates, name }: InstructionOf<Load | Store>,
  use: 'reads' | 'writes',
): void {
  const { address } = map;
  const allocation = address === undefined ? undefined : machine.memory.global.find(address);
  if (address === undefined || !allocation?.written) return;
  const { base, written } = allocation;
  let isReported = false;
  forEachBoxRow(map, coordinates, ({ start, firstByte, endByte }) => {
    if (endByte <= firstByte) return;
    const first = address - base + start + firstByte;
    if (use === 'writes') written.addAll(first, endByte - firstByte);
    else if (!isReported && !written.hasAll(first, endByte - firstByte)) {
      isReported = true;
      const what = `reads a box of ${name} from ${describeByte(allocation, first)} on, where nobody has written`;
      report(machine, warp, 'uninitialised', what);
    }
  });
}

/** Whether a store is a copy, or a reduction that exists for the tensor's elements; otherwise reports it. */
export function canReduce(
  machine: MachineState,
  warp: WarpState,
  { map, reduction, name }: InstructionOf<Store>,
): boolean {
  if (reduction === undefined) return true;
  const type = reductionType(reduction, map);
  if (type !== null && map.address !== undefined) return true;
  const what = `there is no reduction ${reduction} of the elements of ${name} (${map.elementType ?? 'of no known type'})`;
  report(machine, warp, 'instruction-shape', what);
  return false;
}

/** The type of a reduction's elements; null where the tensor map's have none. */
function reductionType(operation: AtomicOperation, { elementType }: TensorMap): AtomicType | null {
  if (elementType === undefined) return null;
  const isBitwise = operation === 'and' || operation === 'or' || operation === 'xor';
  const type = isBitwise ? bitTypes[elementType] : elementType;
  return type !== undefined && hasAtomic(operation, type) ? type : null;
}

/** Types as which bitwise operations treat elements. */
const bitTypes: Partial<Record<TensorElementType, AtomicType>> = {
  u32: 'b32',
  s32: 'b32',
  u64: 'b64',
  s64: 'b64',
};

/** What a store leaves in the tensor stands for; nothing where there is no such reduction, which is reported. */
export function meaningOfStore({ map, reduction }: InstructionOf<Store>): Effect {
  if (reduction === undefined) return 'moves';
  const type = reductionType(reduction, map);
  return type === null ? 'none' : meaningOfAtomic(reduction, type);
}

/** The function by which a store combines the tensor's bytes with its own; undefined for a plain copy. */
export function combinationOf({ tracer }: MachineState, instruction: InstructionOf<Store>) {
  const { map, reduction } = instruction;
  const type = reduction === undefined ? null : reductionType(reduction, map);
  if (reduction === undefined || type === null) return undefined;
  const trace = tracer && { tracer, site: siteOf(instruction) };
  return (tensor: BytePlace, row: BytePlace, bytes: number) =>
    reduceElements({ operation: reduction, type }, tensor, row, bytes, { isShared: false, trace });
}
