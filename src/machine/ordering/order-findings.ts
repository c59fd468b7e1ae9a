import { tensorMemoryColumns } from '../memory/index.js';
import type { Stamp } from './accesses.js';
import {
  type BarrierViolation,
  barrierViolationKinds,
  type FindingAccess,
  type FindingKind,
  toldAccesses,
} from './finding.js';
import type { MemoryArea, OrderedRun } from './order-tracker.js';
import { conflictKinds, type Conflict, type ConflictKind } from './shadow-states.js';

const wordBytes = 4;

/** Reports events that are in no order. */
export interface OrderFindings {
  /** Two accesses to memory, or one that finds the wrong state there. */
  readonly conflict: (machine: OrderedRun, area: MemoryArea, conflict: Conflict) => void;
  /** Possible failures of a barrier of this name in another schedule. */
  readonly violations: (
    machine: OrderedRun,
    cta: number,
    name: string,
    violations: readonly BarrierViolation[],
  ) => void;
  /** Two events, the earlier first: `message` states the error, without the two. */
  readonly unordered: (
    machine: OrderedRun,
    kind: FindingKind,
    cta: number,
    message: string,
    stamps: readonly [Stamp | null, Stamp],
  ) => void;
}

/** The findings' kinds of conflicts; conflicts of other kinds are races. */
const kindOfConflict: Readonly<Partial<Record<ConflictKind, FindingKind>>> = {
  uninitialised: 'uninitialised',
  'overwritten-unread': 'overwritten-unread',
  barrier: 'barrier-memory',
};

/** A report about two events. */
interface Unordered {
  readonly kind: FindingKind;
  readonly cta: number;
  readonly message: string;
  /** The message without the parts that differ between equal findings. */
  readonly alike: string;
  readonly stamps: readonly [Stamp | null, Stamp];
}

/** The name of the region that is all of a compiled kernel's shared memory: it gives no information. */
const wholeRegion = 'shared memory';

/**
 * The memory that a finding is about: its column, its byte and the region by name, or the element of an allocation; and the
 * part of this that findings about the same instructions share.
 */
function placeOf(
  machine: OrderedRun,
  { space, cta }: MemoryArea,
  firstWord: number,
): { readonly place: string; readonly alike: string } {
  const named = (place: string) => ({ place, alike: place });
  if (space === 'global')
    return named(`global memory, ${machine.placeOfGlobal(firstWord * wordBytes)}`);
  if (space === 'tensor') return named(`tensor memory, column ${firstWord % tensorMemoryColumns}`);
  const byte = firstWord * wordBytes;
  const region = cta.shared.regionAt(byte) ?? 'outside of every region';
  const name = region === wholeRegion ? '' : ` (${region})`;
  return { place: `shared memory, byte ${byte}${name}`, alike: `shared memory ${region}` };
}

/** Reports to the findings of runs. */
export function createOrderFindings(): OrderFindings {
  function eventOf(stamp: Stamp | null): FindingAccess[] {
    if (stamp === null) return [];
    const { who, site, step } = stamp;
    return [{ who, site, step }];
  }

  function add(machine: OrderedRun, { kind, cta, message, alike, stamps }: Unordered): void {
    const accesses = stamps.flatMap(eventOf);
    const { step } = machine;
    const told = `${message}${toldAccesses(accesses)}`;
    machine.findings.add({ kind, message: told, alike, cta, step, accesses });
  }

  const unordered: OrderFindings['unordered'] = (machine, kind, cta, message, stamps) =>
    add(machine, { kind, cta, message, alike: message, stamps });

  return {
    unordered,
    conflict: (machine, area, { kind, earlier, later, missing, firstWord }) => {
      const fence = missing === 'proxy-fence' ? ' but for fence.proxy.async' : '';
      const what = `${conflictKinds[kind]}${fence}`;
      const { place, alike } = placeOf(machine, area, firstWord);
      add(machine, {
        kind: kindOfConflict[kind] ?? 'race',
        cta: area.cta.rank,
        message: `${place}: ${what}`,
        alike: `${alike}: ${what}`,
        stamps: [earlier, later],
      });
    },
    violations: (machine, cta, name, violations) => {
      for (const { kind, event, unordered: other } of violations) {
        const message = `${name}: ${barrierViolationKinds[kind]}`;
        unordered(machine, 'phase', cta, message, [other, event]);
      }
    },
  };
}
