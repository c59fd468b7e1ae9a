import {
  type Finding,
  type FindingAccess,
  findingGroup,
  type FindingKind,
  type FindingWeight,
  findingWeight,
} from '../../machine/index.js';
import { lineOfSite, type SourceLine } from '../../ptx/syntax/index.js';
import type { LaunchRun } from '../../ptx/run/index.js';
import { formatGroupedCount } from '../../words/index.js';

/** The source of the lines of the PTX, by their numbers. */
export type SourceLines = ReadonlyMap<number, SourceLine>;

/** One of the accesses that a finding is about. */
export interface LaunchAccess extends FindingAccess {
  /** Its line in the source that the PTX was compiled from; null if the PTX does not say. */
  readonly source: SourceLine | null;
}

/** A finding, and the number of clusters with it. */
export interface LaunchFinding extends Finding {
  readonly accesses: readonly LaunchAccess[];
  /** The first cluster with the finding, and the number of clusters with it. */
  readonly cluster: number;
  readonly clusters: number;
}

/** A line of the PTX, with its source where that is known. */
export interface ProgramLine {
  readonly line: number;
  readonly source: SourceLine | null;
}

/** Findings of a kind at the same lines of the PTX, whichever warps and places of memory they are about. */
export interface FindingGroup {
  readonly kind: FindingKind;
  /** Ascending; none where the findings name none. */
  readonly lines: readonly ProgramLine[];
  /** The first of them, and the number of different ones. */
  readonly first: LaunchFinding;
  readonly findings: number;
  /** Number of occurrences, and of clusters with them. */
  readonly count: number;
  readonly clusters: number;
}

function sourceOf(site: string, sources: SourceLines): SourceLine | null {
  const line = lineOfSite(site);
  return line === null ? null : (sources.get(line) ?? null);
}

/** Findings of all clusters, without duplicates. */
export function gatherFindings(
  findings: LaunchRun['findings'],
  sources: SourceLines,
): readonly LaunchFinding[] {
  const all = new Map<string, LaunchFinding>();
  for (const finding of findings) {
    const sites = finding.accesses.map(({ who, site }) => who + site);
    const key = [finding.kind, finding.message, ...sites].join('\n');
    const accesses = finding.accesses.map((one) => ({
      ...one,
      source: sourceOf(one.site, sources),
    }));
    const first = all.get(key) ?? { ...finding, accesses, clusters: 0, count: 0 };
    const { clusters, count } = first;
    all.set(key, { ...first, clusters: clusters + 1, count: count + finding.count });
  }
  return [...all.values()];
}

function programLines(accesses: readonly LaunchAccess[]): readonly ProgramLine[] {
  const lines = new Map<number, ProgramLine>();
  for (const { site, source } of accesses) {
    const line = lineOfSite(site);
    if (line !== null) lines.set(line, { line, source });
  }
  return [...lines.values()].sort((a, b) => a.line - b.line);
}

/** Findings by their kind and their lines of the PTX, in the order of their first occurrence. */
export function groupFindings(
  findings: LaunchRun['findings'],
  sources: SourceLines,
): readonly FindingGroup[] {
  const clustersOf = new Map<string, Set<number>>();
  for (const finding of findings) {
    const key = findingGroup(finding);
    clustersOf.set(key, (clustersOf.get(key) ?? new Set()).add(finding.cluster));
  }
  const groups = new Map<string, FindingGroup>();
  for (const finding of gatherFindings(findings, sources)) {
    const key = findingGroup(finding);
    const known = groups.get(key) ?? {
      kind: finding.kind,
      lines: programLines(finding.accesses),
      first: finding,
      findings: 0,
      count: 0,
      clusters: clustersOf.get(key)?.size ?? 0,
    };
    const { findings: different, count } = known;
    groups.set(key, { ...known, findings: different + 1, count: count + finding.count });
  }
  return [...groups.values()];
}

/** "kernel.py:42", and where the function of that line has been inlined: of a file its name alone. */
export function sourceText({ file, line, inlinedAt }: SourceLine): string {
  const place = (path: string, number: number) => `${path.replace(/^.*[\\/]/, '')}:${number}`;
  const inlined = inlinedAt === null ? '' : `, inlined at ${place(inlinedAt.file, inlinedAt.line)}`;
  return `${place(file, line)}${inlined}`;
}

/** ", of kernel.py:42 and kernel.py:45": the source of lines of the PTX, in a clause; '' if it is not known. */
function sourceClause(lines: readonly ProgramLine[]): string {
  const known = lines.flatMap(({ source }) => (source === null ? [] : [sourceText(source)]));
  return known.length === 0 ? '' : `, of ${[...new Set(known)].join(' and ')}`;
}

/** Statements about a run of a compiled kernel beside its numbers. */
export interface MachineStatements {
  /** Faults whatever the numbers are, a clause each: illegal acts, and not coming to its end. */
  readonly faults: readonly string[];
  /** Other notes for a reader, a clause each. */
  readonly notes: readonly string[];
}

/** Unordered strong accesses, in a clause: the first, and the number of others. */
export function dependenceClause(dependences: LaunchRun['dependences']): string {
  const [first, ...others] = dependences;
  const [one, other] = first.accesses;
  const more =
    others.length === 0 ? '' : ` (and ${formatGroupedCount(others.length, 'other pair')})`;
  return `what ${one.site} and ${other.site} give depends on which comes first${more}`;
}

/** The most faults that are listed one by one; the others are counted. */
const mostFaults = 20;

/** The machine's findings, in clauses that follow the kernel's name. Hints are no faults. */
export function machineStatements(
  run: LaunchRun,
  sources: SourceLines = new Map(),
): MachineStatements {
  const groups = groupFindings(run.findings, sources);
  const of = (weight: FindingWeight) => groups.filter(({ kind }) => findingWeight(kind) === weight);
  const [faults, oneSchedule, hints] = [of('illegal'), of('one-schedule'), of('hint')];
  const more = faults.length - mostFaults;
  const ran = `ran on the emulated machine with the arithmetic of ${run.architecture}`;
  return {
    faults: [
      ...faults.slice(0, mostFaults).map(({ kind, lines, first: { message }, findings }) => {
        const others = findings - 1;
        const alike = others === 0 ? '' : ` (and ${formatGroupedCount(others, 'other')} like it)`;
        return `has a finding, ${kind}: ${message}${sourceClause(lines)}${alike}`;
      }),
      ...(more > 0 ? [`has ${formatGroupedCount(more, 'more finding')}`] : []),
      ...(run.isComplete ? [] : ['does not come to its end']),
    ],
    notes: [
      `${ran}: ${formatGroupedCount(faults.length, 'finding')}, ${formatGroupedCount(hints.length, 'hint')}`,
      ...oneSchedule.map(({ first }) => `speaks for one schedule: ${first.message}`),
      ...(run.dependences.length === 0
        ? []
        : [`speaks for one schedule: ${dependenceClause(run.dependences)}`]),
      ...(run.areCtasCompared
        ? []
        : ['has a grid too large for the order between its clusters to be looked at']),
    ],
  };
}
