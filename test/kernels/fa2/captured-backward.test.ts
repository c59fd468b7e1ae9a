import { expect } from 'vitest';
import { matchBackwardPiece, givenPieces } from '../../../kernels/backward/match.js';
import { fa2Model, runKernelModel } from '../../../kernels/index.js';
import { formats, patternsOf, type Tensor } from '../../../src/formats/index.js';
import { readCapturedGradients } from '../../fixtures/captured-gradients.js';
import { readGradientsManifest } from '../../fixtures/gradients-manifest.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What PyTorch's FlashAttention-2 computed on an H200: dense, grouped and packed. */
const captured = readGradientsManifest().files.flatMap(({ name, outputs }) =>
  outputs
    .filter((kernel) => kernel === 'torch_flash' || kernel === 'torch_varlen')
    .map((kernel) => ({ name, kernel })),
);
const bits = ({ data, format }: Tensor) => Array.from(patternsOf(data, formats[format]));

inTurn.each(captured)(
  'has the gradients of $kernel in $name, bit for bit',
  { timeout: 300_000 },
  async ({ name, kernel }) => {
    const { problem, dout, kernels } = await readCapturedGradients(name);
    const { out: stored, ...given } = kernels[kernel];
    const { out, lse } = runKernelModel('fa2', problem, new Map([['splits', 'auto']]));
    expect(bits(out)).toEqual(bits(stored));
    const inputs = { dout, forward: { out, lse } };
    const prepared = fa2Model.backward!.prepare(problem, inputs, new Map());
    const pieces = givenPieces('fa2', prepared, given);
    for (let piece = 0; piece < prepared.pieces; piece++) {
      const { matches } = matchBackwardPiece(prepared, piece, pieces(piece));
      for (const gradient of ['dk', 'dv'] as const)
        expect(matches[gradient]).toMatchObject({ someOrder: 0, undecided: 0, noOrder: 0 });
      // Tiles of dQ are added in any order.
      expect(matches.dq).toMatchObject({ undecided: 0, noOrder: 0 });
    }
  },
);
