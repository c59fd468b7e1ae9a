import { workerData } from 'piscina';
import type { KernelPiece, PreparedKernel } from '../../kernels/index.js';
import { lazily } from '../lazily.js';
import { prepareShared, type SharedRequest } from './emulate.js';

/** The kernel of this thread, made at its first piece. */
const kernel: () => PreparedKernel = lazily(() => prepareShared(workerData as SharedRequest));

/** What a worker thread of emulate.ts does: one piece. */
export function runPiece(piece: number): KernelPiece {
  return kernel().run(piece);
}
