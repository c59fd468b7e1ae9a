import { writtenValues, type FactorTerms, type Spans } from '../../../../oracles/index.js';
import {
  checkCacheWrite,
  cachePartShape,
  type CacheWrite,
  type PageTable,
} from '../../../problem/index.js';
import { isSettled, rulesOf, type PartRules } from './factor-rules.js';
import { createRowJudge, type JudgedRow, type RowJudge } from './judge-row.js';
import { rightWriter, type Row, type Supposition } from './supposition.js';
import { otherBytes, writtenBits, type OtherBytes } from './touched-bytes.js';

/** A row that is not stored as it has to be. */
export interface WrongRow extends Row {
  readonly slot: number;
  readonly judged: JudgedRow;
}

/** A token whose slot is another than the page table gives it. */
export interface WrongSlot {
  readonly token: number;
  readonly slot: number;
  readonly expected: number;
}

/** What is found in the cache, held against what a right writer stores. */
export interface JudgedWrite {
  readonly write: CacheWrite;
  readonly judge: RowJudge;
  /** The exact numbers of each part. */
  readonly values: readonly Spans[];
  readonly rules: readonly (PartRules | null)[];
  readonly right: Supposition;
  readonly rows: number;
  readonly wrongRows: readonly WrongRow[];
  readonly counts: Counts;
  /** Slots that more than one token has. */
  readonly sharedSlots: readonly number[];
  readonly wrongSlots: readonly WrongSlot[];
  readonly others: OtherBytes | null;
}

/** Sums over all rows. */
export type Counts = {
  readonly [Member in 'wrong' | 'judged' | 'either' | 'wrongFactors' | 'judgedFactors']: number;
};

/** The slot of a token by the page table. */
export function tableSlot(
  { pages, perSequence, sequences, positions }: PageTable,
  token: number,
  blockSize: number,
): number {
  const position = positions[token];
  const page = pages[sequences[token] * perSequence + Math.floor(position / blockSize)];
  return page * blockSize + (position % blockSize);
}

function wrongSlotsOf({ table, slots, blockSize }: CacheWrite): WrongSlot[] {
  if (table === null) return [];
  return [...slots.entries()].flatMap(([token, slot]) => {
    const expected = tableSlot(table, token, blockSize);
    return slot < 0 || slot === expected ? [] : [{ token, slot, expected }];
  });
}

function sharedSlotsOf(slots: Int32Array): number[] {
  const [once, more] = [new Set<number>(), new Set<number>()];
  for (const slot of slots) if (slot >= 0) (once.has(slot) ? more : once).add(slot);
  return [...more];
}

/** All rows of a write that are stored. */
export function* rowsOf({ parts, slots }: CacheWrite): Generator<Row & { readonly slot: number }> {
  for (const [part, one] of parts.entries())
    for (const [token, slot] of slots.entries()) {
      if (slot < 0) continue;
      for (let head = 0; head < cachePartShape(one).heads; head++)
        yield { part, token, head, slot };
    }
}

/**
 * Judges a write: each row at its slot, by the rules of its factors, and all bytes beside them.
 * @throws RequestError for what does not fit together
 */
export function judgeWrite(write: CacheWrite): JudgedWrite {
  checkCacheWrite(write);
  const values = write.parts.map(writtenValues);
  const rules = write.parts.map((part, index) => rulesOf(write, part, values[index]));
  const termsOf = (part: number): FactorTerms | null => rules[part]?.fitted[0].terms ?? null;
  const right = rightWriter(write, termsOf, values);
  const judge = createRowJudge(write);
  const counts = { wrong: 0, judged: 0, either: 0, wrongFactors: 0, judgedFactors: 0 };
  const wrongRows: WrongRow[] = [];
  let rows = 0;
  for (const row of rowsOf(write)) {
    const judged = judge(right, row, row.slot);
    rows++;
    for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] += judged[name];
    if (judged.wrong + judged.wrongFactors > 0) wrongRows.push({ ...row, judged });
  }
  return {
    write,
    judge,
    values,
    rules,
    right,
    rows,
    wrongRows,
    counts,
    sharedSlots: sharedSlotsOf(write.slots),
    wrongSlots: wrongSlotsOf(write),
    others: otherBytes(write, writtenBits(write, right, write.slots)),
  };
}

/** Parts whose factors follow no rule that is known or declared. */
export function unruledParts({ rules }: Pick<JudgedWrite, 'rules'>): number[] {
  return [...rules.entries()].flatMap(([part, one]) =>
    one === null || isSettled(one) ? [] : [part],
  );
}
