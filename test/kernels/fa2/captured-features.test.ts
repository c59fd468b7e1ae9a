import { expect } from 'vitest';
import { fa2Model, runKernelModel } from '../../../kernels/index.js';
import { formats, patternsOf, type Tensor } from '../../../src/formats/index.js';
import { problemFeatures } from '../../../src/problem/index.js';
import { featureCases, readFeatureCase } from '../../audit/captured-features.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What PyTorch's FlashAttention-2 computed on an H200: dense, grouped, within a window, and packed. */
const captured = featureCases.filter(
  ({ kernel }) => kernel === 'torch_flash' || kernel === 'torch_varlen',
);
const bits = ({ data, format }: Tensor) => Array.from(patternsOf(data, formats[format]));

inTurn.each(captured)('has the bits of $kernel in $file', async ({ file, kernel }) => {
  const { problem, outputs } = await readFeatureCase(file, kernel);
  if (problemFeatures(problem).some((feature) => !fa2Model.features.includes(feature))) {
    expect(problemFeatures(problem)).toEqual(['dropout']);
    return;
  }
  const { out, lse } = runKernelModel('fa2', problem, new Map([['splits', 'auto']]));
  expect(bits(out)).toEqual(bits(outputs.out));
  if (outputs.lse !== null) expect(lse.data).toEqual(outputs.lse.data);
});
