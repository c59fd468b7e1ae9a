import { factorFaults } from './faults/factor-faults.js';
import { layoutFaults } from './faults/layout-faults.js';
import { roundingFaults } from './faults/rounding-faults.js';
import {
  extraFault,
  isStoredAt,
  slotFaults,
  tokenWords,
  type SlotFault,
} from './faults/slot-faults.js';
import { valueFaults } from './faults/value-faults.js';
import type { WriteFault } from './faults/write-fault.js';
import { isSettled } from './factor-rules.js';
import { rowsOf, type JudgedWrite, type WrongRow } from './judge-write.js';
import type { Supposition } from './supposition.js';
import { otherBytes, writtenBits } from './touched-bytes.js';

/** The cause of a write's failure. */
export interface WriteCause {
  readonly id: string;
  /** In a clause, with its place. */
  readonly sentence: string;
  /** Names of other causes that give the same. */
  readonly equivalents: readonly string[];
  /** The rows that show it. */
  readonly rows: readonly WrongRow[];
}

/** Whether a writer explains all that is wrong, and whether it explains all that is right as well. */
type Fit = 'all' | 'wrong' | null;

function explainsBytes({ write, others }: JudgedWrite, supposed: Supposition): boolean {
  if (others === null || others.changed === 0) return true;
  const all = [...write.slots, ...supposed.slots];
  return otherBytes(write, writtenBits(write, supposed, all))?.changed === 0;
}

function fitOf(judged: JudgedWrite, { supposed }: WriteFault): Fit {
  const { judge, wrongRows, write } = judged;
  const isRight = (row: WrongRow | (typeof wrongRows)[number]) => {
    const { wrong, wrongFactors } = judge(supposed, row, row.slot, true);
    return wrong + wrongFactors === 0;
  };
  if (!wrongRows.every(isRight) || !explainsBytes(judged, supposed)) return null;
  for (const row of rowsOf(write)) {
    const { wrong, wrongFactors } = judge(supposed, row, row.slot, true);
    if (wrong + wrongFactors > 0) return 'wrong';
  }
  return 'all';
}

/** Whether slots explain what is stored: at each slot one of the tokens that go there, and nothing beside. */
function fitsSlots(judged: JudgedWrite, { slots }: SlotFault): boolean {
  const { write, right } = judged;
  const tokensAt = new Map<number, number[]>();
  for (const [token, slot] of slots.entries())
    if (slot >= 0) tokensAt.set(slot, [...(tokensAt.get(slot) ?? []), token]);
  const isExplained = (part: number, slot: number, head: number) =>
    (tokensAt.get(slot) ?? []).some((token) => isStoredAt(judged, { part, token, head }, slot));
  const supposed = { ...right, slots };
  const wrong = new Set(
    judged.wrongRows.map(({ part, token, head }) => `${part}:${token}:${head}`),
  );
  let stored = 0;
  for (const { part, token, head, slot: own } of rowsOf(write)) {
    const slot = slots[token];
    if (slot >= 0) {
      if (!isExplained(part, slot, head)) return false;
      stored++;
    } else if (!wrong.has(`${part}:${token}:${head}`) && !isExplained(part, own, head))
      return false;
  }
  if (stored === 0 && judged.others === null) return false;
  const others = otherBytes(write, writtenBits(write, supposed, slots));
  return others === null || others.changed === 0;
}

/** Where wrong rows are, in words: "K, tokens 3 to 5, head 1"; '' where all rows are wrong. */
export function rowWords({ write, rows }: JudgedWrite, wrong: readonly WrongRow[]): string {
  if (wrong.length === 0 || wrong.length === rows) return '';
  const parts = [...new Set(wrong.map(({ part }) => part))];
  const heads = [...new Set(wrong.map(({ head }) => head))].sort((a, b) => a - b);
  const tokens = [...new Set(wrong.map(({ token }) => token))];
  const stored = new Set([...write.slots.keys()].filter((token) => write.slots[token] >= 0));
  const all = Math.max(...write.parts.map(({ input }) => input.shape[1]));
  const words = [
    ...(parts.length === write.parts.length ? [] : parts.map((part) => write.parts[part].name)),
    ...(tokens.length === stored.size ? [] : [tokenWords(tokens)]),
    ...(heads.length === all
      ? []
      : [`${heads.length === 1 ? 'head' : 'heads'} ${heads.join(', ')}`]),
  ];
  return words.length === 0 ? `${wrong.length} of ${rows} rows` : words.join(', ');
}

/** Right writers: with the rule of the factors, or where none is settled with each that is known. */
function* rightWriters(judged: JudgedWrite): Generator<Supposition> {
  const { rules, right } = judged;
  yield right;
  if (rules.every((one) => one === null || isSettled(one))) return;
  const seen = new Set<string>();
  for (const one of rules)
    for (const { terms } of one !== null && !isSettled(one) ? one.fitted : []) {
      const key = `${terms.rule}:${terms.maximum}`;
      if (seen.has(key) || terms.floor !== null) continue;
      seen.add(key);
      const parts = right.parts.map((of, part) => {
        const own = rules[part];
        return own === null || isSettled(own) ? of : { ...of, terms: { ...terms, code: of.code } };
      });
      yield { ...right, parts, sized: parts };
    }
}

function* writeFaults(judged: JudgedWrite, right: Supposition): Generator<WriteFault> {
  yield* layoutFaults(judged, right);
  yield* valueFaults(right);
  yield* factorFaults(right);
  yield* roundingFaults(right);
}

/** The first fault that explains all rows, else the first that explains those that are wrong. */
function byRows(judged: JudgedWrite): WriteCause | null {
  const { wrongRows } = judged;
  for (const right of rightWriters(judged)) {
    const fits: { readonly fault: WriteFault; readonly fit: Fit }[] = [];
    for (const fault of writeFaults(judged, right)) {
      const fit = fitOf(judged, fault);
      if (fit !== null) fits.push({ fault, fit });
    }
    const best = fits.find(({ fit }) => fit === 'all') ?? fits[0];
    if (best === undefined) continue;
    const { id, sentence } = best.fault;
    const others = fits.filter(({ fit, fault }) => fit === best.fit && fault.id !== id);
    const where = rowWords(judged, wrongRows);
    return {
      id,
      sentence: where === '' ? sentence : `${sentence} (${where})`,
      equivalents: [...new Set(others.map(({ fault }) => fault.id))],
      rows: wrongRows,
    };
  }
  return null;
}

/**
 * The cause of a failure: of the slots, then of what is stored in them, then of what was written besides; null where nothing that is
 * known leaves this in the cache.
 */
export function explainWrite(judged: JudgedWrite): WriteCause | null {
  const { wrongRows } = judged;
  for (const fault of slotFaults(judged))
    if (fitsSlots(judged, fault)) {
      const { id, sentence } = fault;
      return { id, sentence, equivalents: [], rows: wrongRows };
    }
  if (wrongRows.length > 0) return byRows(judged);
  const extra = extraFault(judged);
  return extra === null ? null : { ...extra, equivalents: [], rows: [] };
}
