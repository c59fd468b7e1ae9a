import {
  Stamp,
  createChains,
  createClock,
  createShadowMemory,
  copyClock,
  includeInClock,
  joinClock,
  tickClock,
  type AccessClocks,
  type Conflict,
  type ConflictKind,
  type Chains,
  type MissingOrder,
  type Region,
} from '../../../src/machine/ordering/index.js';

/** A step of a random run; numbers are taken modulo what there is. */
export type Step =
  | {
      readonly do: 'access';
      readonly agent: number;
      readonly writes: boolean;
      readonly region: Region;
    }
  | { readonly do: 'release' | 'acquire'; readonly agent: number; readonly channel: number }
  | { readonly do: 'fence'; readonly agent: number }
  | {
      readonly do: 'issue';
      readonly agent: number;
      readonly writes: boolean;
      readonly region: Region;
      /** An operation of before that is executed before this one; none if there is no such. */
      readonly after: number;
    }
  | { readonly do: 'perform' | 'finish'; readonly agent: number; readonly operation: number };

/** An access as it was performed, with the node of the graph that it is. */
export interface PerformedAccess {
  readonly node: number;
  readonly stamp: Stamp;
  readonly isWrite: boolean;
  readonly isAsync: boolean;
  readonly words: readonly number[];
  readonly conflicts: readonly Conflict[];
}

interface Operation {
  readonly node: number;
  readonly clocks: AccessClocks;
  readonly position: { readonly chain: number; readonly time: number };
  readonly step: Extract<Step, { do: 'issue' }>;
  readonly predecessor: Operation | undefined;
  isPerformed: boolean;
}

/** A run told both to the detector, in clocks, and to a graph, in nodes and edges. */
export interface Run {
  readonly accesses: readonly PerformedAccess[];
  readonly chains: Chains;
  readonly operations: readonly { readonly node: number; readonly chain: number }[];
  /** Whether there is a path. */
  readonly reaches: (from: number, to: number) => boolean;
  /** Whether there is a path by way of a fence. */
  readonly reachesThroughFence: (from: number, to: number) => boolean;
}

export function wordsOf({ start, count, stride = 0, rows = 1 }: Region): number[] {
  return Array.from({ length: rows * count }, (_, index) => {
    return start + Math.floor(index / count) * stride + (index % count);
  });
}

/** Carries out steps; `proxies: false` takes every access to be through one proxy. */
export function runSteps(
  steps: readonly Step[],
  {
    agents,
    channels,
    words,
    proxies,
  }: Record<'agents' | 'channels' | 'words', number> & { proxies: boolean },
): Run {
  const shadow = createShadowMemory(words);
  const chains = createChains();
  const predecessorsOf: number[][] = [];
  const fences: number[] = [];
  const accesses: PerformedAccess[] = [];
  const operations: Operation[] = [];
  const node = (...before: (number | undefined)[]) =>
    predecessorsOf.push(before.filter((earlier) => earlier !== undefined)) - 1;

  const warps = Array.from({ length: agents }, () => {
    const chain = chains.createAgent();
    const clock = createClock();
    tickClock(clock, chain);
    return { chain, clock, asyncView: createClock(), node: node() };
  });
  const posted = Array.from({ length: channels }, () => ({
    clock: createClock(),
    asyncView: createClock(),
    nodes: [] as number[],
  }));

  function perform(
    at: number,
    { chain, time }: { chain: number; time: number },
    isAsync: boolean,
    { writes, region }: { writes: boolean; region: Region },
    clocks: AccessClocks,
  ): void {
    const stamp = new Stamp({
      chain,
      time,
      kind: writes ? 'write' : 'read',
      site: `step ${at}`,
      who: `chain ${chain}`,
      proxy: isAsync || !proxies ? 'async' : 'generic',
      step: at,
    });
    accesses.push({
      node: at,
      stamp,
      isWrite: writes,
      isAsync: isAsync || !proxies,
      words: wordsOf(region),
      conflicts: shadow[writes ? 'write' : 'read'](region, stamp, clocks),
    });
  }

  for (const step of steps) {
    const warp = warps[step.agent % agents];
    switch (step.do) {
      case 'access': {
        warp.node = node(warp.node);
        const time = warp.clock.times[warp.chain];
        perform(warp.node, { chain: warp.chain, time }, false, step, warp);
        break;
      }
      case 'release': {
        const channel = posted[step.channel % channels];
        warp.node = node(warp.node);
        channel.nodes.push(warp.node);
        joinClock(channel.clock, warp.clock);
        joinClock(channel.asyncView, warp.asyncView);
        tickClock(warp.clock, warp.chain);
        break;
      }
      case 'acquire': {
        const channel = posted[step.channel % channels];
        warp.node = node(warp.node, ...channel.nodes);
        joinClock(warp.clock, channel.clock);
        joinClock(warp.asyncView, channel.asyncView);
        break;
      }
      case 'fence':
        warp.node = node(warp.node);
        fences.push(warp.node);
        joinClock(warp.asyncView, warp.clock);
        tickClock(warp.clock, warp.chain);
        break;
      case 'issue': {
        const predecessor = operations[step.after];
        warp.node = node(warp.node);
        const clocks = { clock: copyClock(warp.clock), asyncView: copyClock(warp.asyncView) };
        tickClock(warp.clock, warp.chain);
        if (predecessor !== undefined) {
          joinClock(clocks.clock, predecessor.clocks.clock);
          joinClock(clocks.asyncView, predecessor.clocks.asyncView);
        }
        const position = chains.begin(clocks.clock);
        includeInClock(clocks.clock, position.chain, position.time);
        operations.push({
          node: node(warp.node, predecessor?.node),
          clocks,
          position,
          step,
          predecessor,
          isPerformed: false,
        });
        break;
      }
      case 'perform': {
        // Whatever comes first of what has to come before.
        let operation = operations[step.operation % operations.length];
        while (operation?.predecessor?.isPerformed === false) operation = operation.predecessor;
        if (operation === undefined || operation.isPerformed) break;
        operation.isPerformed = true;
        perform(operation.node, operation.position, true, operation.step, operation.clocks);
        break;
      }
      case 'finish': {
        const operation = operations[step.operation % operations.length];
        if (operation === undefined || !operation.isPerformed) break;
        warp.node = node(warp.node, operation.node);
        joinClock(warp.clock, operation.clocks.clock);
        joinClock(warp.asyncView, operation.clocks.asyncView);
        break;
      }
    }
  }

  // Rows of the reflexive transitive closure; nodes come after their predecessors but operations.
  const ancestors = predecessorsOf.map((_, at) => {
    const seen = new Set([at]);
    for (const each of seen) for (const before of predecessorsOf[each]) seen.add(before);
    return seen;
  });
  const reaches = (from: number, to: number) => ancestors[to].has(from);
  return {
    accesses,
    chains,
    reaches,
    operations: operations.map(({ node: at, position }) => ({ node: at, chain: position.chain })),
    reachesThroughFence: (from, to) =>
      fences.some((fence) => reaches(from, fence) && reaches(fence, to)),
  };
}

/** A conflict as the graph has it: with the words that have it. */
export interface ExpectedConflict {
  readonly kind: ConflictKind;
  readonly earlier: Stamp | null;
  readonly missing: MissingOrder | null;
  readonly words: number[];
}

/** What an access lacks to come after another one, by paths. */
export function missingPath(
  run: Run,
  earlier: PerformedAccess,
  later: PerformedAccess,
): MissingOrder | null {
  if (!run.reaches(earlier.node, later.node)) return 'order';
  const needsFence = !earlier.isAsync && later.isAsync;
  return needsFence && !run.reachesThroughFence(earlier.node, later.node) ? 'proxy-fence' : null;
}

/** The conflicts of each access of a run, from paths in its graph alone. */
export function expectedConflicts(run: Run): ExpectedConflict[][] {
  const { accesses } = run;
  return accesses.map((later, index) => {
    const found: ExpectedConflict[] = [];
    const add = (
      word: number,
      kind: ConflictKind,
      earlier: Stamp | null,
      missing: MissingOrder | null,
    ) => {
      const known = found.find((one) => one.kind === kind && one.earlier === earlier);
      if (known === undefined) found.push({ kind, earlier, missing, words: [word] });
      else known.words.push(word);
    };
    for (const word of later.words) {
      const before = accesses.slice(0, index).filter(({ words }) => words.includes(word));
      const writeIndex = before.findLastIndex(({ isWrite }) => isWrite);
      const write = before[writeIndex];
      const reads = before.slice(writeIndex + 1);
      const missingWrite = write === undefined ? null : missingPath(run, write, later);
      if (!later.isWrite) {
        if (write === undefined) add(word, 'uninitialised', null, null);
        else if (missingWrite !== null) add(word, 'write-read', write.stamp, missingWrite);
        continue;
      }
      if (missingWrite !== null) add(word, 'write-write', write!.stamp, missingWrite);
      if (write !== undefined && reads.length === 0 && missingWrite === null)
        add(word, 'overwritten-unread', write.stamp, null);
      const uncovered = reads.filter(
        (read, at) =>
          !reads
            .slice(at + 1)
            .some(
              (other) => (read.isAsync || !other.isAsync) && run.reaches(read.node, other.node),
            ),
      );
      for (const read of uncovered) {
        const missing = missingPath(run, read, later);
        if (missing !== null) add(word, 'read-write', read.stamp, missing);
      }
    }
    return found;
  });
}
