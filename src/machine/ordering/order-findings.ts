import { tensorMemoryColumns } from '../memory/index.js';
import type { AccessTable } from './accesses.js';
import {
  type BarrierViolation,
  barrierViolationKinds,
  type FindingAccess,
  type FindingKind,
} from './finding.js';
import type { MemoryArea, OrderedRun } from './order-tracker.js';
import { conflictKinds, type Conflict } from './shadow-states.js';

const wordBytes = 4;

/** Reports what is in no order. Events are stamps of the table of accesses; 0 stands for none. */
export interface OrderFindings {
  /** Two accesses to memory, or one that finds there what it must not. */
  readonly conflict: (machine: OrderedRun, area: MemoryArea, conflict: Conflict) => void;
  /** What may go wrong with a barrier of this name in another schedule. */
  readonly violations: (
    machine: OrderedRun,
    cta: number,
    name: string,
    violations: readonly BarrierViolation[],
  ) => void;
  /** Two events, the earlier first: `message` says what is wrong, without the two. */
  readonly unordered: (
    machine: OrderedRun,
    kind: FindingKind,
    cta: number,
    message: string,
    stamps: readonly [number, number],
  ) => void;
}

/** Which memory a finding is about: its column, the region by name, or the element of an allocation. */
function placeOf(machine: OrderedRun, { space, cta }: MemoryArea, firstWord: number): string {
  if (space === 'global') return `global memory, ${machine.placeOfGlobal(firstWord * wordBytes)}`;
  if (space === 'tensor') return `tensor memory, column ${firstWord % tensorMemoryColumns}`;
  return `shared memory, ${cta.shared.regionAt(firstWord * wordBytes) ?? 'outside of every region'}`;
}

/** Findings about events of this table. */
export function createOrderFindings(accesses: AccessTable): OrderFindings {
  function eventOf(stamp: number): FindingAccess[] {
    if (stamp === 0) return [];
    const { who, site, step } = accesses.describe(stamp);
    return [{ who, site, step }];
  }

  const unordered: OrderFindings['unordered'] = (machine, kind, cta, message, stamps) => {
    const events = stamps.flatMap(eventOf);
    const told = events.map(({ who, site }) => `${who} (${site})`).join(' and ');
    machine.findings.add({
      kind,
      message: `${message}: ${told}`,
      cta,
      step: machine.step,
      accesses: events,
    });
  };

  return {
    unordered,
    conflict: (machine, area, { kind, earlier, later, missing, firstWord }) => {
      const fence = missing === 'proxy-fence' ? ' but for fence.proxy.async' : '';
      const message = `${placeOf(machine, area, firstWord)}: ${conflictKinds[kind]}${fence}`;
      const isRace = kind !== 'uninitialised' && kind !== 'overwritten-unread';
      const { rank } = area.cta;
      unordered(machine, isRace ? 'race' : kind, rank, message, [earlier, later]);
    },
    violations: (machine, cta, name, violations) => {
      for (const { kind, event, unordered: other } of violations) {
        const message = `${name}: ${barrierViolationKinds[kind]}`;
        unordered(machine, 'phase', cta, message, [other, event]);
      }
    },
  };
}
