import { createByteStore, warpLanes } from '../../../machine/index.js';
import type { Effect } from '../../../isa/index.js';
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
  [destination, answer]: readonly ResolvedOperand[],
  words: readonly number[],
  meaning: Effect,
): WarpOperation | Unsupported {
  const destinations = destination === undefined ? [] : elementsOf(destination);
  const writers = destinations.map(valueWriterOf);
  const isAnswer = answer?.kind === 'register' && answer.slot.width === 128;
  if (!isAnswer || writers.length !== words.length || writers.includes(null))
    return wrongOperands('d, an answer of 128 bits');
  return {
    converged: 'none',
    meaning,
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

function row(name: string, words: readonly number[], meaning: Effect): WarpInstruction {
  return {
    name: `clusterlaunchcontrol.query_cancel.${name}`,
    meaning,
    evidence: 'isa',
    source,
    lower: ({ operands }) => lowerWords(operands, words, meaning),
  };
}

/** Queries of the answer to a cancellation; the answer to one that has failed names no CTA. */
export const launchAnswers: readonly WarpInstruction[] = [
  row('is_canceled', [3], 'decides'),
  row('get_first_ctaid', [0, 1, 2, 3], 'moves'),
  row('get_first_ctaid::x', [0], 'moves'),
  row('get_first_ctaid::y', [1], 'moves'),
  row('get_first_ctaid::z', [2], 'moves'),
];
