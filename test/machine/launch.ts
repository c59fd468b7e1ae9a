import {
  type AccessOrder,
  adversarialSchedulers,
  byteStoreOf,
  clusterAddress,
  type ClusterLaunch,
  type ClusterRun,
  createConstantMemory,
  createGlobalMemory,
  electedLane,
  type FindingKind,
  type Fragment,
  type Instruction,
  type InstructionOf,
  type LanePlaces,
  type LaunchMemory,
  runCluster,
  type RunOptions,
  type Scheduler,
  type WarpPlace,
} from '../../src/machine/index.js';

/** What a warp does: a list, or what follows from its place and from what it reads. */
export type WarpBody = readonly Instruction[] | ((place: WarpPlace) => Iterable<Instruction>);

/** A small program: warps that do as they are told, after their mbarriers have been initialised. */
export interface SmallProgram {
  readonly ctas?: 1 | 2;
  /** Expected arrivals of the mbarriers, by name: the first lies at byte 0, the next at byte 8. */
  readonly barriers?: Readonly<Record<string, number>>;
  readonly warps: readonly WarpBody[];
  /** Global, constant and local memory, and parameters. */
  readonly memory?: LaunchMemory;
}

const threadsOfWarp = 32;
/** The named barrier that all warps meet at before their bodies begin. */
const firstMeeting = 15;

/** The bytes where programs keep their data, clear of the mbarriers. */
export const data = 1024;

/** The launch of a small program; each CTA runs the same warps. */
export function launchOf({ ctas = 1, barriers = {}, warps, memory }: SmallProgram): ClusterLaunch {
  return {
    ...(memory === undefined ? {} : { memory }),
    ctas,
    warps: warps.length,
    allocate: (shared) => {
      shared.allocate('barriers', data, 8);
      shared.allocate('data', shared.limitBytes - data, 8);
    },
    program: function* (place) {
      if (place.warp === 0)
        for (const [i, [name, count]] of Object.entries(barriers).entries())
          yield { op: 'mbarrier.init', barrier: 8 * i, count, name };
      yield { op: 'fence.mbarrier_init' };
      if (ctas === 1)
        yield { op: 'bar.sync', barrier: firstMeeting, threads: warps.length * threadsOfWarp };
      else {
        yield { op: 'barrier.cluster.arrive.relaxed' };
        yield { op: 'barrier.cluster.wait' };
      }
      const body = warps[place.warp];
      yield* typeof body === 'function' ? body(place) : body;
    },
  };
}

/** Runs a small program. */
export function runProgram(program: SmallProgram, options: RunOptions = {}): ClusterRun {
  return runCluster(launchOf(program), options);
}

/** The kinds of a run's findings, each once, in alphabetical order. */
export function kindsOf({ findings }: ClusterRun): FindingKind[] {
  return [...new Set(findings.map(({ kind }) => kind))].sort();
}

/** The adversarial schedule with this name. */
export function scheduleNamed(name: string, warps: number): Scheduler {
  const scheduler = adversarialSchedulers(warps).find((candidate) => candidate.name === name);
  if (scheduler === undefined) throw new RangeError(`no adversarial schedule ${name}`);
  return scheduler;
}

/** The messages of a run's findings. */
export function messagesOf({ findings }: ClusterRun): string[] {
  return findings.map(({ message }) => message);
}

/** Registers of a warp, so many in each lane, with a value that depends on lane and register. */
export function fragment(count = 1, value: (lane: number, register: number) => number = () => 0) {
  const numbers = { length: threadsOfWarp * count };
  return byteStoreOf(Uint32Array.from(numbers, (_, i) => value(Math.floor(i / count), i % count)));
}

/** mbarrier.arrive of one thread, or of all, on a barrier of the CTA of this rank. */
export function arrive(
  barrier: number,
  { lanes = electedLane, rank = 0, site = 'arrives' } = {},
): Instruction {
  return { op: 'mbarrier.arrive', barrier: clusterAddress(rank, barrier), lanes, site };
}

/** mbarrier.arrive.expect_tx on a barrier of the CTA of this rank. */
export function expectBytes(barrier: number, bytes: number, rank = 0): Instruction {
  const address = clusterAddress(rank, barrier);
  return { op: 'mbarrier.arrive.expect_tx', barrier: address, bytes, site: 'expects bytes' };
}

/** A wait for a phase of a barrier of the CTA itself. */
export function wait(barrier: number, parity: 0 | 1, site = `waits for ${parity}`): Instruction {
  return { op: 'mbarrier.try_wait.parity', barrier, parity, site };
}

/** bar.sync or bar.arrive of so many warps. */
export function meet(
  op: 'bar.sync' | 'bar.arrive',
  barrier: number,
  warps: number,
  site: string = op,
): Instruction {
  return { op, barrier, threads: warps * threadsOfWarp, site };
}

/** ld.shared or st.shared of one word for each lane, side by side from this byte on. */
export function words(
  op: 'ld.shared' | 'st.shared',
  from: number,
  registers: Fragment = fragment(),
  site: string = op,
): InstructionOf<'ld.shared' | 'st.shared'> {
  const addresses = Int32Array.from({ length: threadsOfWarp }, (_, lane) => from + 4 * lane);
  return { op, words: 1, addresses, fragment: registers, name: 'data', site };
}

/** Code on registers that tells what it found in them. */
export function look(
  registers: Fragment,
  see: (values: number[]) => void,
  site = 'looks',
): Instruction {
  return {
    op: 'registers',
    reads: [registers],
    site,
    execute: () => {
      see([...registers.words]);
      return {};
    },
  };
}

/** Memory of a launch in which nothing is allocated yet. */
export function launchMemory(contents = new Uint8Array(0), localBytes = 0): LaunchMemory {
  const parameters = byteStoreOf(contents);
  return { global: createGlobalMemory(), constant: createConstantMemory(), parameters, localBytes };
}

/** Places of the lanes, one behind the other from an address on; only of the first ones, if so many are named. */
export function places(
  space: LanePlaces['space'],
  from: number,
  bytes = 4,
  lanes = threadsOfWarp,
): LanePlaces {
  const addresses = Float64Array.from({ length: threadsOfWarp }, (_, lane) =>
    lane < lanes ? from + bytes * lane : -1,
  );
  return { space, bytes, addresses };
}

/** A weak ld or st at such places, or a strong one. */
export function transfer(
  op: 'ld' | 'st',
  at: LanePlaces,
  registers: Fragment = fragment(Math.ceil(at.bytes / 4)),
  { order = 'weak', scope = 'gpu', site = op }: Partial<AccessOrder & { site: string }> = {},
): InstructionOf<'ld' | 'st'> {
  return { op, ...at, order, scope, data: registers, site };
}
