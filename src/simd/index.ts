export {
  chunkElements,
  createScalarEngine,
  type ArrayFunction,
  type ChunkKernel,
  type ScalarEngine,
  type ScalarKernels,
  type SegmentKernel,
} from './scalar-engine.js';
export {
  createTensorCoreTileEngine,
  placeFusedSums,
  type FusedSums,
  type PatternArray,
  type TensorCoreKernels,
  type TensorCoreTileEngine,
  type TileOptions,
} from './tensor-core.js';
