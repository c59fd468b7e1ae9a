import { type Finding, type FindingWeight, findingWeight } from '../../machine/index.js';
import type { LaunchRun } from '../../ptx/run/index.js';
import { formatGroupedCount } from '../../words/index.js';

/** A finding, and in how many clusters it was made. */
export interface LaunchFinding extends Finding {
  /** The first cluster that it was made in, and in how many it was. */
  readonly cluster: number;
  readonly clusters: number;
}

/** Findings of all clusters, the same one once. */
export function gatherFindings(findings: LaunchRun['findings']): readonly LaunchFinding[] {
  const all = new Map<string, LaunchFinding>();
  for (const finding of findings) {
    const sites = finding.accesses.map(({ who, site }) => who + site);
    const key = [finding.kind, finding.message, ...sites].join('\n');
    const first = all.get(key) ?? { ...finding, clusters: 0, count: 0 };
    const { clusters, count } = first;
    all.set(key, { ...first, clusters: clusters + 1, count: count + finding.count });
  }
  return [...all.values()];
}

/** What a run of a compiled kernel says of it beside its numbers. */
export interface MachineStatements {
  /** What is wrong whatever the numbers are, a clause each: illegal acts, and that it does not come to its end. */
  readonly faults: readonly string[];
  /** What a reader should know beside, a clause each. */
  readonly notes: readonly string[];
}

/** Strong accesses in no order, in a clause: the first, and how many others there are. */
export function dependenceClause(dependences: LaunchRun['dependences']): string {
  const [first, ...others] = dependences;
  const [one, other] = first.accesses;
  const more =
    others.length === 0 ? '' : ` (and ${formatGroupedCount(others.length, 'other pair')})`;
  return `what ${one.site} and ${other.site} give depends on which comes first${more}`;
}

/** Faults that are told one by one; the others are counted. */
const mostFaults = 20;

/** Findings of a kind at the same lines, in whichever CTAs and warps: the first, and how many others there are. */
function alikeFindings(findings: readonly LaunchFinding[]) {
  const all = new Map<string, { readonly first: LaunchFinding; others: number }>();
  for (const finding of findings) {
    const { kind, message, accesses } = finding;
    const key = [kind, ...(accesses.length === 0 ? [message] : accesses.map(({ site }) => site))];
    const alike = all.get(key.join('\n'));
    if (alike === undefined) all.set(key.join('\n'), { first: finding, others: 0 });
    else alike.others++;
  }
  return [...all.values()];
}

/** What the machine has found, in clauses that follow the kernel's name. Hints are no faults. */
export function machineStatements(run: LaunchRun): MachineStatements {
  const findings = gatherFindings(run.findings);
  const of = (weight: FindingWeight) =>
    findings.filter(({ kind }) => findingWeight(kind) === weight);
  const [illegal, oneSchedule, hints] = [of('illegal'), of('one-schedule'), of('hint')];
  const faults = alikeFindings(illegal);
  const more = faults.length - mostFaults;
  const ran = `ran on the emulated machine with the arithmetic of ${run.architecture}`;
  return {
    faults: [
      ...faults.slice(0, mostFaults).map(({ first: { kind, message }, others }) => {
        const alike = others === 0 ? '' : ` (and ${formatGroupedCount(others, 'other')} like it)`;
        return `has a finding, ${kind}: ${message}${alike}`;
      }),
      ...(more > 0 ? [`has ${formatGroupedCount(more, 'more finding')}`] : []),
      ...(run.isComplete ? [] : ['does not come to its end']),
    ],
    notes: [
      `${ran}: ${formatGroupedCount(illegal.length, 'finding')}, ${formatGroupedCount(hints.length, 'hint')}`,
      ...alikeFindings(oneSchedule).map(({ first }) => `speaks for one schedule: ${first.message}`),
      ...(run.dependences.length === 0
        ? []
        : [`speaks for one schedule: ${dependenceClause(run.dependences)}`]),
      ...(run.areCtasCompared
        ? []
        : ['has a grid too large for the order between its clusters to be looked at']),
    ],
  };
}
