import type { VisibleInstruction } from '../visible-instruction.js';

/** An instruction without operands that every lane of a warp executes. */
function simple(
  name: string,
  op: 'barrier.cluster.arrive' | 'barrier.cluster.arrive.relaxed' | 'barrier.cluster.wait',
  isAligned: boolean,
): VisibleInstruction {
  return {
    name,
    evidence: 'isa',
    source: `PTX ISA, Parallel Synchronization and Communication Instructions: ${name}`,
    lower: ({ modifiers, site }) => ({
      isAligned: isAligned && modifiers.includes('aligned'),
      writes: [],
      reads: [],
      lends: [],
      issue: function* () {
        yield { op, site };
      },
    }),
  };
}

/** Instructions that order or hint at nothing which the machine models: they take no time and do nothing. */
function ignored(name: string, source: string): VisibleInstruction {
  return {
    name,
    evidence: 'isa',
    source,
    lower: () => ({
      isAligned: false,
      writes: [],
      reads: [],
      lends: [],
      issue: function* () {
        // Nothing that anybody could see.
      },
    }),
  };
}

/** Barriers of a cluster, and what concerns launches that follow one another. */
export const clusterInstructions: readonly VisibleInstruction[] = [
  simple('barrier.cluster.arrive', 'barrier.cluster.arrive', true),
  simple('barrier.cluster.arrive.release', 'barrier.cluster.arrive', true),
  simple('barrier.cluster.arrive.relaxed', 'barrier.cluster.arrive.relaxed', true),
  simple('barrier.cluster.wait', 'barrier.cluster.wait', true),
  ignored('griddepcontrol', 'PTX ISA, griddepcontrol: launches come one after another here'),
  ignored('nanosleep', 'PTX ISA, nanosleep: any time from 0 on is allowed'),
];
