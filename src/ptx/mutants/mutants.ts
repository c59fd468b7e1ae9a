import type { Program, ProgramFunction } from '../program/index.js';
import type { ProgramChange } from '../run/index.js';
import { editItem, type NoteChange, removeItem, type VisibleItem } from './changed-operations.js';
import type { Change } from './changes.js';
import { modifiersOf, mutatedInstruction } from './mnemonics.js';
import { moveOf, type ProgramPlace } from './moves.js';

/** The change that a mutant makes to its instruction. */
export type MutantKind = 'remove' | 'weaken' | 'move';

/** A program in which one instruction that orders others is changed. */
export interface Mutant {
  /** Its number among the mutants of the program, from 0. */
  readonly number: number;
  readonly kind: MutantKind;
  /** The instruction's line in the PTX. */
  readonly line: number;
  /** Its opcode and modifiers. */
  readonly mnemonic: string;
  /** The difference from the program: `removed`, `after line 412: tcgen05.mma`. */
  readonly change: string;
  /** The reason why the machine cannot tell it from the program; null where it can. */
  readonly unmodelled: string | null;
  /** The order that its instruction imposes and the machine does not check; null where the machine checks all of it. */
  readonly unfollowed: string | null;
  /** The changed items; `note` is called when one of them is executed. */
  readonly mutate: (note: NoteChange) => ProgramChange;
}

/** The instructions of a program that other threads see, in the order of the program. */
function* visiblePlaces(functions: readonly ProgramFunction[]): Generator<ProgramPlace> {
  for (const one of functions)
    for (const [block, { items }] of one.blocks.entries())
      for (const [index, item] of items.entries())
        if (item.kind === 'visible') yield { one, block, index, item };
}

/** The program with another item at a place. */
function replaced({ one, block, item }: ProgramPlace, by: VisibleItem): ProgramChange {
  const own = one.blocks[block];
  return new Map([
    [own, own.items.map((other) => ({ item: other === item ? by : other, as: other }))],
  ]);
}

/** Whether the change applies to an instruction with these modifiers. */
function applies({ of }: Change, modifiers: readonly string[]): boolean {
  return of === undefined || of.some((modifier) => modifiers.includes(modifier));
}

type Described = Omit<Mutant, 'number' | 'line' | 'mnemonic' | 'unfollowed'>;

function* mutantsAt(place: ProgramPlace): Generator<Described> {
  const { item } = place;
  const row = mutatedInstruction(item.mnemonic);
  if (row === null) return;
  const modifiers = modifiersOf(item.mnemonic);
  for (const change of row.changes) {
    if (!applies(change, modifiers)) continue;
    const { kind, name, unmodelled, edit } = change;
    const changed = kind === 'remove' ? removeItem : editItem;
    const mutate = (note: NoteChange) => replaced(place, changed(item, edit, note));
    yield { kind, change: name, unmodelled, mutate };
  }
  for (const direction of row.moves) {
    const move = moveOf(place, direction);
    if (move === null) continue;
    const where = direction === 'earlier' ? 'before' : 'after';
    const change = `${where} ${move.past.site}`;
    yield { kind: 'move', change, unmodelled: null, mutate: move.change };
  }
}

const initialisation = 'mbarrier.init';
const commit = 'tcgen05.commit';
/** Fences after which asynchronous operations may use an mbarrier that has been initialised. */
const initialisationFences: readonly string[] = [
  ...['fence.proxy.async', 'fence.proxy.async::generic', 'fence.mbarrier_init'],
];

/**
 * The reason why a fence after an initialisation may be needed if commits come without one; it is not needed if they
 * come after another fence.
 */
export const commitsSeeInitialisation =
  'whether tcgen05.commit needs a fence after the initialisation of its mbarrier the ISA does not say';

/**
 * Creates a function to call with each instruction in the order of the program: it gives the order that the instruction
 * imposes and the machine does not check. The first fence behind initialisations makes them known to asynchronous operations:
 * to commits too, and the ISA does not say whether commits need the fence.
 *
 * @param hasCommits whether there are any
 */
function createUnfollowed(hasCommits: boolean): (mnemonic: string) => string | null {
  let isInitialised = false;
  return (mnemonic) => {
    const row = mutatedInstruction(mnemonic);
    if (row?.name === initialisation) isInitialised = true;
    if (row === null || !initialisationFences.includes(row.name)) return row?.unfollowed ?? null;
    const isFirst = isInitialised;
    isInitialised = false;
    return isFirst && hasCommits ? commitsSeeInitialisation : null;
  };
}

/**
 * Every mutant of a program: each wait, arrival, fence, barrier, commit and strong access removed, weakened or moved, by
 * the table of `mutated-instructions.ts`. An instruction in a function that is called from several places is changed in
 * all of them.
 */
export function programMutants({ functions }: Pick<Program, 'functions'>): readonly Mutant[] {
  const all: Mutant[] = [];
  const places = [...visiblePlaces(functions)];
  const unfollowedOf = createUnfollowed(
    places.some(({ item }) => mutatedInstruction(item.mnemonic)?.name === commit),
  );
  for (const place of places) {
    const { line, mnemonic } = place.item;
    const unfollowed = unfollowedOf(mnemonic);
    for (const described of mutantsAt(place))
      all.push({ number: all.length, line, mnemonic, unfollowed, ...described });
  }
  return all;
}
