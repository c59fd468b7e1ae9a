import { describeRecurrentKernel } from '../../../properties/vitest/index.js';
import { testSeed } from '../../setup/effort.js';
import { modelKernel } from './models.js';

// As a test of a user's kernel has it: each law is a test of its own, which passes here.
describeRecurrentKernel(
  'chunks of 16 tokens',
  modelKernel('chunked', { chunk: 16 }),
  {
    families: ['gla', 'gated-delta'],
    dims: [4, 8],
    chunk: 16,
    gradients: true,
    deterministic: true,
    configurations: { 'chunk 32': { kernel: modelKernel('chunked', { chunk: 32 }) } },
  },
  {
    laws: ['within-bound', 'handed-over-state', 'configurations', 'gradients-within-bound'],
    regimes: ['typical', 'chunk-edges'],
    runs: 2,
    seed: testSeed,
  },
);
