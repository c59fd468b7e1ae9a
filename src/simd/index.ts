export {
  chunkElements,
  createScalarEngine,
  type ArrayFunction,
  type ChunkKernel,
  type ScalarEngine,
  type ScalarKernels,
  type SegmentKernel,
} from './scalar-engine.js';
