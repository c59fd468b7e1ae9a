import { recurrentTensor, writeRecurrence } from '../index.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  recurrentQuantities,
  type RecurrentResults,
  type Tensor,
} from '../../problem/index.js';
import { unaskedTensors } from './kernel-answer.js';
import { startLiveProcess, type LiveProcess } from './live-process.js';

/** A problem of linear attention, with what gradients begin with where these are wanted. */
export interface AskedRecurrence {
  readonly problem: RecurrentProblem;
  readonly gradients?: RecurrentGradientInputs | undefined;
}

/** A kernel of linear attention behind the process protocol. */
export type LiveRecurrence = LiveProcess<AskedRecurrence, RecurrentResults>;

/** The results that a problem has, of those that are asked for. */
function wantedResults({ problem, gradients }: AskedRecurrence): RecurrentQuantityName[] {
  const shape = recurrentShape(problem);
  return recurrentQuantityNames.filter(
    (name) =>
      recurrentQuantityShape(name, problem, shape) !== null &&
      (gradients !== undefined || !recurrentQuantities[name].isGradient),
  );
}

/**
 * A kernel's command as `startLiveProcess` starts it, for problems of linear attention.
 * @param timeoutSeconds time that one answer may take, including the start of the command
 * @throws RequestError for an empty command, and when no temporary folder can be made
 */
export function startLiveRecurrence(
  command: string,
  timeoutSeconds: number,
): Promise<LiveRecurrence> {
  return startLiveProcess(command, timeoutSeconds, {
    offer: async (asked, path) => {
      const { problem, gradients } = asked;
      const { family, q, normalisation } = problem;
      await writeRecurrence(path, { problem, gradients }, {}, { durable: false });
      return {
        contract: 'recurrent',
        family,
        scale: problem.scale ?? 1 / Math.sqrt(q.shape[3]),
        normalisation: normalisation?.epsilon ?? null,
        wants: wantedResults(asked),
      };
    },
    read: async (file, asked) => {
      const wanted = wantedResults(asked);
      unaskedTensors(
        file,
        wanted.map((name) => ({ name: recurrentTensor(file, name) ?? name })),
      );
      const results: Partial<Record<RecurrentQuantityName, Tensor>> = {};
      for (const name of wanted) {
        const own = recurrentTensor(file, name);
        // A kernel without an output is at fault; of the others the laws say what is missing.
        if (own !== null || name === 'out') results[name] = await file.read(own ?? name);
      }
      return results;
    },
  });
}
