import { workerData } from 'piscina';
import type {
  BackwardPiece,
  KernelPiece,
  MatchedPiece,
  PreparedBackward,
  PreparedKernel,
} from '../../kernels/index.js';
import { lazily } from '../reuse.js';
import { prepareSharedBackward, type SharedBackwardRequest } from './emulate-backward.js';
import { prepareSharedMatch, type SharedMatchRequest } from './match-gradients.js';
import { prepareShared, type SharedRequest } from './emulate.js';

/** The kernel of this thread, made at its first piece. */
const kernel: () => PreparedKernel = lazily(() => prepareShared(workerData as SharedRequest));
const backward: () => PreparedBackward = lazily(() =>
  prepareSharedBackward(workerData as SharedBackwardRequest),
);
const match: () => (piece: number) => MatchedPiece = lazily(() =>
  prepareSharedMatch(workerData as SharedMatchRequest),
);

/** Runs one piece on a worker thread of emulate.ts. */
export function runPiece(piece: number): KernelPiece {
  return kernel().run(piece);
}

/** Runs one piece on a worker thread of emulate-backward.ts. */
export function runBackwardPiece(piece: number): BackwardPiece {
  return backward().run(piece);
}

/** Runs one piece on a worker thread of match-gradients.ts. */
export function matchBackwardPiece(piece: number): MatchedPiece {
  return match()(piece);
}
