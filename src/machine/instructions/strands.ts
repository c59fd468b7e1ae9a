import { siteOf } from '../isa/index.js';
import { report, type MachineState, type WarpState } from '../state.js';
import { alwaysReady, movesNothing, noDetails, type InstructionRecords } from './record.js';

/** Lanes of a warp as an agent of its own, at its first instruction. */
function createStrand(
  machine: MachineState,
  warp: WarpState,
  { name, program }: { readonly name: string; readonly program: WarpState['program'] },
): WarpState {
  const strand: WarpState = {
    ...warp,
    // Operations that the strand issues and waits for concern no other strand.
    loads: [...warp.loads],
    stores: [...warp.stores],
    tensorOperations: [...warp.tensorOperations],
    openBulkGroup: [...warp.openBulkGroup],
    bulkGroups: [...warp.bulkGroups],
    openCopyGroup: [...warp.openCopyGroup],
    copyGroups: [...warp.copyGroups],
    openWarpgroupGroup: [...warp.openWarpgroupGroup],
    warpgroupGroups: [...warp.warpgroupGroups],
    name: `${warp.name} (${name})`,
    program,
    continuation: null,
    order: machine.tracker?.divergeWarp(warp) ?? null,
  };
  const first = program.next();
  strand.current = first.done === true ? null : first.value;
  return strand;
}

/** Hands the operations that a strand has under way back to the warp. */
function takeBack(machine: MachineState, warp: WarpState, strand: WarpState): void {
  machine.tracker?.convergeWarp(warp, strand);
  const merge = <Item>(own: readonly Item[], more: readonly Item[]): Item[] => [
    ...new Set([...own, ...more]),
  ];
  warp.loads = merge(warp.loads, strand.loads).filter(({ isDone }) => !isDone);
  warp.stores = merge(warp.stores, strand.stores).filter(({ isDone }) => !isDone);
  warp.tensorOperations = merge(warp.tensorOperations, strand.tensorOperations);
  warp.openBulkGroup = merge(warp.openBulkGroup, strand.openBulkGroup);
  warp.bulkGroups = merge(warp.bulkGroups, strand.bulkGroups);
  warp.openCopyGroup = merge(warp.openCopyGroup, strand.openCopyGroup);
  warp.copyGroups = merge(warp.copyGroups, strand.copyGroups);
  warp.openWarpgroupGroup = merge(warp.openWarpgroupGroup, strand.openWarpgroupGroup);
  warp.warpgroupGroups = merge(warp.warpgroupGroups, strand.warpgroupGroups);
  if (strand.lastCommits.length > 0) warp.lastCommits = strand.lastCommits;
  warp.readyAt = Math.max(warp.readyAt, strand.readyAt);
}

/**
 * Lanes that diverge (PTX ISA, "Divergence of Threads in Control Constructs"): each strand is an agent that the
 * scheduler chooses like a warp, so that a waiting strand does not block the one that it waits for. Also the
 * report of errors that the program itself finds.
 */
export const strandRecords: InstructionRecords<'diverge' | 'converge' | 'report'> = {
  diverge: {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp, { strands: programs }) => {
      const strands = programs.map((program) => createStrand(machine, warp, program));
      machine.strands.push(...strands);
      return {
        isReady: () => strands.every(({ current }) => current === null),
        resume: () => {
          for (const strand of strands) {
            machine.strands.splice(machine.strands.indexOf(strand), 1);
            takeBack(machine, warp, strand);
          }
        },
        waitsFor: () => {
          const running = strands.filter(({ current }) => current !== null);
          return running.map(({ name, current }) => `${name} at "${siteOf(current)}"`).join(', ');
        },
        readyTime: () => Math.max(...strands.map(({ readyAt }) => readyAt)),
      };
    },
  },
  converge: {
    ...movesNothing,
    ready: {
      isReady: (_machine, _warp, { isReady }) => isReady(),
      waitsFor: (_machine, _warp, { waitsFor }) => waitsFor(),
      readyTime: ({ now }) => now,
    },
    isWait: true,
    describe: noDetails,
    execute: () => undefined,
  },
  report: {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp, { kind, message }) => report(machine, warp, kind, message),
  },
};
