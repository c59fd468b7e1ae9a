import type { Architecture } from '../../../hardware/index.js';
import type { WarpInstruction } from '../warp-instruction.js';
import { launchAnswers } from './launch-answers.js';
import { mmaInstruction } from './mma.js';
import { movmatrix } from './movmatrix.js';
import { reductionInstructions } from './reduction.js';
import { sparseMmaInstructions } from './sparse-mma.js';
import { shuffle } from './shuffle.js';
import { voteInstructions } from './vote.js';

/** The warp instructions of an architecture, whose tensor cores define `mma.sync`. */
export function warpInstructions(architecture: Architecture): readonly WarpInstruction[] {
  return [
    shuffle,
    ...voteInstructions,
    ...reductionInstructions,
    ...launchAnswers,
    mmaInstruction(architecture),
    ...sparseMmaInstructions(architecture),
    movmatrix,
  ];
}
