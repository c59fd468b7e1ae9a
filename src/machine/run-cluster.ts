import { count, createCtaCounters, type CtaCounters } from './counters.js';
import type { InstructionDefinition } from './execute/definition.js';
import { createFindingCollector, type Finding } from './finding.js';
import type { Fragment, Instruction, Opcode, WarpPlace, WarpProgram } from './instruction.js';
import { instructionDefinitions } from './instructions.js';
import { createSharedMemory, createTensorMemory, type SharedMemory } from './memory/index.js';
import { memoryModels, type MemoryModel } from './memory-model.js';
import { createMmaUnits, type MmaUnits } from './mma-units.js';
import { createNamedBarrier } from './named-barrier.js';
import { createOrderTracker } from './track-order.js';
import type { Scheduler } from './scheduler.js';
import { inOrderScheduler } from './schedulers/index.js';
import {
  report,
  siteOf,
  type AsynchronousOperation,
  type CtaState,
  type MachineState,
  type Step,
  type TraceEvent,
  type WarpState,
} from './state.js';
import { createUnitOccupancy } from './timing.js';
import { unitRates, type UnitRates } from './unit-rates.js';

/** What a cluster is to run. */
export interface ClusterLaunch {
  /** 1, or 2 for a pair. */
  readonly ctas: 1 | 2;
  readonly warps: number;
  /** What the program calls a warp, for findings. */
  readonly warpName?: (warp: number) => string;
  /**
   * The layout of a CTA's shared memory, before it starts.
   * @param shared of the CTA
   */
  readonly allocate?: (shared: SharedMemory) => void;
  /** The program of a warp, with the shared memory of its CTA as `allocate` has laid it out. */
  readonly program: (place: WarpPlace) => WarpProgram;
}

/** How a cluster is run. */
export interface RunOptions {
  /** Default: in order. */
  readonly scheduler?: Scheduler;
  /** Default: `practice`. */
  readonly model?: MemoryModel;
  /** Whether races are looked for; default true. */
  readonly races?: boolean;
  /** The tensor core's arithmetic and the rates; default those of sm_100. */
  readonly mmaUnits?: MmaUnits;
  readonly rates?: UnitRates;
  readonly trace?: (event: TraceEvent) => void;
  /** Steps after which the run is given up as endless; default 10^8. */
  readonly mostSteps?: number;
}

/** What came of a run. */
export interface ClusterRun {
  readonly findings: readonly Finding[];
  /** Of each CTA. */
  readonly counters: readonly CtaCounters[];
  readonly steps: number;
  /** Clocks from the beginning to the end in a timed schedule. */
  readonly clocks: number;
  /** Whether all warps came to their end. */
  readonly isComplete: boolean;
}

const threadsOfWarp = 32;
/** Instructions that wait in the middle. */
const continuedWaits: ReadonlySet<Opcode> = new Set(['bar.sync', 'barrier.cluster.wait']);

/** The fragments whose values an instruction needs, or overwrites. */
function fragmentsOf(instruction: Instruction): readonly Fragment[] {
  switch (instruction.op) {
    case 'registers':
      return instruction.reads;
    case 'tcgen05.ld':
    case 'tcgen05.st':
    case 'st.shared':
    case 'st.global':
    case 'ld.shared':
    case 'ld.global':
      return [instruction.fragment];
    default:
      return [];
  }
}

/** The loads that an instruction's registers depend on. */
function dependencies({ loads }: WarpState, instruction: Instruction): AsynchronousOperation[] {
  if (loads.length === 0) return [];
  const buffers = fragmentsOf(instruction).map(({ buffer }) => buffer);
  if (buffers.length === 0) return [];
  // Loads into different parts of one buffer do not depend on one another.
  if (instruction.op === 'tcgen05.ld')
    return loads.filter(
      ({ fragment }) =>
        fragment!.buffer === instruction.fragment.buffer &&
        fragment!.byteOffset < instruction.fragment.byteOffset + instruction.fragment.byteLength &&
        instruction.fragment.byteOffset < fragment!.byteOffset + fragment!.byteLength,
    );
  return loads.filter(({ fragment }) => buffers.includes(fragment!.buffer));
}

/** Registers that are used before tcgen05.wait::ld, where the memory model asks for it. */
function reportUnawaited(
  machine: MachineState,
  warp: WarpState,
  loads: readonly AsynchronousOperation[],
): void {
  if (machine.tracker === null) return;
  for (const { name, site } of loads)
    report(
      machine,
      warp,
      'race',
      `registers of ${name} (${site}) are used before tcgen05.wait::ld`,
      [
        { who: `${name} of ${warp.name}`, site, step: machine.step },
        { who: warp.name, site: siteOf(warp.current), step: machine.step },
      ],
    );
}

function definitionOf({ op }: Instruction): InstructionDefinition<Opcode> {
  return instructionDefinitions[op] as InstructionDefinition<Opcode>;
}

function isReady(machine: MachineState, warp: WarpState): boolean {
  const { current, continuation } = warp;
  if (current === null) return false;
  if (continuation !== null) return continuation.isReady();
  for (const { isDone } of dependencies(warp, current)) if (!isDone) return false;
  return definitionOf(current).isReady?.(machine, warp, current as never) ?? true;
}

/** The clock from which on a warp that is ready may go on. */
function readyTime(machine: MachineState, warp: WarpState): number {
  const { current, continuation, readyAt } = warp;
  if (current === null) return readyAt;
  if (continuation !== null) return Math.max(readyAt, continuation.readyTime());
  let time = Math.max(
    readyAt,
    definitionOf(current).readyTime?.(machine, warp, current as never) ?? 0,
  );
  for (const { doneAt } of dependencies(warp, current)) time = Math.max(time, doneAt);
  return time;
}

function waitsFor(machine: MachineState, warp: WarpState): string {
  const { current, continuation } = warp;
  if (current === null) return 'nothing';
  if (continuation !== null) return continuation.waitsFor();
  if (dependencies(warp, current).some(({ isDone }) => !isDone)) return 'registers being loaded';
  return definitionOf(current).waitsFor?.(machine, warp, current as never) ?? 'nothing';
}

/** The warp's next instruction becomes current. */
function advance(warp: WarpState): void {
  const next = warp.program.next();
  warp.current = next.done === true ? null : next.value;
}

/** A cluster with its warps at their first instructions. */
function createMachine(launch: ClusterLaunch, options: RunOptions): MachineState {
  const { model = memoryModels.practice, races = true, rates = unitRates.sm_100 } = options;
  const tracker = races ? createOrderTracker(model, launch.ctas) : null;
  const ctas = Array.from({ length: launch.ctas }, (_, rank): CtaState => {
    const shared = createSharedMemory();
    launch.allocate?.(shared);
    const counters = createCtaCounters();
    counters.mostSharedBytes = shared.regions.reduce((sum, { bytes }) => sum + bytes, 0);
    return {
      ...{ rank, shared, tensor: createTensorMemory(), counters },
      ...{ mbarriers: new Map(), namedBarriers: new Map(), warps: [] },
    };
  });
  const warpName = launch.warpName ?? ((warp) => `warp ${warp}`);
  for (const cta of ctas)
    for (let index = 0; index < launch.warps; index++)
      cta.warps.push({
        ...{ cta, index, name: `CTA ${cta.rank} ${warpName(index)}` },
        program: launch.program({ cta: cta.rank, warp: index }),
        ...{ current: null, continuation: null, loads: [], stores: [], tensorOperations: [] },
        ...{ tensorHistory: new Map(), openBulkGroup: [], bulkGroups: [], lastCommit: null },
        ...{ clusterGeneration: null, readyAt: 0, time: 0 },
        order: tracker?.createWarp() ?? null,
        chosenAs: 'warp',
      });
  return {
    ...{ ctas, model, rates, tracker, findings: createFindingCollector(), pending: [] },
    mmaUnits: options.mmaUnits ?? createMmaUnits('sm_100'),
    occupancy:
      options.scheduler?.isTimed === true ? createUnitOccupancy(rates, options.trace) : null,
    clusterBarrier: createNamedBarrier(-1, launch.ctas * launch.warps * threadsOfWarp),
    pairAllocation: createNamedBarrier(-2, launch.ctas * threadsOfWarp),
    trace: options.trace ?? null,
    ...{ step: 0, now: 0 },
  };
}

/** What is wrong once no step is left. */
function reportEnd(machine: MachineState): boolean {
  const { ctas, findings, step } = machine;
  const blocked = ctas.flatMap(({ warps }) => warps.filter(({ current }) => current !== null));
  if (blocked.length > 0) {
    findings.add({
      ...{ kind: 'deadlock', cta: blocked[0].cta.rank, step },
      message: `deadlock: ${blocked
        .map(
          (warp) =>
            `${warp.name} at "${siteOf(warp.current)}" waits for ${waitsFor(machine, warp)}`,
        )
        .join('; ')}`,
      accesses: blocked.map(({ name, current }) => ({ who: name, site: siteOf(current), step })),
    });
    return false;
  }
  for (const { rank, tensor } of ctas) {
    const columns = tensor.blocks().reduce((sum, block) => sum + block.columns, 0);
    if (columns > 0)
      findings.add({
        ...{ kind: 'leaked-tensor-memory', cta: rank, step },
        message: `CTA ${rank} ends with ${columns} columns of tensor memory allocated`,
      });
  }
  return true;
}

/** Operations that are still under way when a CTA's last warp has ended: nobody waited for them. */
function reportUnfinished({ pending, findings, step }: MachineState): void {
  for (const { warp, site, kind, name } of pending)
    if (kind !== 'bulk-store' && warp.cta.warps.every(({ current }) => current === null))
      findings.add({
        ...{ kind: 'unfinished-operation', cta: warp.cta.rank, step },
        message: `${warp.name}, ${site}: ${name} is under way at the end of the CTA`,
        accesses: [{ who: warp.name, site, step }],
      });
}

/**
 * Runs the warps of a cluster to their end, in the order that the scheduler chooses among what may come
 * next. Illegal acts are findings; they do not end the run, but what they concern may be left out of
 * it. The same launch with the same scheduler gives the same run.
 *
 * Memory: that of the CTAs, and what the tracker of orders needs for them.
 */
export function runCluster(launch: ClusterLaunch, options: RunOptions = {}): ClusterRun {
  const machine = createMachine(launch, options);
  const { scheduler = inOrderScheduler(), mostSteps = 1e8 } = options;
  const isTimed = scheduler.isTimed === true;
  const { ctas, pending, findings, trace } = machine;
  const warps = ctas.flatMap((cta) => cta.warps);
  warps.forEach(advance);
  const steps: Step[] = [];
  let clocks = 0;
  let isGivenUp = false;

  function executeWarp(warp: WarpState): void {
    const instruction = warp.current!;
    const { continuation, cta } = warp;
    const began = warp.readyAt;
    if (continuation !== null) {
      continuation.resume();
      warp.continuation = null;
    } else {
      const needed = dependencies(warp, instruction);
      if (needed.length > 0) {
        if (machine.model.registerDependencies) {
          for (const { kind, order } of needed)
            if (order !== null) machine.tracker?.finish(warp, kind, order);
          warp.loads = warp.loads.filter((load) => !needed.includes(load));
        } else reportUnawaited(machine, warp, needed);
      }
      if (instruction.op !== 'registers') count(cta.counters.instructions, instruction.op, 1);
      const result = definitionOf(instruction).execute(machine, warp, instruction as never);
      if (result !== undefined) {
        warp.continuation = result;
        if (!result.isReady()) return;
        result.resume();
        warp.continuation = null;
      }
    }
    advanceInTime(warp, instruction, began);
    advance(warp);
    if (warp.current === null) reportUnfinished(machine);
  }

  /** Keeps the books of a warp's time and tells the trace. */
  function advanceInTime(warp: WarpState, instruction: Instruction, began: number): void {
    const { now } = machine;
    const isWait =
      definitionOf(instruction).waitsFor !== undefined || continuedWaits.has(instruction.op);
    if (isWait) {
      const site = siteOf(instruction);
      count(warp.cta.counters.waits, site, 1);
      if (now > began) {
        count(warp.cta.counters.blockedWaits, site, 1);
        if (isTimed) count(warp.cta.counters.waitClocks, site, now - began);
      }
    }
    const end = isTimed ? Math.max(warp.readyAt, now + 1) : now + 1;
    trace?.({
      ...{ cta: warp.cta.rank, track: warp.index, warp: warp.index, name: siteOf(instruction) },
      ...{ instruction, start: isWait ? began : now, end, isWait, issuedAt: null },
    });
    warp.readyAt = end;
    clocks = Math.max(clocks, end);
  }

  function perform(operation: AsynchronousOperation): void {
    pending.splice(pending.indexOf(operation), 1);
    operation.isDone = true;
    operation.doneAt = machine.now;
    operation.perform();
    const { warp, unit, cycles, name, site, instruction, issuedAt } = operation;
    const { now } = machine;
    if (isTimed) count(warp.cta.counters.unitClocks, unit, cycles);
    trace?.({
      ...{ cta: warp.cta.rank, track: unit, warp: warp.index, instruction },
      ...{ name: site === name ? name : site, isWait: false, issuedAt },
      ...(isTimed ? { start: now - cycles, end: now } : { start: now, end: now + 1 }),
    });
    clocks = Math.max(clocks, now);
  }

  for (;;) {
    steps.length = 0;
    for (const warp of warps)
      if (isReady(machine, warp)) {
        if (isTimed) warp.time = readyTime(machine, warp);
        steps.push(warp);
      }
    for (const operation of pending)
      if (operation.after.every(({ isDone }) => isDone)) steps.push(operation);
    if (steps.length === 0) break;
    if (machine.step >= mostSteps) {
      findings.add({
        ...{ kind: 'deadlock', cta: 0, step: machine.step },
        message: `no end after ${mostSteps} steps`,
      });
      isGivenUp = true;
      break;
    }
    const step = steps[scheduler.choose(steps)];
    machine.now = isTimed ? step.time : machine.step;
    if (step.chosenAs === 'warp') executeWarp(step);
    else perform(step);
    machine.step++;
  }
  const isComplete = !isGivenUp && reportEnd(machine);
  if (isComplete) machine.tracker?.end(machine);
  return {
    ...{ findings: findings.list(), counters: ctas.map(({ counters }) => counters) },
    ...{ steps: machine.step, clocks, isComplete },
  };
}
