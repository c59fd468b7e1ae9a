import type { Instruction } from '../../machine/index.js';
import type { VisibleOperation } from '../instructions/index.js';
import type { Item } from '../program/index.js';
import type { Edit } from './changes.js';
import type { Direction } from './mutated-instructions.js';

/** An instruction that others see, in its place in a program. */
export type VisibleItem = Extract<Item, { kind: 'visible' }>;

/** Called whenever an instruction is executed that differs from the program's. */
export type NoteChange = () => void;

/**
 * The item with other instructions of the machine. An item whose instruction is removed does not need its warp
 * converged either.
 */
export function editItem(item: VisibleItem, edit: Edit, note: NoteChange): VisibleItem {
  const { operation } = item;
  const issue: VisibleOperation['issue'] = function* (warp) {
    for (const instruction of operation.issue(warp)) {
      const edited = edit(instruction, warp);
      if (edited !== instruction) note();
      if (edited !== null) yield edited;
    }
  };
  return { ...item, operation: { ...operation, issue } };
}

/** The item without its instruction: its work on results is done as if the instruction had been executed. */
export function removeItem(item: VisibleItem, edit: Edit, note: NoteChange): VisibleItem {
  const edited = editItem(item, edit, note);
  return { ...edited, operation: { ...edited.operation, isAligned: false } };
}

/** An item split in two: operands are read at the first place, the order takes effect at the second. */
export interface ParkedItem {
  /** The item in the original place. */
  readonly before: VisibleItem;
  /** The item in the place that it has been moved to. */
  readonly after: VisibleItem;
}

/** Splits an item into one that reads its operands and one that the same warp issues later. */
export function parkItem(item: VisibleItem, note: NoteChange): ParkedItem {
  const { operation } = item;
  const parked = new Map<object, Instruction[]>();
  const before: VisibleOperation['issue'] = function* (warp) {
    const kept = parked.get(warp.registers) ?? [];
    kept.push(...operation.issue(warp));
    parked.set(warp.registers, kept);
  };
  const after: VisibleOperation['issue'] = function* (warp) {
    const kept = parked.get(warp.registers) ?? [];
    parked.delete(warp.registers);
    if (kept.length > 0) note();
    yield* kept;
  };
  return {
    before: { ...item, operation: { ...operation, issue: before } },
    after: {
      ...item,
      guard: null,
      operation: { isAligned: false, writes: [], reads: [], lends: [], issue: after },
    },
  };
}

/** The step of each direction in a list of items. */
export const strides: Readonly<Record<Direction, 1 | -1>> = { earlier: -1, later: 1 };

/** Registers that an item reads and writes, by the offsets of their slots; null where they are unknown. */
export function touchedBy(
  item: Item,
): { readonly reads: ReadonlySet<number>; readonly writes: ReadonlySet<number> } | null {
  switch (item.kind) {
    case 'lanes':
      return item;
    case 'visible':
    case 'warp': {
      const { operation, guard } = item;
      const lends = 'lends' in operation ? operation.lends.flat() : [];
      const mask = item.kind === 'warp' && item.mask?.kind === 'register' ? [item.mask.slot] : [];
      const guards = guard === null ? [] : [guard.slot];
      const reads = [...operation.reads, ...guards, ...mask, ...lends];
      const writes = [...operation.writes, ...lends];
      return {
        reads: new Set(reads.map(({ offset }) => offset)),
        writes: new Set(writes.map(({ offset }) => offset)),
      };
    }
    default:
      return null;
  }
}
