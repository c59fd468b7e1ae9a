import { describeAttentionKernel } from '../../../properties/vitest/index.js';
import { backwardKernel } from '../../kernels/gradients/index.js';
import { testSeed } from '../../setup/effort.js';
import { gradientPromises, kernelOf } from './kernel-of.js';

// As a test of a user's kernel has it: each law is a test of its own, which passes here.
describeAttentionKernel(
  'a plain backward',
  kernelOf(backwardKernel()),
  { ...gradientPromises, sizes: { groupSize: { max: 2 }, queries: { max: 8 }, keys: { max: 16 } } },
  {
    laws: ['within-bound', 'gradients-within-bound', 'gradients-of-zero', 'gradients-of-unseen'],
    runs: 2,
    seed: testSeed,
  },
);
