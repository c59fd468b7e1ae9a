import {
  addOrderMatches,
  assembleBackwardPieces,
  givenPieces,
  matchBackwardPiece,
  noOrderMatches,
  type BackwardGradients,
  type GivenGradients,
  type KernelModel,
  type MatchedPiece,
  type OrderMatches,
  type PreparedBackward,
} from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import {
  prepareSharedBackward,
  readyBackward,
  type EmulatedInputs,
  type SharedBackwardRequest,
} from './emulate-backward.js';
import type { EmulationOptions } from './emulate.js';
import { runPieces } from './run-pieces.js';
import { shareTensor, unshareTensor, type SharedTensor } from './share-problem.js';

/** Comparison of given gradients with a model's, bit for bit. */
export interface BackwardMatch {
  readonly model: string;
  readonly settings: PreparedBackward['settings'];
  /** Whether the order of all its additions is fixed. */
  readonly isOrdered: boolean;
  /** Origin of the O and LSE that the model's backward pass read: those that were given, or its own forward's. */
  readonly forward: 'given' | 'own';
  readonly matches: OrderMatches;
  /** The model's. */
  readonly made: BackwardGradients;
}

/** The request that every thread of a comparison receives. */
export interface SharedMatchRequest extends SharedBackwardRequest {
  readonly given: Readonly<Partial<Record<keyof GivenGradients, SharedTensor>>>;
}

/** The comparison made ready, on the shared tensors themselves. */
export function prepareSharedMatch(request: SharedMatchRequest): (piece: number) => MatchedPiece {
  const prepared = prepareSharedBackward(request);
  const tensors = Object.entries(request.given).map(
    ([name, tensor]) => [name, unshareTensor(tensor)] as const,
  );
  const pieces = givenPieces(request.model, prepared, Object.fromEntries(tensors));
  return (piece) => matchBackwardPiece(prepared, piece, pieces(piece));
}

/**
 * Compares gradients with those of a kernel model's backward pass on the same problem, bit for bit, its pieces shared among threads.
 * @param inputs O and LSE are those that the kernel's backward pass read; without them the model's own forward is run
 * @throws RequestError as `emulateBackward`, and for gradients of another format or size than the model's
 */
export async function matchGradients(
  problem: Problem,
  model: string | KernelModel,
  inputs: EmulatedInputs,
  given: GivenGradients,
  options: EmulationOptions = {},
): Promise<BackwardMatch> {
  const ready = await readyBackward(problem, model, inputs, options);
  const { prepared, request, ownForward } = ready;
  const { name } = ready.model;
  const pieces = givenPieces(name, prepared, given);
  const { threads = 1 } = options;
  const shared = Object.entries(given).flatMap(([gradient, tensor]) =>
    tensor ? [[gradient, shareTensor(tensor)] as const] : [],
  );
  const assembly = assembleBackwardPieces(problem, prepared);
  let matches = noOrderMatches;
  await runPieces<MatchedPiece>(
    prepared.pieces,
    (piece) => matchBackwardPiece(prepared, piece, pieces(piece)),
    request && {
      threads,
      work: 'matchBackwardPiece',
      request: { ...request(), given: Object.fromEntries(shared) } satisfies SharedMatchRequest,
    },
    (piece, done) => {
      assembly.add(piece.made);
      matches = addOrderMatches(matches, piece.matches);
      ready.tell(done);
    },
  );
  return {
    model: name,
    settings: prepared.settings,
    isOrdered: prepared.someOrder === null,
    forward: ownForward === null ? 'given' : 'own',
    matches,
    made: assembly.results(),
  };
}
