import { createByteStore, warpLanes } from '../../../machine/index.js';
import { elementsOf, slotsOf, wrongOperands } from '../operands.js';
import type { ResolvedOperand, Unsupported } from '../request.js';
import type { WarpInstruction, WarpOperation } from '../warp-instruction.js';
import { moveFromRegister } from '../warp-registers.js';
import { valueWriterOf } from './operands.js';

const source =
  'PTX ISA, Parallel Synchronization and Communication Instructions: clusterlaunchcontrol.query_cancel';

const [wordBytes, answerBytes] = [4, 16];

/**
 * Gives each destination one word of the answer that `clusterlaunchcontrol.try_cancel` has returned: x, y, z, whether a launch
 * was cancelled.
 */
function lowerWords(
  destinations: readonly ResolvedOperand[],
  words: readonly number[],
  answer: ResolvedOperand | undefined,
): WarpOperation | Unsupported {
  const writers = destinations.map(valueWriterOf);
  const isAnswer = answer?.kind === 'register' && answer.slot.width === 128;
  if (!isAnswer || writers.length !== words.length || writers.includes(null))
    return wrongOperands('d, an answer of 128 bits');
  return {
    converged: 'none',
    writes: slotsOf(destinations),
    reads: slotsOf([answer]),
    execute: (registers, lanes) => {
      const store = createByteStore(answerBytes * warpLanes);
      const answers = { store, offset: 0, stride: answerBytes, bytes: answerBytes };
      moveFromRegister(registers, answer.slot, answers);
      writers.forEach((write, i) =>
        write!(registers, { ...answers, offset: wordBytes * words[i], bytes: wordBytes }, lanes),
      );
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
