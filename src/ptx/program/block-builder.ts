import type { SlotGuard, Source } from '../instructions/index.js';
import type { Block, Item, LaneStretch, Terminator, LaneOperation } from './program.js';

/**
 * The immediate post-dominator of each block: where all paths from it to the end meet first. Cooper, Harvey and
 * Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph.
 *
 * @param successors successors of each block, by number; `successors.length` is the end
 * @returns by block; null for blocks from which no path leads to the end
 */
export function immediatePostDominators(
  successors: readonly (readonly number[])[],
): (number | null)[] {
  const end = successors.length;
  const predecessors: number[][] = Array.from({ length: end + 1 }, () => []);
  successors.forEach((targets, block) => {
    for (const target of targets) predecessors[target].push(block);
  });
  const order = postOrder(end, predecessors);
  const rank = new Int32Array(end + 1).fill(-1);
  order.forEach((block, i) => (rank[block] = i));
  const result = new Array<number>(end + 1).fill(-1);
  result[end] = end;

  function meet(one: number, other: number): number {
    let [a, b] = [one, other];
    while (a !== b)
      if (rank[a] < rank[b]) a = result[a];
      else b = result[b];
    return a;
  }

  for (let changed = true; changed;) {
    changed = false;
    // Reverse post order: the end comes first.
    for (let i = order.length - 2; i >= 0; i--) {
      const block = order[i];
      let dominator = -1;
      for (const successor of successors[block])
        if (result[successor] !== -1)
          dominator = dominator === -1 ? successor : meet(successor, dominator);
      if (dominator !== result[block]) {
        result[block] = dominator;
        changed = true;
      }
    }
  }
  return result.slice(0, end).map((block) => (block === -1 ? null : block));
}

/** Blocks from which the end can be reached, each after the blocks that the walk finds from it. */
function postOrder(start: number, neighbours: readonly (readonly number[])[]): number[] {
  const order: number[] = [];
  const seen = new Uint8Array(neighbours.length);
  const stack: { readonly block: number; next: number }[] = [{ block: start, next: 0 }];
  seen[start] = 1;
  while (stack.length > 0) {
    const top = stack[stack.length - 1];
    if (top.next === neighbours[top.block].length) {
      order.push(top.block);
      stack.pop();
      continue;
    }
    const neighbour = neighbours[top.block][top.next++];
    if (seen[neighbour] === 1) continue;
    seen[neighbour] = 1;
    stack.push({ block: neighbour, next: 0 });
  }
  return order;
}

/** Facts about the instruction of an item. */
export interface Placed {
  readonly guard: SlotGuard | null;
  readonly line: number;
  readonly mnemonic: string;
  readonly site: string;
}

/** The end of a block, with labels in place of blocks. */
type Ending =
  | (Placed & { readonly kind: 'branch'; readonly label: number })
  | (Placed & {
      readonly kind: 'table';
      readonly index: Source;
      readonly labels: readonly number[];
    })
  | (Placed & { readonly kind: 'exit' })
  | (Placed & { readonly kind: 'return' });

/** Collects the instructions of a function into blocks. */
export interface BlockBuilder {
  readonly label: (label: number) => void;
  readonly lanes: (operations: readonly LaneOperation[]) => void;
  readonly item: (item: Item) => void;
  readonly end: (ending: Ending) => void;
  /**
   * Finishes the blocks.
   * @param isEntry whether `ret` ends a lane for good
   */
  readonly finish: (isEntry: boolean) => readonly Block[];
}

interface Draft {
  readonly items: Item[];
  ending: Ending | null;
}

/** Operations as one stretch. */
export function stretch(operations: readonly LaneOperation[]): LaneStretch {
  const reads = new Set<number>();
  const writes = new Set<number>();
  for (const { guard, sources, destinations } of operations) {
    if (guard !== null) reads.add(guard.slot.offset);
    for (const source of sources) if ('offset' in source) reads.add(source.offset);
    for (const destination of destinations)
      if (destination !== null) writes.add(destination.offset);
  }
  return { kind: 'lanes', operations, reads, writes };
}

/** Collects the blocks of a function. */
export function createBlockBuilder(): BlockBuilder {
  const drafts: Draft[] = [{ items: [], ending: null }];
  const blockOfLabel = new Map<number, number>();
  let operations: LaneOperation[] = [];

  function flush(): Draft {
    const draft = drafts[drafts.length - 1];
    if (operations.length > 0) draft.items.push(stretch(operations));
    operations = [];
    return draft;
  }

  function open(): void {
    const draft = flush();
    if (draft.items.length > 0 || draft.ending !== null) drafts.push({ items: [], ending: null });
  }

  return {
    label: (label) => {
      open();
      blockOfLabel.set(label, drafts.length - 1);
    },
    lanes: (more) => operations.push(...more),
    item: (item) => flush().items.push(item),
    end: (ending) => {
      flush().ending = ending;
      drafts.push({ items: [], ending: null });
    },
    finish: (isEntry) => {
      flush();
      const terminators = drafts.map(({ ending }, block) =>
        terminatorOf(ending, block, { blockOfLabel, end: drafts.length, isEntry }),
      );
      if (isEntry) leaveEarly(drafts, terminators);
      const joins = joinsOf(terminators);
      return drafts.map(({ items }, block) => ({
        items,
        terminator: terminators[block],
        join: joins[block],
      }));
    },
  };
}

function terminatorOf(
  ending: Ending | null,
  block: number,
  around: {
    readonly blockOfLabel: ReadonlyMap<number, number>;
    readonly end: number;
    readonly isEntry: boolean;
  },
): Terminator {
  const { blockOfLabel, end, isEntry } = around;
  const next = block + 1;
  if (ending === null) return { kind: 'goto', target: next };
  const { guard, line, mnemonic, site } = ending;
  const place = { line, mnemonic, site };
  if (ending.kind === 'exit' || (ending.kind === 'return' && isEntry))
    return { kind: 'exit', ...place, guard, next: guard === null ? null : next };
  if (ending.kind === 'table') {
    const { index, labels } = ending;
    const targets = labels.map((label) => blockOfLabel.get(label)!);
    return { kind: 'table', ...place, guard, index, targets, next };
  }
  const target = ending.kind === 'return' ? end : blockOfLabel.get(ending.label)!;
  if (guard === null) return { kind: 'goto', target };
  return { kind: 'branch', ...place, guard, target, next };
}

/**
 * Turns a branch to a block that only ends its lanes into an exit: lanes with no work left in a kernel are then not
 * waited for where the others meet.
 */
function leaveEarly(drafts: readonly Draft[], terminators: Terminator[]): void {
  const isEnd = (block: number): boolean => {
    const terminator = terminators[block];
    if (drafts[block]?.items.length !== 0) return false;
    return terminator.kind === 'exit' && terminator.guard === null;
  };
  for (const [block, terminator] of terminators.entries()) {
    if (terminator.kind !== 'branch') continue;
    const { guard, target, next, line, mnemonic, site } = terminator;
    const placed = { line, mnemonic, site };
    const negated = { ...guard, isNegated: !guard.isNegated };
    if (isEnd(target)) terminators[block] = { kind: 'exit', ...placed, guard, next };
    else if (isEnd(next))
      terminators[block] = { kind: 'exit', ...placed, guard: negated, next: target };
  }
}

/**
 * The blocks where lanes that part at the end of each block meet again. Lanes that end are disregarded, since nobody
 * waits for them, except where there is no other way to the end.
 */
function joinsOf(terminators: readonly Terminator[]): readonly number[] {
  const end = terminators.length;
  const going = immediatePostDominators(terminators.map((one) => successorsOf(one, end)));
  const all = immediatePostDominators(
    terminators.map((one) =>
      one.kind === 'exit' ? [one.next ?? end, end] : successorsOf(one, end),
    ),
  );
  return going.map((join, block) => join ?? all[block] ?? end);
}

function successorsOf(terminator: Terminator, end: number): readonly number[] {
  switch (terminator.kind) {
    case 'goto':
      return [terminator.target];
    case 'branch':
      return [terminator.target, terminator.next];
    case 'table':
      return terminator.guard === null
        ? terminator.targets
        : [...terminator.targets, terminator.next];
    case 'exit':
      return [terminator.next ?? end];
  }
}
