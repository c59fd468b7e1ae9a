import { clusterAddress } from '../isa/index.js';
import { byteStoreOf, moveBytes, type ByteStore } from '../memory/index.js';
import { reportViolation, type MachineState, type WarpState } from '../state.js';
import { issue } from './issue.js';
import { completeBytes } from './mbarrier.js';
import {
  alwaysReady,
  noRegisters,
  nothing,
  type AsynchronousRecord,
  type InstructionRecords,
} from './record.js';

type Op = 'clusterlaunchcontrol.try_cancel';

/** Bytes of an answer: x, y and z of a CTA as words, and whether a launch has been cancelled. */
const answerBytes = 16;
const wordBytes = 4;

/** Reports an answer that has no place in shared memory; returns whether it has none. */
function isMisplaced(machine: MachineState, warp: WarpState, destination: number): boolean {
  const { launchedBytes } = warp.cta.shared;
  const where = `an answer of ${answerBytes} bytes at byte ${destination} of shared memory`;
  if (!(destination % answerBytes === 0 && destination >= 0)) {
    const message = `${where}; a multiple of ${answerBytes} is due`;
    return reportViolation(machine, warp, { kind: 'misaligned', message });
  }
  if (destination + answerBytes <= launchedBytes) return false;
  const message = `${where}, which has ${launchedBytes}`;
  return reportViolation(machine, warp, { kind: 'shared-overflow', message });
}

const tryCancel: AsynchronousRecord<Op> = {
  ready: alwaysReady,
  isWait: false,
  reads: nothing,
  writes: {
    registers: noRegisters,
    memory: (_machine, cta, { destination }, visit) =>
      visit({
        space: 'shared',
        cta,
        start: destination / wordBytes,
        count: answerBytes / wordBytes,
      }),
  },
  unit: {
    name: 'TMA',
    operation: 'bulk-load',
    cycles: () => 0,
    latency: ({ bulkLatency }) => bulkLatency,
  },
  meaning: 'decides',
  describe: ({ isMulticast }) => ({ isMulticast }),
  execute: (machine, warp, instruction) => {
    const { destination, barrier, isMulticast } = instruction;
    if (isMisplaced(machine, warp, destination)) return 'refused';
    let answer: ByteStore | null = null;
    const answerOnce = (): ByteStore => {
      const first = machine.cancelLaunch();
      return byteStoreOf(Uint32Array.from(first === null ? [0, 0, 0, 0] : [...first, 1]));
    };
    // One operation per CTA: the answer's arrival at one CTA says nothing about the others.
    for (const cta of isMulticast ? machine.ctas : [warp.cta])
      issue(machine, warp, tryCancel, instruction, {
        ctas: [cta],
        perform: (actor) => {
          answer ??= answerOnce();
          moveBytes(answer, 0, cta.shared.store, destination, answerBytes);
          completeBytes(machine, actor, clusterAddress(cta.rank, barrier), answerBytes);
        },
      });
    return;
  },
};

/**
 * Cancellation of the launch of a cluster that has not started. The answer comes at a time of the scheduler's choice, through
 * the async proxy, with its bytes on a barrier. Source: PTX ISA, `clusterlaunchcontrol.try_cancel`; the meaning of the answer's
 * bytes is the implementation's own.
 */
export const launchControlRecords: InstructionRecords<Op> = {
  'clusterlaunchcontrol.try_cancel': tryCancel,
};
