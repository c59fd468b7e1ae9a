import { expect, it } from 'vitest';
import {
  clockTime,
  createFindingCollector,
  memoryModels,
} from '../../../src/machine/ordering/index.js';
import type {
  MemoryArea,
  OperationOrder,
  OrderedCta,
  OrderedRun,
  OrderedWarp,
  StrongAccess,
} from '../../../src/machine/ordering/order-tracker.js';
import { createOrderTracker } from '../../../src/machine/ordering/track-order.js';

const shared = { limitBytes: 1024, regionAt: () => 'words' };
/** The CTA of who writes, and that of who reads the word: each with a shared memory of its own. */
const ctas = [0, 1].map(
  (rank) => ({ rank, number: rank, warps: [], shared }) as unknown as OrderedCta,
);
const [cta, otherCta] = ctas;

const strong = (order: StrongAccess['order'], isAtomic = false): StrongAccess => ({
  order,
  scope: 'gpu',
  isAtomic,
});

/** An access to the word that has been released. */
interface Between {
  readonly kind: 'read' | 'write';
  readonly strong?: StrongAccess;
  /** Whether an asynchronous operation of the warp does it. */
  readonly isOperation?: boolean;
  /** Words from the one that has been released. */
  readonly away?: number;
  /** Whether it is to the word of this number in the other memory. */
  readonly isElsewhere?: boolean;
}

/** Whether a warp that acquires a word knows what another one did before it released it, with an access of a third one between. */
function isKnown(space: 'shared' | 'global', between: Between | null): boolean {
  const tracker = createOrderTracker(memoryModels.practice, ctas);
  const findings = createFindingCollector();
  const machine = {
    ctas,
    findings,
    step: 1,
    placeOfGlobal: () => 'w',
  } as unknown as OrderedRun;
  const other = space === 'shared' ? 'global' : 'shared';
  const [writer, third, reader] = ['writer', 'third', 'reader'].map((name) => ({
    name,
    cta: name === 'reader' ? otherCta : cta,
    current: null,
    order: tracker.createWarp(),
  })) satisfies OrderedWarp[];
  const area = (
    access: Pick<Between, 'strong' | 'away' | 'isElsewhere'>,
    of = cta,
  ): MemoryArea => ({
    space: access.isElsewhere === true ? other : space,
    cta: of,
    unit: 'byte',
    start: 64 + 4 * (access.away ?? 0),
    count: 4,
    strong: access.strong,
  });
  const releasedAt = clockTime(writer.order.clock, writer.order.chain);
  tracker.access(
    machine,
    { warp: writer, order: null },
    'write',
    area({ strong: strong('release') }),
  );
  // What a warp does after its release is later than what it has published.
  expect(clockTime(writer.order.clock, writer.order.chain)).toBe(releasedAt + 1);
  if (between !== null) {
    const before = clockTime(third.order.clock, third.order.chain);
    const order: OperationOrder | null =
      between.isOperation === true ? tracker.begin(third, 'bulk-store', [], []) : null;
    tracker.access(machine, { warp: third, order }, between.kind, area(between));
    const publishes =
      order === null && ['release', 'acquire'].includes(between.strong?.order ?? '');
    const ticks = (order === null ? 0 : 1) + (publishes ? 1 : 0);
    expect(clockTime(third.order.clock, third.order.chain)).toBe(before + ticks);
  }
  tracker.access(
    machine,
    { warp: reader, order: null },
    'read',
    area({ strong: strong('acquire') }, space === 'global' ? otherCta : cta),
  );
  return clockTime(reader.order.clock, writer.order.chain) >= releasedAt;
}

it.each(['shared', 'global'] as const)(
  'what a word of %s memory publishes lasts until a warp, or a weak write, puts another value there',
  (space) => {
    const cases: readonly (readonly [Between | null, boolean])[] = [
      [null, true],
      [{ kind: 'read' }, true],
      [{ kind: 'read', isOperation: true }, true],
      [{ kind: 'write' }, false],
      [{ kind: 'write', isOperation: true }, false],
      [{ kind: 'write', away: 1 }, true],
      [{ kind: 'write', away: -1 }, true],
      [{ kind: 'write', isElsewhere: true }, true],
      [{ kind: 'write', strong: strong('relaxed'), isElsewhere: true }, true],
      [{ kind: 'read', strong: strong('relaxed') }, true],
      [{ kind: 'read', strong: strong('acquire') }, true],
      [{ kind: 'write', strong: strong('relaxed') }, false],
      [{ kind: 'write', strong: strong('release') }, false],
      [{ kind: 'write', strong: strong('release'), away: 1 }, true],
      // An atomic operation passes on what it has read.
      [{ kind: 'write', strong: strong('relaxed', true) }, true],
      [{ kind: 'write', strong: strong('release', true) }, true],
      // A strong access of an operation says nothing of its warp, and takes nothing away.
      [{ kind: 'write', strong: strong('relaxed'), isOperation: true }, true],
      [{ kind: 'write', strong: strong('release'), isOperation: true }, true],
      [{ kind: 'read', strong: strong('acquire'), isOperation: true }, true],
    ];
    for (const [between, expected] of cases)
      expect(isKnown(space, between), JSON.stringify(between)).toBe(expected);
  },
);
