import { cachePartShape, tells } from '../../../../problem/index.js';
import { tableSlot, type JudgedWrite } from '../judge-write.js';
import type { Row, Supposition } from '../supposition.js';
import { isAsBefore, slotsAt } from '../touched-bytes.js';

/** Slots that a writer with a fault stores tokens at; −1 for a token that it does not store. */
export interface SlotFault {
  readonly id: string;
  readonly sentence: string;
  readonly slots: Int32Array;
}

function numberOfSlots({ right }: JudgedWrite): number {
  return right.parts[0].numbers.sizes.slots;
}

function mapped(judged: JudgedWrite, change: (slot: number, token: number) => number): Int32Array {
  const most = numberOfSlots(judged);
  return judged.write.slots.map((slot, token) => {
    if (slot < 0) return slot;
    const found = change(slot, token);
    return found >= 0 && found < most ? found : -1;
  });
}

function pageWords(from: number, to: number): string {
  return `${Math.abs(to - from)} ${Math.abs(to - from) === 1 ? 'slot' : 'slots'} ${to > from ? 'behind' : 'before'}`;
}

/** Faults that are the same arithmetic mistake for all tokens. */
function* arithmeticFaults(judged: JudgedWrite): Generator<SlotFault> {
  const { blockSize, table, slots } = judged.write;
  for (const by of [1, -1, blockSize, -blockSize])
    yield {
      id: 'slot-shifted',
      sentence: `tokens are stored ${pageWords(0, by)} their own`,
      slots: mapped(judged, (slot) => slot + by),
    };
  for (const other of [8, 16, 32, 64, 128, 256, blockSize * 2, blockSize / 2, blockSize + 1])
    if (Number.isInteger(other) && other !== blockSize)
      yield {
        id: 'block-size',
        sentence: `slots are counted in blocks of ${other}, where blocks have ${blockSize}`,
        slots: mapped(judged, (slot) => Math.floor(slot / blockSize) * other + (slot % blockSize)),
      };
  if (table === null) {
    yield {
      id: 'slot-of-other-token',
      sentence: 'each token is stored in the slot of the next',
      slots: mapped(judged, (_, token) => slots[(token + 1) % slots.length]),
    };
    return;
  }
  yield {
    id: 'slot-shifted',
    sentence: 'each token is stored in the slot of the next position of its sequence',
    slots: mapped(judged, (_, token) => {
      const positions = table.positions.map((x) => x + 1);
      return tableSlot({ ...table, positions }, token, blockSize);
    }),
  };
  yield {
    id: 'slot-shifted',
    sentence: 'each token is stored in the slot of the position before in its sequence',
    slots: mapped(judged, (_, token) => {
      const positions = table.positions.map((x) => Math.max(0, x - 1));
      return tableSlot({ ...table, positions }, token, blockSize);
    }),
  };
  const sequences = table.pages.length / table.perSequence;
  for (const [by, side] of [
    [1, 'behind'],
    [-1, 'before'],
  ] as const)
    yield {
      id: 'slot-of-other-sequence',
      sentence: `tokens are stored in the pages of the sequence ${side}`,
      slots: mapped(judged, (_, token) => {
        const moved = table.sequences.map((x) => (x + by + sequences) % sequences);
        return tableSlot({ ...table, sequences: moved }, token, blockSize);
      }),
    };
  yield {
    id: 'page-table-unused',
    sentence: "tokens are stored at their positions, without the page table's pages",
    slots: mapped(judged, (_, token) => table.positions[token]),
  };
}

/** Whether a row is stored at a slot as a right writer stores it. */
export function isStoredAt({ judge, right }: JudgedWrite, row: Row, slot: number): boolean {
  const { wrong, wrongFactors, judged } = judge(right, row, slot, true);
  return wrong + wrongFactors === 0 && judged > 0;
}

/** Whether the numbers of a row tell it from others: several that are not zero. */
function isTelling({ right }: JudgedWrite, { part, token, head }: Row): boolean {
  const { values, part: of } = right.parts[part];
  const { heads, columns } = cachePartShape(of);
  const at = (token * heads + head) * columns;
  return new Set(values.low.subarray(at, at + columns)).size >= Math.min(4, columns);
}

/** The slot where all rows of a token are; null where there is none. Where nobody knows what was before, all are searched. */
export function slotOfToken(
  judged: JudgedWrite,
  token: number,
  places: readonly number[],
): number | null {
  const { write } = judged;
  const rows = write.parts.flatMap((part, index): Row[] =>
    Array.from({ length: cachePartShape(part).heads }, (_, head) => ({ part: index, token, head })),
  );
  if (!rows.some((row) => isTelling(judged, row))) return null;
  return places.find((slot) => rows.every((row) => isStoredAt(judged, row, slot))) ?? null;
}

/** Slots that hold something else than before the write; all of them where nobody knows. */
export function changedSlots({ write, right }: JudgedWrite): number[] {
  const [{ numbers }] = right.parts;
  const { heads, slots } = numbers.sizes;
  const all = Array.from({ length: slots }, (_, slot) => slot);
  if (write.before === null) return all;
  return all.filter((slot) =>
    Array.from({ length: heads }, (_, head) => head).some(
      (head) => !isAsBefore(write, numbers, slot, head),
    ),
  );
}

/** Tokens in words: "token 5", "tokens 3 to 5". */
export function tokenWords(tokens: readonly number[]): string {
  const sorted = [...new Set(tokens)].sort((a, b) => a - b);
  const [first] = sorted;
  const last = sorted[sorted.length - 1];
  if (sorted.length === 1) return `token ${first}`;
  if (last - first + 1 === sorted.length) return `tokens ${first} to ${last}`;
  const shown = sorted.slice(0, 3).join(', ');
  return sorted.length > 3 ? `tokens ${shown} and ${sorted.length - 3} more` : `tokens ${shown}`;
}

/** The fault of tokens that are not stored at all. */
function missingFault(judged: JudgedWrite, missing: readonly number[]): SlotFault {
  const { slots, table } = judged.write;
  const stored = [...slots.keys()].filter((token) => slots[token] >= 0);
  const tail = stored.slice(-missing.length);
  const isLast = (token: number) =>
    table !== null &&
    !stored.some(
      (other) =>
        table.sequences[other] === table.sequences[token] &&
        table.positions[other] > table.positions[token] &&
        !missing.includes(other),
    );
  const isTail =
    missing.length < stored.length && (String(tail) === String(missing) || missing.every(isLast));
  return {
    id: isTail ? 'tail-missing' : 'not-stored',
    sentence: isTail
      ? `the last ${missing.length === 1 ? 'token is' : `${missing.length} tokens are`} not stored: ${tokenWords(missing)}`
      : `${tokenWords(missing)} ${missing.length === 1 ? 'is' : 'are'} not stored`,
    slots: mapped(judged, (slot, token) => (missing.includes(token) ? -1 : slot)),
  };
}

/** The fault that is seen by where wrong tokens are. */
function* observedFaults(judged: JudgedWrite): Generator<SlotFault> {
  const { write, wrongRows } = judged;
  const { slots, blockSize } = write;
  const wrong = [...new Set(wrongRows.map(({ token }) => token))].sort((a, b) => a - b);
  const places = changedSlots(judged);
  const isUntouched = (token: number) =>
    write.before !== null &&
    judged.right.parts.every(({ numbers }) =>
      Array.from({ length: numbers.sizes.heads }, (_, head) => head).every((head) =>
        isAsBefore(write, numbers, slots[token], head),
      ),
    );
  const found = new Map<number, number>();
  for (const token of wrong.slice(0, mostSearched)) {
    const slot = slotOfToken(judged, token, places);
    if (slot !== null) found.set(token, slot);
  }
  const missing = wrong.filter((token) => !found.has(token) && isUntouched(token));
  if (found.size === 0 && missing.length > 0) yield missingFault(judged, missing);
  if (found.size === 0) return;
  const moved = mapped(judged, (slot, token) => found.get(token) ?? slot);
  for (const token of missing) moved[token] = -1;
  const pages = [...found].map(([token, slot]) => ({
    from: slots[token],
    to: slot,
    isSameOffset: slot % blockSize === slots[token] % blockSize,
  }));
  const [first] = pages;
  const [token] = found.keys();
  if (pages.every(({ isSameOffset }) => isSameOffset)) {
    const owner = ownerOf(judged, Math.floor(first.to / blockSize));
    yield {
      id: 'page-stale',
      sentence: `${tokenWords([...found.keys()])} ${found.size === 1 ? 'is' : 'are'} stored in another page than the slots say: page ${Math.floor(first.to / blockSize)}${owner}, not ${Math.floor(first.from / blockSize)}`,
      slots: moved,
    };
  }
  yield {
    id: 'wrong-slot',
    sentence: `tokens are stored in wrong slots: token ${token} in ${first.to}, not in ${first.from}${found.size === 1 ? '' : `, and ${found.size - 1} more`}`,
    slots: moved,
  };
}

/** Wrong tokens that are searched for in the cache. */
const mostSearched = 256;

function ownerOf({ write }: JudgedWrite, page: number): string {
  const { table } = write;
  if (table === null) return '';
  const at = table.pages.indexOf(page);
  return at < 0 ? ', of no sequence' : `, of sequence ${Math.floor(at / table.perSequence)}`;
}

/** Faults of the slots, arithmetic ones first. */
export function* slotFaults(judged: JudgedWrite): Generator<SlotFault> {
  if (judged.wrongRows.length === 0) return;
  yield* arithmeticFaults(judged);
  yield* observedFaults(judged);
}

/** What was written beside the right slots: a cause where all rows are right. */
export interface ExtraFault {
  readonly id: string;
  readonly sentence: string;
}

/** The cause of bytes that were written and must not be. */
export function extraFault(judged: JudgedWrite): ExtraFault | null {
  const { others, right, write } = judged;
  if (others === null || others.changed === 0) return null;
  const { slots, padding } = slotsAt(right, others.first);
  if (slots.length === 0 && padding > 0)
    return {
      id: 'padding-overwritten',
      sentence: `${others.changed} bytes of padding were overwritten, the first at byte ${others.first[0].byte} of ${others.first[0].buffer}`,
    };
  const touched = [...new Set(slots.map(({ slot }) => slot))];
  const skipped = [...write.slots.keys()].filter((token) => write.slots[token] < 0);
  const stored = [...write.slots.keys()].filter((token) => write.slots[token] >= 0);
  for (const token of skipped.slice(0, mostSearched)) {
    const slot = slotOfToken(judged, token, touched);
    if (slot !== null)
      return {
        id: 'skipped-token-stored',
        sentence: `token ${token} has the slot -1, and is stored in slot ${slot}`,
      };
  }
  for (const token of stored.slice(0, mostSearched)) {
    const slot = slotOfToken(judged, token, touched);
    if (slot !== null)
      return {
        id: 'stored-twice',
        sentence: `token ${token} is stored twice: in slot ${write.slots[token]}, and in slot ${slot} too`,
      };
  }
  const heads = new Set(slots.map(({ head }) => head));
  const names = new Set(slots.map(({ part }) => write.parts[part].name));
  const isFactors = slots.every(({ isFactor }) => isFactor);
  return {
    id: 'other-bytes-overwritten',
    sentence: `other bytes were overwritten: ${isFactors ? 'factors' : 'numbers'} of ${[...names].join(' and ')} in ${touched.length === 1 ? `slot ${touched[0]}` : `slots ${touched.slice(0, 3).join(', ')}${touched.length > 3 ? ` and ${touched.length - 3} more` : ''}`}${heads.size === 1 && tells(right.parts[0].numbers, 'head') ? `, head ${[...heads][0]}` : ''}`,
  };
}

/** A writer that stores tokens in other slots. */
export function withSlots(right: Supposition, { slots }: SlotFault): Supposition {
  return { ...right, slots };
}

/** The cause of slots that are not those of the page table, or that more than one token has; null where they are right. */
export function mappingFault(judged: JudgedWrite): ExtraFault | null {
  const { write, wrongSlots, sharedSlots } = judged;
  const [first] = wrongSlots;
  if (first === undefined)
    return sharedSlots.length === 0
      ? null
      : {
          id: 'slot-given-twice',
          sentence: `slot ${sharedSlots[0]} is given to more than one token`,
        };
  const { blockSize, slots } = write;
  const expected = slots.slice();
  for (const one of wrongSlots) expected[one.token] = one.expected;
  const right: JudgedWrite = { ...judged, write: { ...write, slots: expected } };
  for (const fault of arithmeticFaults(right))
    if (fault.slots.every((slot, token) => slot === slots[token]))
      return {
        id: fault.id,
        sentence: `the slots are wrong before they are used: ${fault.sentence}`,
      };
  const isPage = wrongSlots.every((one) => one.slot % blockSize === one.expected % blockSize);
  const page = Math.floor(first.slot / blockSize);
  const tokens = tokenWords(wrongSlots.map(({ token }) => token));
  return isPage
    ? {
        id: 'page-stale',
        sentence: `slot_mapping has ${tokens} in page ${page}${ownerOf(judged, page)}, where the page table has page ${Math.floor(first.expected / blockSize)}`,
      }
    : {
        id: 'wrong-slot',
        sentence: `slot_mapping has ${tokens} in other slots than the page table`,
      };
}
