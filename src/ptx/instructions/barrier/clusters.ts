import type { VisibleInstruction } from '../visible-instruction.js';

/** An instruction without operands that every lane of a warp executes. */
function simple(
  name: string,
  op: 'barrier.cluster.arrive' | 'barrier.cluster.arrive.relaxed' | 'barrier.cluster.wait',
  isAligned: boolean,
): VisibleInstruction {
  return {
    name,
    meaning: 'none',
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

/** Barriers of a cluster. */
export const clusterInstructions: readonly VisibleInstruction[] = [
  simple('barrier.cluster.arrive', 'barrier.cluster.arrive', true),
  simple('barrier.cluster.arrive.release', 'barrier.cluster.arrive', true),
  simple('barrier.cluster.arrive.relaxed', 'barrier.cluster.arrive.relaxed', true),
  simple('barrier.cluster.wait', 'barrier.cluster.wait', true),
];
