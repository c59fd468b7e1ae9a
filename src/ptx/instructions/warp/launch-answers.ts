import { elementsOf, slotsOf, wrongOperands } from '../operands.js';
import type { ResolvedOperand, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { operandBits } from '../warp-registers.js';
import { lanesOf, writerOf } from './operands.js';

const source =
  'PTX ISA, Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.query_cancel';

/**
 * A word of the answer that `clusterlaunchcontrol.try_cancel` has returned: x, y, z, whether a launch was cancelled.
 */
function wordOf(answer: bigint, word: number): number {
  return Number((answer >> BigInt(32 * word)) & 0xffffffffn);
}

/** Gives each destination one word of the answer. */
function lowerWords(
  destinations: readonly ResolvedOperand[],
  words: readonly number[],
  answer: ResolvedOperand | undefined,
): WarpOperation | Unsupported {
  const writers = destinations.map(writerOf);
  const isAnswer = answer?.kind === 'register' && answer.slot.width === 128;
  if (!isAnswer || writers.length !== words.length || writers.includes(null))
    return wrongOperands('d, an answer of 128 bits');
  return {
    converged: 'none',
    writes: slotsOf(destinations),
    reads: slotsOf([answer]),
    execute: (registers, lanes) => {
      for (const lane of lanesOf(lanes)) {
        const bits = operandBits(registers, answer, lane);
        writers.forEach((write, i) => write!(registers, lane, wordOf(bits, words[i])));
      }
      return null;
    },
  };
}

function row(name: string, words: readonly number[]): WarpInstruction {
  return {
    name: `clusterlaunchcontrol.query_cancel.${name}`,
    evidence: 'isa',
    source,
    lower: ({ operands: [destination, answer] }) =>
      destination === undefined
        ? wrongOperands('d, an answer of 128 bits')
        : lowerWords(elementsOf(destination), words, answer),
  };
}

/** Queries of the answer to a cancellation; the answer to one that has failed names no CTA. */
export const launchAnswers: readonly WarpInstruction[] = [
  row('is_canceled', [3]),
  row('get_first_ctaid', [0, 1, 2, 3]),
  row('get_first_ctaid::x', [0]),
  row('get_first_ctaid::y', [1]),
  row('get_first_ctaid::z', [2]),
];
