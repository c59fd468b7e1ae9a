import type { Timeline, TimelineEvent } from '../../../src/browser/index.js';

/** Warps that wait for the same thing at the same place. */
export interface WaitingWarps {
  /** Which, as "warps 8 to 11 (correction)". */
  readonly who: string;
  /** Where in the program. */
  readonly site: string;
  /** For what, and what of it has come. */
  readonly awaited: string;
}

const wait = /^CTA (\d+) warp (\d+) \(([^)]*)\) at "([^"]*)" waits for (.*)$/;

/** Numbers as ranges: "8 to 11", "3", "0, 2". */
function ranges(numbers: readonly number[]): string {
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  if (numbers.length > 2 && last - first === numbers.length - 1) return `${first} to ${last}`;
  return numbers.join(', ');
}

/** What each warp of a deadlock waits for; null for a finding of another kind. */
function clausesOf(finding: string): readonly string[] | null {
  if (!finding.startsWith('deadlock: ')) return null;
  return finding.replace(/^(deadlock: )+/, '').split(/; (?=CTA \d+ warp)/);
}

/** The waits of a deadlock as events: they have no end, so that the run has none of them. */
export function endlessWaits({
  findings,
  tracks,
  events,
  clocks,
}: Timeline): readonly TimelineEvent[] {
  return findings.flatMap(clausesOf).flatMap((clause) => {
    const [, cta, warp, , name] = wait.exec(clause ?? '') ?? [];
    const of = tracks.find(
      (track) => track.cta === Number(cta) && track.name.startsWith(`warp ${warp} `),
    );
    if (of === undefined) return [];
    const track = of.id;
    const start = Math.max(
      0,
      ...events.filter((event) => event.track === track).map(({ end }) => end),
    );
    return [{ track, name, start, end: clocks + 1, isWait: true }];
  });
}

/** The waits of a deadlock by what is awaited; null for a finding of another kind. */
export function deadlockOf(finding: string): readonly WaitingWarps[] | null {
  const clauses = clausesOf(finding);
  if (clauses === null) return null;
  const groups = new Map<string, { readonly parts: RegExpExecArray; readonly warps: number[] }>();
  for (const clause of clauses) {
    const parts = wait.exec(clause);
    if (parts === null) return null;
    const [, cta, warp, ...rest] = parts;
    const key = [cta, ...rest].join('\n');
    const group = groups.get(key) ?? { parts, warps: [] };
    groups.set(key, group);
    group.warps.push(Number(warp));
  }
  const hasTwo = clauses.some((clause) => clause.startsWith('CTA 1'));
  return [...groups.values()].map(({ parts: [, cta, , role, site, awaited], warps }) => ({
    who: `${hasTwo ? `CTA ${cta}, ` : ''}${warps.length === 1 ? 'warp' : 'warps'} ${ranges(warps)} (${role})`,
    site,
    // Who is there already is all others.
    awaited: awaited.replace(/ \((?:from )?CTA .*\)$/, ''),
  }));
}
