export { definedAttention, type DefinedAttention } from './defined-attention.js';
export { featureKernel, type FeatureKernelOptions, type FeatureSteps } from './feature-kernel.js';
export { featureProblems, normalProblem, normalTensor, seededRandom } from './feature-problems.js';
export { mergeBy, rightMerge, type ResultMerge } from './merge-results.js';
export { mergedParts, storedPart, type RowPart } from './merge-parts.js';
export { pageOf, storedKeys, type KeySource, type PageLaw } from './stored-keys.js';
export { faultyKernels, type FaultyKernel } from './faulty-kernels.js';
