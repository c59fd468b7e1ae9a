import { allocateStorage, formats, patternsOf } from '../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { BackwardPiece, ForwardOutputs, PreparedBackward } from './model.js';

/** Gradients of a whole problem, in one format. */
export interface BackwardGradients {
  /** As the problem's Q, K and V. */
  readonly dq: Tensor;
  readonly dk: Tensor;
  readonly dv: Tensor;
  readonly counters: Readonly<Record<string, number>>;
}

/** Assembles pieces, in whatever order they come. */
export interface BackwardAssembly {
  readonly add: (piece: BackwardPiece) => void;
  /** The gradients from the pieces added so far. */
  readonly results: () => BackwardGradients;
}

/** An assembly of a model's pieces of a problem's gradients. */
export function assembleBackwardPieces(
  problem: Problem,
  { shape, format: name }: Pick<PreparedBackward, 'shape' | 'format'>,
): BackwardAssembly {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const format = formats[name];
  const gradient = (lead: Tensor, rows: number, dim: number) => {
    const data = allocateStorage(format, rows * dim);
    const patterns = patternsOf(data, format);
    const ofTensor = [...lead.shape.slice(0, -1), dim];
    return {
      tensor: { format: name, shape: ofTensor, data },
      // Patterns of wide formats take several words.
      place: patterns.length / Math.max(rows, 1),
      patterns,
    };
  };
  const dq = gradient(problem.q, batch * heads * queries, qkDim);
  const dk = gradient(problem.k, batch * kvHeads * keys, qkDim);
  const dv = gradient(problem.v, batch * kvHeads * keys, vDim);
  const counters: Record<string, number> = {};
  const add = (piece: BackwardPiece): void => {
    const { kvHead } = piece;
    dq.patterns.set(piece.dq, kvHead * groupSize * queries * dq.place);
    dk.patterns.set(piece.dk, kvHead * keys * dk.place);
    dv.patterns.set(piece.dv, kvHead * keys * dv.place);
    for (const [counted, count] of Object.entries(piece.counters))
      counters[counted] = (counters[counted] ?? 0) + count;
  };
  const results = () => ({ dq: dq.tensor, dk: dk.tensor, dv: dv.tensor, counters });
  return { add, results };
}

/**
 * Checks the inputs of a backward pass against a problem.
 * @throws RequestError for a sample of rows, whose dK and dV would want the others, and for tensors of other shapes
 */
export function checkBackwardInputs(
  problem: Problem,
  dout: Tensor,
  forward: ForwardOutputs | null = null,
): void {
  if (problem.rows !== undefined)
    throw new RequestError('dK and dV add all rows, and these are a sample; give them all');
  const { batch, heads, queries, vDim } = problemShape(problem);
  const ofRows = [batch, heads, queries];
  const check = (name: string, { shape }: Tensor, wanted: readonly number[], what: string) => {
    const whole = shape.length === wanted.length - 1 ? [1, ...shape] : shape;
    if (String(whole) !== String(wanted))
      throw new RequestError(
        `${name} has shape [${shape.join(', ')}]; give it ${what}, [${wanted.join(', ')}]`,
      );
  };
  check('dout', dout, [...ofRows, vDim], 'that of the output');
  if (forward === null) return;
  check('out', forward.out, [...ofRows, vDim], 'that of the output');
  check('lse', forward.lse, ofRows, 'a number for every row');
}
