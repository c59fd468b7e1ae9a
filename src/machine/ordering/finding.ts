import { clockHas, type EventClocks, type Stamp } from './accesses.js';

/** The kinds of illegal acts that the machine finds. */
export const findingKinds = {
  race: 'two accesses of which one writes, in no order',
  uninitialised: 'a read of what nobody has written',
  'overwritten-unread': 'a write over data that nobody has read',
  'lane-window': 'a warp reaches for lanes of tensor memory that are not its own',
  'tensor-allocation': 'tensor memory allocated, used or freed against the rules',
  'leaked-tensor-memory': 'tensor memory that is not freed at the end',
  'shared-overflow': 'more shared memory than a CTA has, or an access beyond it',
  'out-of-bounds': 'an access outside of what is allocated, or to what has been freed',
  'state-space': 'an access to a state space that the instruction cannot reach, or may not write',
  misaligned: 'an address that the instruction does not take',
  'barrier-initialisation': 'a barrier used before or without its initialisation',
  'barrier-memory': 'an access to the memory of a live mbarrier that is no operation on it',
  'unfenced-initialisation':
    'an mbarrier that the async proxy uses with no fence after its initialisation',
  'over-arrival': 'more arrivals than a barrier expects, or more bytes than it counts',
  phase: 'a phase of a barrier that an arrival or a wait may miss in another schedule',
  'repeated-wait': 'a wait for a phase that it has seen before, in a run that goes wrong',
  deadlock: 'warps that wait for one another',
  'exited-cta': 'an access to a CTA whose warps have all ended',
  'unfinished-operation': 'an asynchronous operation that nobody waited for',
  'stray-commit':
    'a tcgen05.commit for which nobody waits, of operations that are known to be complete',
  'instruction-shape': 'an instruction with operands that it does not have',
  convergence: 'lanes that have to execute an instruction together and do not',
  trap: 'a trap, or an assertion of the program that failed',
  'schedule-dependent':
    'an outcome that another schedule may change, and that the run went on with',
} as const;

/** One kind of illegal act. */
export type FindingKind = keyof typeof findingKinds;

/**
 * Weight of a finding: `illegal` acts are bugs in some schedule or in every one; `one-schedule`: nothing is wrong, but
 * the run speaks for its own schedule alone; a `hint` is worth a look and leaves the run's proof intact.
 */
export type FindingWeight = 'illegal' | 'one-schedule' | 'hint';

const lighter: Readonly<Partial<Record<FindingKind, FindingWeight>>> = {
  uninitialised: 'hint',
  'overwritten-unread': 'hint',
  'unfenced-initialisation': 'hint',
  'repeated-wait': 'hint',
  'stray-commit': 'hint',
  'schedule-dependent': 'one-schedule',
};

/** The weight of findings of a kind. */
export function findingWeight(kind: FindingKind): FindingWeight {
  return lighter[kind] ?? 'illegal';
}

/** One of the accesses that a finding is about. */
export interface FindingAccess {
  /** The warp or the asynchronous operation, as `CTA 0 warp 12` or `tcgen05.mma of CTA 0 warp 12`. */
  readonly who: string;
  /** The place in the program. */
  readonly site: string;
  /** The step of the run at which it was executed. */
  readonly step: number;
}

/** An illegal act, with the facts needed to find it in the program. */
export interface Finding {
  readonly kind: FindingKind;
  /** One sentence on what happened and where. */
  readonly message: string;
  readonly cta: number;
  readonly step: number;
  /** For a race: the two accesses, the earlier first. */
  readonly accesses: readonly FindingAccess[];
  /** Number of times that the same was found in the run. */
  readonly count: number;
}

/**
 * Key of findings of one kind at the same places of the program, whichever came first and whichever agents were there;
 * findings without places are grouped by message.
 */
export function findingGroup({
  kind,
  message,
  accesses,
}: Pick<Finding, 'kind' | 'message' | 'accesses'>): string {
  const sites = [...new Set(accesses.map(({ site }) => site))].sort();
  return [kind, ...(sites.length === 0 ? [message] : sites)].join('\n');
}

/** The accesses of a finding, as the end of its message. */
export function toldAccesses(accesses: readonly FindingAccess[]): string {
  return `: ${accesses.map(({ who, site }) => `${who} (${site})`).join(' and ')}`;
}

/** The message of a finding without the accesses at its end, for a list that has them beside it. */
export function messageAlone({ message, accesses }: Pick<Finding, 'message' | 'accesses'>): string {
  const told = toldAccesses(accesses);
  return message.endsWith(told) ? message.slice(0, -told.length) : message;
}

/** Collects findings; the same one is kept once and counted. */
export interface FindingCollector {
  /** @param finding `alike`: the key that decides whether it is the same; default the message */
  readonly add: (
    finding: Omit<Finding, 'count' | 'accesses'> & Partial<Finding> & { readonly alike?: string },
  ) => void;
  readonly list: () => readonly Finding[];
}

/** The most different findings kept for one group, so that they do not displace those of other places or kinds. */
const mostAlike = 200;

export function createFindingCollector(): FindingCollector {
  const found = new Map<string, Finding>();
  const kept = new Map<string, number>();
  return {
    add: ({ kind, message, alike = message, cta, step, accesses = [] }) => {
      const key = [kind, cta, alike, ...accesses.map(({ who, site }) => who + site)].join('\n');
      const earlier = found.get(key);
      if (earlier !== undefined) {
        found.set(key, { ...earlier, count: earlier.count + 1 });
        return;
      }
      const group = findingGroup({ kind, message, accesses });
      const inGroup = kept.get(group) ?? 0;
      if (inGroup === mostAlike) return;
      kept.set(group, inGroup + 1);
      found.set(key, { kind, message, cta, step, accesses, count: 1 });
    },
    list: () => [...found.values()],
  };
}

/** Ways in which the phases of a barrier can differ in another schedule. */
export const barrierViolationKinds = {
  arrival:
    'an arrival that may come before the barrier is initialised or be counted to an earlier phase',
  expectation: 'bytes expected so late that the phase may complete without them',
  'early-wait': 'a wait that may return for an earlier phase of the same parity',
  'late-wait': 'a wait that may come when the phase after its own is complete, and miss its own',
} as const;

/** One way. */
export type BarrierViolationKind = keyof typeof barrierViolationKinds;

/** Two events at a barrier that lack an order. */
export interface BarrierViolation {
  readonly kind: BarrierViolationKind;
  /** The phase, from 0, that the arrival or the bytes were counted to or the wait waited for; -1 before. */
  readonly phase: number;
  /** The stamp of the arrival, of the expectation or of the wait. */
  readonly event: Stamp;
  /**
   * The stamp of the event that it lacks an order with: for an arrival and an early wait, an event that
   * it has to come after; for an expectation (an arrival) and a late wait (the event that completed the
   * next phase), an event that it has to come before.
   */
  readonly unordered: Stamp;
}

/** The first of the events that has not happened before another one; null if all of them have. */
export function firstMissing(
  events: readonly Stamp[],
  { clock, happened }: Pick<EventClocks, 'clock' | 'happened'>,
): Stamp | null {
  for (const event of events) {
    if (clockHas(clock, event)) continue;
    if (happened === undefined || !clockHas(happened, event)) return event;
  }
  return null;
}
