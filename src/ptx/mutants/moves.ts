import type { Block, Item, ProgramFunction } from '../program/index.js';
import type { ProgramChange } from '../run/index.js';
import {
  type NoteChange,
  parkItem,
  strides,
  touchedBy,
  type VisibleItem,
} from './changed-operations.js';
import { isAccess } from './mnemonics.js';
import type { Direction } from './mutated-instructions.js';

/** The place of an instruction. */
export interface ProgramPlace {
  readonly one: ProgramFunction;
  readonly block: number;
  readonly index: number;
  readonly item: VisibleItem;
}

/** An instruction past which another one can be moved, and the program after the move. */
export interface Move {
  readonly past: VisibleItem;
  readonly change: (note: NoteChange) => ProgramChange;
}

/** Whether an instruction is the wait of a loop that does nothing else. */
function isLoopOfWait({ one, block, index, item }: ProgramPlace): boolean {
  const { items } = one.blocks[block];
  const isAlone = items.slice(0, index).every(({ kind }) => kind === 'lanes');
  return isAlone && item.mnemonic.startsWith('mbarrier.try_wait');
}

/** The only successor of a block: its target, or the exit of the loop of a wait. */
function blockAfter({ blocks }: ProgramFunction, block: number, isLoop: boolean): number | null {
  const { terminator } = blocks[block];
  if (terminator.kind === 'goto') return terminator.target;
  if (terminator.kind !== 'branch' || !isLoop) return null;
  const returns = (from: number): boolean => {
    let at = from;
    for (let steps = 0; steps < blocks.length; steps++) {
      if (at === block) return true;
      const next = blocks[at];
      if (next?.items.length !== 0 || next.terminator.kind !== 'goto') return false;
      at = next.terminator.target;
    }
    return false;
  };
  const left = [terminator.target, terminator.next].filter((successor) => !returns(successor));
  return left.length === 1 ? left[0] : null;
}

/** The only predecessor of a block, if that has no other successor. */
function blockBefore({ blocks }: ProgramFunction, block: number): number | null {
  if (block === 0) return null;
  const before = blocks.flatMap(({ terminator }, i) => {
    const targets =
      terminator.kind === 'table'
        ? [...terminator.targets, terminator.next]
        : [
            ...('target' in terminator ? [terminator.target] : []),
            ...('next' in terminator ? [terminator.next] : []),
          ];
    return targets.includes(block) ? [i] : [];
  });
  return before.length === 1 && blocks[before[0]].terminator.kind === 'goto' ? before[0] : null;
}

interface Placed {
  readonly block: number;
  readonly index: number;
  readonly item: Item;
}

/** The items that are executed whenever the item at a place is, one after the other, in a direction. */
function* itemsFrom(place: ProgramPlace, direction: Direction): Generator<Placed> {
  const { one, block, index } = place;
  const stride = strides[direction];
  const seen = new Set<number>();
  for (let at: number | null = block, first = index + stride; at !== null;) {
    const { items } = one.blocks[at];
    for (let i = first; i >= 0 && i < items.length; i += stride)
      yield { block: at, index: i, item: items[i] };
    seen.add(at);
    const isLoop: boolean = at === block && isLoopOfWait(place);
    const next: number | null =
      direction === 'later' ? blockAfter(one, at, isLoop) : blockBefore(one, at);
    if (next === null || next >= one.blocks.length || seen.has(next)) return;
    at = next;
    first = direction === 'later' ? 0 : one.blocks[at].items.length - 1;
  }
}

/** Whether an instruction may move before an item that precedes it: the registers that it needs are available there. */
function mayComeBefore(moved: VisibleItem, item: Item): boolean {
  const [own, other] = [touchedBy(moved), touchedBy(item)];
  if (own === null || other === null) return false;
  const meets = (some: ReadonlySet<number>, others: ReadonlySet<number>) =>
    [...some].some((offset) => others.has(offset));
  return (
    !meets(own.reads, other.writes) &&
    !meets(own.writes, other.reads) &&
    !meets(own.writes, other.writes)
  );
}

/** The blocks with one item inserted and another replaced or left out. */
function changeOf(
  { one, block, index, item }: ProgramPlace,
  inserted: { readonly block: number; readonly at: number; readonly item: Item },
  left: Item | null,
): ProgramChange {
  const same = ({ items }: Block) => items.map((own) => ({ item: own, as: own }));
  const changed = new Map<number, { readonly item: Item; readonly as: Item }[]>();
  const listOf = (number: number) => {
    const list = changed.get(number) ?? same(one.blocks[number]);
    changed.set(number, list);
    return list;
  };
  const insert = () =>
    listOf(inserted.block).splice(inserted.at, 0, { item: inserted.item, as: item });
  const take = () =>
    listOf(block).splice(index, 1, ...(left === null ? [] : [{ item: left, as: item }]));
  // Later places in the list are changed first, so that earlier places stay valid.
  const isBehind = inserted.block !== block || inserted.at > index;
  if (isBehind) insert();
  take();
  if (!isBehind) insert();
  return new Map([...changed].map(([number, items]) => [one.blocks[number], items]));
}

/**
 * Moves an instruction past the nearest access in a direction. If it moves earlier, its operands must be available
 * there; if later, they are read at the original place. Null where there is no such access before control parts, or
 * where operands are not available.
 */
export function moveOf(place: ProgramPlace, direction: Direction): Move | null {
  const { item: moved } = place;
  for (const { item, block, index } of itemsFrom(place, direction)) {
    // The effects of a function are unknown, and nothing comes after a trap.
    if (item.kind === 'call' || item.kind === 'trap') return null;
    if (direction === 'earlier' && !mayComeBefore(moved, item)) return null;
    if (item.kind !== 'visible' || !isAccess(item.mnemonic)) continue;
    const past = item;
    if (direction === 'earlier')
      return {
        past,
        change: (note) => changeOf(place, { block, at: index, item: noted(moved, note) }, null),
      };
    return {
      past,
      change: (note) => {
        const { before, after } = parkItem(moved, note);
        return changeOf(place, { block, at: index + 1, item: after }, before);
      },
    };
  }
  return null;
}

/** The item, which notes that it is executed. */
function noted(item: VisibleItem, note: NoteChange): VisibleItem {
  const { operation } = item;
  return {
    ...item,
    operation: {
      ...operation,
      issue: function* (warp) {
        note();
        yield* operation.issue(warp);
      },
    },
  };
}
