import {
  asFamilyStores,
  familyShape,
  recurrentTensor,
  type TensorFile,
  writeRecurrence,
} from '../index.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  recurrentScale,
  recurrentTensorName,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentQuantityName,
  recurrentQuantities,
  type RecurrentResults,
  type Tensor,
} from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { unaskedTensors } from './kernel-answer.js';
import { startLiveProcess, type LiveProcess } from './live-process.js';

/** A problem of linear attention, with what gradients begin with where these are wanted. */
export interface AskedRecurrence {
  readonly problem: RecurrentProblem;
  readonly gradients?: RecurrentGradientInputs | undefined;
}

/** What a kernel of linear attention wrote. */
export interface AnsweredRecurrence {
  /** In the shapes of `recurrentQuantityShape`. */
  readonly results: RecurrentResults;
  /** Names of the other tensors, which nothing reads. */
  readonly unasked: readonly string[];
}

/** A kernel of linear attention behind the process protocol. */
export type LiveRecurrence = LiveProcess<AskedRecurrence, AnsweredRecurrence>;

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
 * A result that a kernel wrote, in the shape of `recurrentQuantityShape`: states of mamba2 are value first in files.
 * @throws RequestError for another shape
 */
async function readResult(
  file: TensorFile,
  tensorName: string,
  name: RecurrentQuantityName,
  { problem }: AskedRecurrence,
): Promise<Tensor> {
  const { of } = recurrentQuantities[name];
  const { family } = problem;
  const tensor = await file.read(tensorName);
  const shape = recurrentQuantityShape(name, problem, recurrentShape(problem)) ?? [];
  const wanted = familyShape(shape, of, family);
  if (String(tensor.shape) !== String(wanted))
    throw new RequestError(
      `${tensorName} has shape [${tensor.shape.join(', ')}] in place of [${wanted.join(', ')}]`,
    );
  return asFamilyStores(tensor, of, family);
}

/** What a kernel wrote. @throws RequestError for a missing output, and for misspelt and misshapen results */
async function readAnswer(file: TensorFile, asked: AskedRecurrence): Promise<AnsweredRecurrence> {
  const { family } = asked.problem;
  const wanted = wantedResults(asked);
  const placeOf = (name: RecurrentQuantityName) => recurrentTensor(file, name, { family });
  const unasked = unaskedTensors(
    file,
    wanted.map((name) => ({ name: placeOf(name) ?? recurrentTensorName(family, name) })),
  );
  const results: Partial<Record<RecurrentQuantityName, Tensor>> = {};
  for (const name of wanted) {
    const own = placeOf(name);
    // A kernel without an output is at fault; of the others whoever asks says what is missing.
    if (own !== null || name === 'out')
      results[name] = await readResult(file, own ?? name, name, asked);
  }
  return { results, unasked };
}

/** The settings of Mamba-2 in a request, by the names of mamba_ssm's arguments; a limit of null is none. */
function mamba2Settings({ mamba2 }: RecurrentProblem): object {
  return mamba2 === undefined
    ? {}
    : {
        dt_softplus: mamba2.dtSoftplus,
        dt_limit: mamba2.dtLimit.map((limit) => (Number.isFinite(limit) ? limit : null)),
      };
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
      const { family, normalisation, gateBase } = problem;
      await writeRecurrence(path, { problem, gradients }, {}, { durable: false });
      return {
        contract: 'recurrent',
        family,
        scale: recurrentScale(problem),
        normalisation: normalisation?.epsilon ?? null,
        ...(gateBase && { gate_base: gateBase }),
        ...mamba2Settings(problem),
        wants: wantedResults(asked).map((name) => recurrentTensorName(family, name)),
      };
    },
    read: readAnswer,
  });
}
