import type { Finding, FindingAccess } from '../../machine/index.js';
import type { MarkedReads } from '../record/index.js';
import { lostValue, type Trace } from '../trace/index.js';
import { liveValues } from './live-values.js';

const loadPattern = /: ld\./;

function isLoad({ site }: FindingAccess): boolean {
  return loadPattern.test(site);
}

/** The places of the program where what is loaded races with a write: those to mark in another run, for `findHarmlessRaces`. */
export function racingLoads(findings: readonly Finding[]): ReadonlySet<string> {
  return new Set(
    findings
      .filter(({ kind }) => kind === 'race')
      .flatMap(({ accesses }) => accesses.filter(isLoad).map(({ site }) => site)),
  );
}

/** All values on which an output, a decision or an address may depend; integers may be addresses. */
function liveIn(
  trace: Trace,
  { otherUses }: MarkedReads,
  outputs: readonly Uint32Array[],
): Uint8Array {
  const last = new Set(otherUses);
  for (const values of outputs) for (const value of values) last.add(value);
  for (let value = 0; value < trace.count; value++)
    if (trace.formatOf(value).isInteger) last.add(value);
  return liveValues(trace, last);
}

/**
 * The races that change no output, of a run with marked reads: what was loaded in them became part of no output, decided nothing and
 * was no address. So the run would have gone the same way, and left the same outputs, whatever it had loaded there. A race stays
 * where it is one of two writes, where the reader is no plain load, and where not all that was loaded could be followed. Loads
 * by warps of the same number at the same place are judged together, those of other CTAs too.
 *
 * @param outputs the numbers of the outputs' values
 */
export function findHarmlessRaces(
  findings: readonly Finding[],
  reads: MarkedReads,
  outputs: readonly Uint32Array[],
): readonly Finding[] {
  const { trace, isComplete } = reads;
  if (!isComplete || outputs.some((values) => values.includes(lostValue))) return [];
  const live = liveIn(trace, reads, outputs);
  const isDead = ({ who, site }: FindingAccess): boolean => {
    const warp = /\bwarp (\d+)\b/.exec(who);
    const values = warp && reads.readAt(site, Number(warp[1]));
    return values !== null && values.every((value) => live[value] === 0);
  };
  return findings.filter(
    ({ kind, accesses }) =>
      kind === 'race' && accesses.some(isLoad) && accesses.filter(isLoad).every(isDead),
  );
}
